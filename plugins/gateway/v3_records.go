package gateway

import (
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordV3 and what is in it are for the document; the body is read by readRecordV3.
type recordV3 struct {
	PartitionID *int32     `json:"partition_id,omitempty" nullable:"true" minimum:"0" doc:"where to put it; the configured partitioner decides when absent"`
	Headers     []headerV3 `json:"headers,omitempty" nullable:"true"`
	Key         dataV3     `json:"key,omitempty"`
	Value       dataV3     `json:"value,omitempty" doc:"null or absent for a tombstone"`
	Timestamp   *time.Time `json:"timestamp,omitempty" nullable:"true" doc:"RFC 3339; now when absent"`
}

type headerV3 struct {
	Name  string     `json:"name"`
	Value base64Text `json:"value,omitempty"`
}

// dataV3 is a key or a value with its type: see its Schema.
type dataV3 struct{}

// reportV3 is the answer to one record.
type reportV3 struct {
	ErrorCode   int           `json:"error_code" doc:"200, or what is wrong"`
	Message     string        `json:"message,omitempty"`
	ClusterID   string        `json:"cluster_id,omitempty"`
	TopicName   string        `json:"topic_name,omitempty"`
	PartitionID *int32        `json:"partition_id,omitempty"`
	Offset      *int64        `json:"offset,omitempty"`
	Timestamp   *time.Time    `json:"timestamp,omitempty"`
	Key         *dataReportV3 `json:"key,omitempty"`
	Value       *dataReportV3 `json:"value,omitempty"`
}

type dataReportV3 struct {
	Type string `json:"type"`
	Size int    `json:"size" doc:"in bytes"`
}

func (g *Gateway) recordsV3() []operation {
	return []operation{
		{version: 3, method: "POST", path: pathCluster + "/topics/{topic_name}/records", id: "produceV3", summary: "Produce a record, or a stream of them",
			doc: "The body may be any number of records one after another, without commas, for as long as the connection lasts; each is answered by a report " +
				"in the same order while the stream goes on. What is wrong before the first record was sent is answered by an HTTP status; after that it is " +
				"200 and each report has its own error_code. A stream that stops being JSON is answered by a last report and ended.",
			takes: []string{mediaJSON}, body: recordV3{}, unread: true, status: 200, answer: reportV3{}, fails: []int{400, 404}, handle: g.produceRecords},
	}
}

// entry is one record of a stream, with its report in the making.
type entry struct {
	record *kgo.Record
	key    string // the key's type, "" for none
	value  string
	err    error // why it isn't sent
}

// readRecordV3 reads one record.
func readRecordV3(data []byte) (e entry) {
	e.record = &kgo.Record{Partition: unassigned}
	if !utf8.Valid(data) {
		e.err = fail(http.StatusBadRequest, "Malformed JSON: it is not UTF-8.")
		return e
	}
	r := readerV3{lexer: lexer{b: data}, entry: &e}
	if err := r.object("an object", r.member); err != nil {
		e.err = err
	}
	return e
}

type readerV3 struct {
	lexer
	*entry
}

func (r *readerV3) member(name string) (err error) {
	switch name {
	case "partition_id":
		if r.null() {
			return nil
		}
		var n int64
		if n, err = r.integer(32); err == nil && n < 0 {
			err = fail(http.StatusUnprocessableEntity, "may not be negative")
		}
		r.record.Partition = int32(n)
	case "headers":
		r.record.Headers = nil
		if r.null() {
			return nil
		}
		err = r.array("a list", r.header)
	case "key":
		r.key, r.record.Key, err = r.typed()
	case "value":
		r.value, r.record.Value, err = r.typed()
	case "timestamp":
		err = r.time()
	default:
		return fail(http.StatusUnprocessableEntity, "Unrecognized field: %.100s", name)
	}
	return inside(err, "%s", name)
}

func (r *readerV3) header() error {
	var header kgo.RecordHeader
	named := false
	err := r.object("an object", func(name string) (err error) {
		var text []byte
		switch name {
		case "name":
			text, err = r.text()
			header.Key, named = string(text), true
		case "value":
			if r.null() {
				header.Value = nil
				return nil
			}
			if text, err = r.text(); err == nil {
				header.Value, err = decodeBase64(text)
			}
		default:
			return fail(http.StatusUnprocessableEntity, "Unrecognized field: %.100s", name)
		}
		return inside(err, "%s", name)
	})
	if err == nil && !named {
		err = fail(http.StatusUnprocessableEntity, "name is missing")
	}
	r.record.Headers = append(r.record.Headers, header)
	return err
}

func (r *readerV3) time() error {
	if r.null() {
		return nil
	}
	text, err := r.text()
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil || at.UnixMilli() < 0 {
		return fail(http.StatusUnprocessableEntity, "want a time such as 2024-02-29T12:00:00Z, from 1970 on")
	}
	r.record.Timestamp = at.Truncate(time.Millisecond).UTC()
	return nil
}

// typed reads a key or a value with its type.
func (r *readerV3) typed() (kind string, data []byte, err error) {
	if r.null() {
		return "", nil, nil
	}
	var raw []byte
	err = r.object("an object", func(name string) (err error) {
		switch name {
		case "type":
			var text []byte
			text, err = r.text()
			kind = string(text)
		case "data":
			raw, err = r.raw()
		default:
			err = fail(http.StatusUnprocessableEntity, "Unrecognized field: %.100s", name)
		}
		return err
	})
	if err != nil {
		return kind, nil, err
	}
	data, err = decodeTyped(kind, raw)
	return kind, data, err
}

// decodeTyped turns what is embedded into bytes. raw is a valid JSON value, or nil.
func decodeTyped(kind string, raw []byte) ([]byte, error) {
	none := raw == nil || string(raw) == "null"
	l := lexer{b: raw}
	switch kind {
	case "BINARY":
		if none {
			return nil, nil
		}
		text, err := l.text()
		if err != nil {
			return nil, inside(err, "data")
		}
		return decodeBase64(text)
	case "JSON":
		if none {
			return nil, nil
		}
		return raw, nil
	case "STRING":
		if none {
			return nil, nil
		}
		text, err := l.text()
		return text, inside(err, "data")
	case "":
		return nil, fail(http.StatusUnprocessableEntity, "type is missing")
	case "AVRO", "JSONSCHEMA", "PROTOBUF":
		return nil, fail(http.StatusUnprocessableEntity, "type %s needs a schema registry, which there isn't: want BINARY, JSON or STRING", kind)
	}
	return nil, fail(http.StatusUnprocessableEntity, "type %.40q: want BINARY, JSON or STRING", kind)
}

// report appends the answer to one record, a reportV3 and a line's end, by hand: there may be very many. names holds what
// is the same in all, see reportNames. failed is why the record wasn't appended.
func (e *entry) report(b []byte, names string, failed error) []byte {
	if failed != nil {
		return reportFailure(b, failed)
	}
	b = append(b, `{"error_code":200,`...)
	b = append(b, names...)
	b = append(b, `"partition_id":`...)
	b = strconv.AppendInt(b, int64(e.record.Partition), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, e.record.Offset, 10)
	b = append(b, `,"timestamp":"`...)
	b = e.record.Timestamp.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
	b = append(b, '"')
	b = reportData(b, "key", e.key, len(e.record.Key))
	b = reportData(b, "value", e.value, len(e.record.Value))
	return append(b, "}\r\n"...)
}

func reportFailure(b []byte, failed error) []byte {
	answer := fromError(failed)
	return append(append(b, mustJSON(reportV3{ErrorCode: answer.Code, Message: answer.Message})...), '\r', '\n')
}

// reportData appends what is said of a key or a value; kind, one of the types, is "" for none.
func reportData(b []byte, name, kind string, size int) []byte {
	if kind == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":{"type":"`...)
	b = append(append(b, kind...), `","size":`...)
	return append(strconv.AppendInt(b, int64(size), 10), '}')
}

// reportNames is the part of every report that names the topic.
func reportNames(at place, topic string) string {
	return `"cluster_id":` + string(mustJSON(at.cluster)) + `,"topic_name":` + string(mustJSON(topic)) + `,`
}
