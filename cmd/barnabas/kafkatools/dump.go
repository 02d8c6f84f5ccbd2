package kafkatools

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
	"github.com/barnabas-mq/barnabas/core/record"
)

func dumpTool() Tool {
	return Tool{
		Name:  "kafka-dump-log",
		About: "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly corrupt log segment.",
		options: []option{
			{name: "files", arg: "file1,file2", about: "REQUIRED: The comma separated list of data and index log files to be dumped."},
			{name: "print-data-log", about: "Print the messages, too. A decoder does as well."},
			{name: "deep-iteration", about: "Show the messages of batches, without what is in them."},
			{name: "verify-index-only", about: "Verify indexes without printing them."},
			{name: "index-sanity-check", about: "Only check what a broker checks of indexes when it starts."},
			{name: "max-message-size", arg: "size", bits: 32, preset: "5242880", about: "Means nothing here: a batch is read as far as it reaches."},
			{name: "max-bytes", arg: "size", bits: 32, preset: strconv.Itoa(math.MaxInt32), about: "Read only so many bytes of each log."},
			{name: "key-decoder-class", arg: "class", optional: true, preset: decoderPackage + "StringDecoder", about: "How to read keys: Kafka's StringDecoder, IntegerDecoder or LongDecoder."},
			{name: "value-decoder-class", arg: "class", optional: true, preset: decoderPackage + "StringDecoder", about: "How to read values."},
			{name: "offsets-decoder", about: "Read messages as those of __consumer_offsets."},
			{name: "transaction-log-decoder", about: "Read messages as those of __transaction_state."},
			{name: "cluster-metadata-decoder", about: "Not supported: there is no such log here."},
			{name: "remote-log-metadata-decoder", about: "Not supported."},
			{name: "share-group-state-decoder", about: "Not supported."},
			{name: "skip-record-metadata", about: "Leave out what is known of each message beside its key and value, and control records."},
		},
		run: func(ctx context.Context, c *call) error { return c.dump(ctx) },
	}
}

const decoderPackage = "org.apache.kafka.tools.api."

// dumper prints files.
type dumper struct {
	*call
	out      *bufio.Writer
	codecs   record.Codecs
	deep     bool
	contents bool
	bare     bool // without what is known of a message beside key and value
	most     int64
	parse    func(record.Record) (key, value string, hasKey, hasValue bool, err error)
	faults   []string // for the end, as with Kafka
}

func (c *call) dump(ctx context.Context) (err error) {
	if err := c.require("files"); err != nil {
		return err
	}
	for _, name := range []string{"cluster-metadata-decoder", "remote-log-metadata-decoder", "share-group-state-decoder"} {
		if c.has(name) {
			return misused("--%s isn't supported", name)
		}
	}
	d := &dumper{call: c, out: bufio.NewWriter(c.Out), most: c.number("max-bytes"), bare: c.has("skip-record-metadata")}
	d.contents = c.count("print-data-log", "offsets-decoder", "transaction-log-decoder", "key-decoder-class", "value-decoder-class") > 0
	d.deep = d.contents || c.has("deep-iteration")
	if d.parse, err = c.messageParser(); err != nil {
		return err
	}
	codecs, stop, err := c.Codecs(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	d.codecs = codecs
	for _, file := range strings.Split(c.text("files"), ",") {
		if err := errors.Join(d.file(file), d.out.Flush()); err != nil {
			return err
		}
	}
	for _, fault := range d.faults {
		fmt.Fprintln(c.Err, fault)
	}
	return nil
}

func (d *dumper) print(format string, args ...any) { fmt.Fprintf(d.out, format, args...) }

func (d *dumper) fault(format string, args ...any) {
	d.faults = append(d.faults, fmt.Sprintf(format, args...))
}

func (d *dumper) file(file string) error {
	d.print("Dumping %s\n", file)
	kind, base := inspect.TypeOf(file)
	switch kind {
	case inspect.Log:
		return d.log(file, base)
	case inspect.OffsetIndex:
		return d.offsetIndex(file, base)
	case inspect.TimeIndex:
		return d.timeIndex(file, base)
	case inspect.TxnIndex, inspect.Snapshot:
		b, err := inspect.ReadFile(file)
		if err != nil {
			return err
		}
		if kind == inspect.TxnIndex {
			return d.txnIndex(b)
		}
		return d.snapshot(b)
	}
	if _, err := os.Stat(file); err != nil {
		return err
	}
	fmt.Fprintf(d.Err, "Ignoring unknown file %s\n", file)
	return nil
}

func (d *dumper) txnIndex(b []byte) error {
	list, err := inspect.ReadTxnIndex(b)
	for _, t := range list {
		d.print("version: 0 producerId: %d firstOffset: %d lastOffset: %d lastStableOffset: %d\n", t.ProducerID, t.FirstOffset, t.LastOffset, t.LastStableOffset)
	}
	return err
}

func (d *dumper) snapshot(b []byte) error {
	list, err := inspect.ReadSnapshot(b)
	for _, p := range list {
		d.print("producerId: %d producerEpoch: %d coordinatorEpoch: %d currentTxnFirstOffset: %s lastTimestamp: %d",
			p.ID, p.Epoch, p.CoordinatorEpoch, optionalLong(p.TxnFirstOffset, p.TxnFirstOffset >= 0), p.Timestamp)
		if p.LastOffset >= 0 {
			d.print(" firstSequence: %d lastSequence: %d lastOffset: %d offsetDelta: %d timestamp: %d",
				sequence(p.LastSequence, int64(-p.OffsetDelta)), p.LastSequence, p.LastOffset, p.OffsetDelta, p.Timestamp)
		}
		d.print("\n")
	}
	if err != nil { // Kafka takes it for none
		fmt.Fprintln(d.Err, err)
	}
	return nil
}

// optionalLong is how Java prints an OptionalLong.
func optionalLong(v int64, there bool) string {
	if !there {
		return "OptionalLong.empty"
	}
	return fmt.Sprintf("OptionalLong[%d]", v)
}

// sequence adds to a sequence number, which goes on with 0 behind the largest; -1 is none.
func sequence(base int32, delta int64) int32 {
	if base < 0 {
		return base
	}
	const all = int64(math.MaxInt32) + 1
	return int32(((int64(base)+delta)%all + all) % all)
}

// log prints a segment batch by batch.
func (d *dumper) log(file string, base int64) error {
	d.print("Log starting offset: %d\n", base)
	s, err := inspect.OpenSegment(file)
	if err != nil {
		return err
	}
	defer s.Close()
	end, last := int64(0), int64(-1)
	for b, err := range s.Batches() {
		var damage *inspect.Damage
		valid := true
		switch {
		case errors.As(err, &damage) && damage.Kind == inspect.Corrupt && b.Length > 0:
			valid = false // shown as far as its header goes
		case errors.As(err, &damage):
			d.trailing(file, s.Size()-end)
			return nil
		case err != nil:
			return err
		}
		if b.Position+int64(b.Size()) > d.most {
			return nil
		}
		d.batch(b, valid)
		end = b.Position + int64(b.Size())
		if !valid || !d.deep {
			continue
		}
		if err := d.records(file, b, &last); err != nil {
			return err
		}
	}
	d.trailing(file, s.Size()-end)
	return nil
}

func (d *dumper) trailing(file string, n int64) {
	if n > 0 && d.most == math.MaxInt32 {
		d.print("Found %d invalid bytes at the end of %s\n", n, filepath.Base(file))
	}
}

func timeKind(b inspect.Batch) string {
	switch {
	case b.Magic == 0:
		return "NoTimestampType"
	case b.Attributes.LogAppendTime():
		return "LogAppendTime"
	}
	return "CreateTime"
}

func (d *dumper) batch(b inspect.Batch, valid bool) {
	if b.Legacy() {
		d.print("offset: %d", b.LastOffset())
	} else {
		horizon, has := b.DeleteHorizonMs()
		d.print("baseOffset: %d lastOffset: %d count: %d baseSequence: %d lastSequence: %d producerId: %d producerEpoch: %d partitionLeaderEpoch: %d isTransactional: %t isControl: %t deleteHorizonMs: %s",
			b.BaseOffset, b.LastOffset(), b.Count, b.BaseSequence, sequence(b.BaseSequence, int64(b.LastOffsetDelta)), b.ProducerID, b.ProducerEpoch, b.LeaderEpoch,
			b.Attributes.Transactional(), b.Attributes.Control(), optionalLong(horizon, has))
	}
	d.print(" position: %d %s: %d size: %d magic: %d compresscodec: %s crc: %d isvalid: %t\n",
		b.Position, timeKind(b), b.MaxTimestamp, b.Size(), b.Magic, b.Attributes.Codec(), b.CRC, valid)
}

// records prints the messages of a batch. Each offset but one more than the last is told in the end.
func (d *dumper) records(file string, b inspect.Batch, last *int64) error {
	for r, err := range b.Each(d.codecs, math.MaxInt32) {
		if err != nil {
			return fmt.Errorf("%s: batch at %d: %w", file, b.Position, err)
		}
		if r.Offset != *last+1 {
			d.fault("Non-consecutive offsets in %s\n  %d is followed by %d", absolute(file), *last, r.Offset)
		}
		*last = r.Offset
		prefix := "| "
		if !d.bare {
			prefix = " "
			d.recordMetadata(b, r)
		}
		if d.contents && !b.Attributes.Control() {
			key, value, hasKey, hasValue, err := d.parse(r)
			if err != nil {
				return fmt.Errorf("%s: offset %d: %w", file, r.Offset, err)
			}
			if hasKey {
				d.print("%skey: %s", prefix, key)
				prefix = " "
			}
			if hasValue {
				d.print("%spayload: %s", prefix, value)
			}
		}
		d.print("\n")
	}
	return nil
}

func (d *dumper) recordMetadata(b inspect.Batch, r record.Record) {
	d.print("| offset: %d %s: %d keySize: %d valueSize: %d", r.Offset, timeKind(b), r.Timestamp, sizeOf(r.Key), sizeOf(r.Value))
	if b.Legacy() {
		d.print(" isValid: true crc: %d", b.CRC)
		return
	}
	var keys []string
	for key := range r.Headers() {
		keys = append(keys, string(key))
	}
	d.print(" sequence: %d headerKeys: [%s]", sequence(b.BaseSequence, r.Offset-b.BaseOffset), strings.Join(keys, ","))
	if b.Attributes.Control() && len(r.Key) >= 4 {
		switch kind := binary.BigEndian.Uint16(r.Key[2:]); {
		case kind <= 1 && len(r.Value) >= 6:
			d.print(" endTxnMarker: %s coordinatorEpoch: %d", []string{"ABORT", "COMMIT"}[kind], int32(binary.BigEndian.Uint32(r.Value[2:])))
		default:
			d.print(" controlType: UNKNOWN(%d)", kind)
		}
	}
}

func sizeOf(b []byte) int {
	if b == nil {
		return -1
	}
	return len(b)
}

func absolute(file string) string {
	if path, err := filepath.Abs(file); err == nil {
		return path
	}
	return file
}

// messageParser makes what reads keys and values.
func (c *call) messageParser() (func(record.Record) (string, string, bool, bool, error), error) {
	decode := decodeGroupRecord
	switch {
	case c.has("transaction-log-decoder"):
		decode = decodeTransactionRecord
	case c.has("offsets-decoder"):
	default:
		key, err := decoder(c.text("key-decoder-class"))
		if err != nil {
			return nil, err
		}
		value, err := decoder(c.text("value-decoder-class"))
		if err != nil {
			return nil, err
		}
		return func(r record.Record) (k, v string, hasKey, hasValue bool, err error) {
			if r.Key != nil {
				k, err = key(r.Key)
			}
			if r.Value != nil && err == nil {
				v, err = value(r.Value)
			}
			return k, v, r.Key != nil, r.Value != nil, err
		}, nil
	}
	type part struct {
		Type    string `json:"type,omitempty"`
		Version string `json:"version,omitempty"`
		Data    any    `json:"data"`
	}
	return func(r record.Record) (k, v string, hasKey, hasValue bool, err error) {
		if r.Key == nil {
			return "", "", false, false, fmt.Errorf("Failed to decode message at offset %d using the specified decoder (message had a missing key)", r.Offset) //nolint:staticcheck // Kafka's words
		}
		one, known, err := decode(r.Key, r.Value)
		if err != nil {
			return fmt.Sprintf("Error at offset %d, skipping. %v", r.Offset, err), "", true, false, nil
		}
		if !known {
			return fmt.Sprintf("Unknown record type %d at offset %d, skipping.", one.kind, r.Offset), "", true, false, nil
		}
		k, v = compact(part{Type: strconv.Itoa(int(one.kind)), Data: one.key}), "<DELETE>"
		if one.value != nil {
			v = compact(part{Version: strconv.Itoa(int(one.version)), Data: one.value})
		}
		return k, v, true, true, nil
	}, nil
}

// decoder is one of Kafka's decoders.
func decoder(class string) (func([]byte) (string, error), error) {
	switch strings.TrimPrefix(strings.TrimPrefix(class, decoderPackage), "kafka.serializer.") {
	case "", "StringDecoder":
		return deserializer("StringDeserializer")
	case "IntegerDecoder":
		return deserializer("IntegerDeserializer")
	case "LongDecoder":
		return deserializer("LongDeserializer")
	}
	return nil, misused("there is no decoder %s here: only StringDecoder, IntegerDecoder and LongDecoder", class)
}
