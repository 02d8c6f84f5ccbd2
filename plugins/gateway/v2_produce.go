package gateway

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// jsonRecordsV2, binaryRecordsV2 and what is in them are for the document; bodies are read by recordReader.
type jsonRecordsV2 struct {
	noSchemasV2
	Records []jsonRecordV2 `json:"records" nullable:"false" minItems:"1"`
}

type binaryRecordsV2 struct {
	noSchemasV2
	Records []binaryRecordV2 `json:"records" nullable:"false" minItems:"1"`
}

// noSchemasV2 is in every request.
type noSchemasV2 struct {
	KeySchema     noSchema `json:"key_schema,omitempty" doc:"must be null: there is no schema registry"`
	KeySchemaID   noSchema `json:"key_schema_id,omitempty" doc:"must be null"`
	ValueSchema   noSchema `json:"value_schema,omitempty" doc:"must be null"`
	ValueSchemaID noSchema `json:"value_schema_id,omitempty" doc:"must be null"`
}

type jsonRecordV2 struct {
	Key       json.RawMessage `json:"key,omitempty" doc:"any JSON, whose text is the key as it stands; null and absent for a record without one"`
	Value     json.RawMessage `json:"value" doc:"the value, in the same way; null for a tombstone"`
	Partition *int32          `json:"partition,omitempty" nullable:"true" minimum:"0" doc:"where to put it; the configured partitioner decides when absent"`
}

type binaryRecordV2 struct {
	Key       base64Text `json:"key,omitempty" doc:"the key; null and absent for a record without one"`
	Value     base64Text `json:"value" doc:"the value; null for a tombstone"`
	Partition *int32     `json:"partition,omitempty" nullable:"true" minimum:"0" doc:"where to put it; the configured partitioner decides when absent"`
}

type produceAnswerV2 struct {
	KeySchemaID   *int32           `json:"key_schema_id"`
	ValueSchemaID *int32           `json:"value_schema_id"`
	Offsets       []recordOffsetV2 `json:"offsets" nullable:"false" doc:"one for each record, in the order of the request"`
}

type recordOffsetV2 struct {
	Partition *int32  `json:"partition" doc:"null when the record was refused"`
	Offset    *int64  `json:"offset" doc:"null when the record was refused"`
	ErrorCode *int    `json:"error_code" doc:"null, or 50003 when sending it again may help, else 50002"`
	Error     *string `json:"error"`
}

func (g *Gateway) produceV2() []operation {
	takes := []string{mediaBinary, mediaEmbed, mediaV2}
	embedded := map[string]any{mediaEmbed: jsonRecordsV2{}}
	const doc = "All records are checked before any is sent: after a 4xx nothing has been appended."
	return []operation{
		{version: 2, method: "POST", path: "/topics/{topic_name}", id: "produceV2", summary: "Produce records", doc: doc,
			takes: takes, body: binaryRecordsV2{}, bodies: embedded, status: 200, answer: produceAnswerV2{}, fails: []int{404},
			handle: func(c *call) (any, error) { return g.produceRecordsV2(c, unassigned) }},
		{version: 2, method: "POST", path: "/topics/{topic_name}/partitions/{partition_id}", id: "produceToPartitionV2", summary: "Produce records to one partition", doc: doc,
			takes: takes, body: binaryRecordsV2{}, bodies: embedded, status: 200, answer: produceAnswerV2{}, fails: []int{404},
			handle: func(c *call) (any, error) {
				partition, err := c.partition()
				if err != nil {
					return nil, err
				}
				return g.produceRecordsV2(c, partition)
			}},
	}
}

func (g *Gateway) produceRecordsV2(c *call, partition int32) (any, error) {
	topic := c.param("topic_name")
	if !legal(topic) {
		return nil, noTopic()
	}
	reader := recordReader{lexer: lexer{b: c.data}, json: c.given == mediaEmbed, partition: partition, most: g.options.MaxRecords}
	records, err := reader.request()
	if err != nil {
		return nil, err
	}
	if err := g.producer.route(c.r.Context(), topic, records); err != nil {
		return nil, err
	}
	failed := g.producer.send(c.r.Context(), topic, records).settled()
	return produceAnswer(records, failed), nil
}

// recordReader reads the body of a produce request in one pass. Keys and values of JSON are parts of the body, not
// copies.
type recordReader struct {
	lexer
	json      bool // keys and values are JSON, not base64
	partition int32
	most      int

	records []*kgo.Record
	slab    []kgo.Record // the records are made some at a time
}

func (r *recordReader) request() ([]*kgo.Record, error) {
	if r.peek() == 0 {
		return nil, fail(http.StatusBadRequest, "The body is empty.")
	}
	err := r.object("an object with records", func(key string) error {
		switch key {
		case "records":
			r.records = nil // of two that are given the last counts
			if r.null() {
				return nil
			}
			return r.array("records: a list", r.record)
		case "key_schema", "key_schema_id", "value_schema", "value_schema_id":
			if !r.null() {
				return fail(http.StatusUnprocessableEntity, "%s: there is no schema registry", key)
			}
			return nil
		}
		return fail(http.StatusUnprocessableEntity, "Unrecognized field: %.100s", key)
	})
	if err != nil {
		return nil, err
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if len(r.records) == 0 {
		return nil, fail(http.StatusUnprocessableEntity, "records may not be empty")
	}
	return r.records, nil
}

func (r *recordReader) record() error {
	if len(r.records) == r.most {
		return fail(http.StatusRequestEntityTooLarge, "HTTP 413 Request Entity Too Large: the limit is %d records", r.most)
	}
	if len(r.slab) == 0 {
		r.slab = make([]kgo.Record, min(max(16, len(r.records)), 1024))
	}
	record := &r.slab[0]
	r.slab = r.slab[1:]
	record.Partition = r.partition
	hasValue := false
	at := len(r.records)
	err := r.object("an object", func(key string) (err error) {
		switch key {
		case "key":
			record.Key, err = r.data()
		case "value":
			record.Value, err = r.data()
			hasValue = true
		case "partition":
			err = r.choose(record)
		default:
			return fail(http.StatusUnprocessableEntity, "Unrecognized field: %.100s", key)
		}
		return inside(err, "%s", key)
	})
	if err == nil && !hasValue {
		err = fail(http.StatusUnprocessableEntity, "value is missing")
	}
	if err != nil {
		return inside(err, "records[%d]", at)
	}
	r.records = append(r.records, record)
	return nil
}

// choose reads the partition of a record.
func (r *recordReader) choose(record *kgo.Record) error {
	if r.null() {
		return nil
	}
	n, err := r.integer(32)
	switch {
	case err != nil:
		return err
	case n < 0:
		return fail(http.StatusUnprocessableEntity, "may not be negative")
	case r.partition != unassigned && int32(n) != r.partition:
		return fail(http.StatusUnprocessableEntity, "the path names partition %d", r.partition)
	}
	record.Partition = int32(n)
	return nil
}

// data reads a key or a value.
func (r *recordReader) data() ([]byte, error) {
	if r.null() {
		return nil, nil
	}
	if r.json {
		raw, err := r.raw()
		return raw[:len(raw):len(raw)], err
	}
	text, err := r.text()
	if err != nil {
		return nil, inside(err, "base64")
	}
	return decodeBase64(text)
}

// decodeBase64 decodes RFC 4648's standard alphabet, with padding.
func decodeBase64(text []byte) ([]byte, error) {
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(out, text)
	if err != nil {
		return nil, fail(http.StatusUnprocessableEntity, "not base64: %v", err)
	}
	return out[:n], nil
}

// produceAnswer writes the answer, a produceAnswerV2, by hand: it may be long.
func produceAnswer(records []*kgo.Record, failed map[*kgo.Record]error) []byte {
	b := make([]byte, 0, 64+len(records)*80)
	b = append(b, `{"key_schema_id":null,"value_schema_id":null,"offsets":[`...)
	for i, r := range records {
		if i > 0 {
			b = append(b, ',')
		}
		if err := failed[r]; err != nil {
			b = append(b, `{"partition":null,"offset":null,"error_code":`...)
			b = strconv.AppendInt(b, int64(recordCode(err)), 10)
			b = append(b, `,"error":`...)
			b = append(b, mustJSON(err.Error())...)
			b = append(b, '}')
			continue
		}
		b = append(b, `{"partition":`...)
		b = strconv.AppendInt(b, int64(r.Partition), 10)
		b = append(b, `,"offset":`...)
		b = strconv.AppendInt(b, r.Offset, 10)
		b = append(b, `,"error_code":null,"error":null}`...)
	}
	return append(b, "]}"...)
}
