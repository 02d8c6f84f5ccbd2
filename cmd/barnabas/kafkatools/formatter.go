package kafkatools

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	formatterPackage  = "org.apache.kafka.tools.consumer."
	deserializerStart = "org.apache.kafka.common.serialization."
)

// formatter makes what prints a message, of --formatter and its settings.
func (c *call) formatter() (func(*bufio.Writer, *kgo.Record) error, error) {
	over, err := c.either("formatter-property", "property")
	if err != nil {
		return nil, err
	}
	p, err := loadProperties(c.text("formatter-config"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"key.deserializer", "value.deserializer"} {
		if option := strings.ReplaceAll(name, ".", "-"); c.text(option) != "" {
			p.values[name] = c.text(option)
		}
	}
	for name, value := range pairs(over) {
		p.values[name] = value
	}
	var write func(*bufio.Writer, *kgo.Record) error
	class := c.text("formatter")
	switch strings.TrimPrefix(strings.TrimPrefix(class, formatterPackage), "kafka.tools.") {
	case "DefaultMessageFormatter":
		write, err = defaultFormatter(p)
	case "LoggingMessageFormatter":
		if write, err = defaultFormatter(p); err == nil {
			write = c.logging(write)
		}
	case "NoOpMessageFormatter":
		write = func(*bufio.Writer, *kgo.Record) error { return nil }
	case "OffsetsMessageFormatter", "GroupMetadataManager$OffsetsMessageFormatter":
		write = coordinatorFormatter(offsetRecords)
	case "GroupMetadataMessageFormatter", "GroupMetadataManager$GroupMetadataMessageFormatter":
		write = coordinatorFormatter(groupRecords)
	default:
		return nil, misused("--formatter: there is no %s here", class)
	}
	if names := p.unused(); err == nil && len(names) > 0 {
		fmt.Fprintf(c.Err, "WARN: these properties mean nothing to the formatter: %s\n", strings.Join(sorted(names), ", "))
	}
	return write, err
}

// logging prints messages as another formatter does, and says of each that it came.
func (c *call) logging(write func(*bufio.Writer, *kgo.Record) error) func(*bufio.Writer, *kgo.Record) error {
	return func(w *bufio.Writer, r *kgo.Record) error {
		fmt.Fprintf(c.Err, "INFO: %s:%d, key:%s, value:%s\n", timestampType(r), r.Timestamp.UnixMilli(), textOrNull(r.Key), textOrNull(r.Value))
		return write(w, r)
	}
}

func textOrNull(b []byte) string {
	if b == nil {
		return "null"
	}
	return string(b)
}

// timestampType is Kafka's name for what a message's timestamp is.
func timestampType(r *kgo.Record) string {
	if r.Attrs.TimestampType() == 1 {
		return "LogAppendTime"
	}
	return "CreateTime"
}

// defaultFormatter prints what is wanted of a message in one line, as Kafka's DefaultMessageFormatter does.
func defaultFormatter(p *properties) (func(*bufio.Writer, *kgo.Record) error, error) {
	_, sayValue := p.values["print.value"]
	printValue := !sayValue || p.isTrue("print.value")
	p.get("print.value", "")
	printTimestamp, printKey, printOffset := p.isTrue("print.timestamp"), p.isTrue("print.key"), p.isTrue("print.offset")
	printPartition, printHeaders, printDelivery, printEpoch := p.isTrue("print.partition"), p.isTrue("print.headers"), p.isTrue("print.delivery"), p.isTrue("print.epoch")
	columnEnd, lineEnd := p.get("key.separator", "\t"), p.get("line.separator", "\n")
	headersSeparator, null := p.get("headers.separator", ","), p.get("null.literal", "null")
	read := map[string]func([]byte) (string, error){}
	for _, name := range []string{"key.deserializer", "value.deserializer", "headers.deserializer"} {
		f, err := deserializer(p.get(name, ""))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		read[name] = func(b []byte) (string, error) {
			if b == nil {
				return null, nil
			}
			return f(b)
		}
	}
	column := func(w *bufio.Writer, text string, more bool) {
		_, _ = w.WriteString(text)
		if more {
			_, _ = w.WriteString(columnEnd)
		} else {
			_, _ = w.WriteString(lineEnd)
		}
	}
	headers := func(r *kgo.Record) (string, error) {
		if len(r.Headers) == 0 {
			return "NO_HEADERS", nil
		}
		texts := make([]string, len(r.Headers))
		for i, h := range r.Headers {
			value, err := read["headers.deserializer"](h.Value)
			if err != nil {
				return "", err
			}
			texts[i] = h.Key + ":" + value
		}
		return strings.Join(texts, headersSeparator), nil
	}
	return func(w *bufio.Writer, r *kgo.Record) error {
		if printTimestamp {
			text := "NO_TIMESTAMP"
			if r.Attrs.TimestampType() >= 0 {
				text = timestampType(r) + ":" + strconv.FormatInt(r.Timestamp.UnixMilli(), 10)
			}
			column(w, text, printPartition || printOffset || printDelivery || printEpoch || printHeaders || printKey || printValue)
		}
		if printPartition {
			column(w, "Partition:"+strconv.Itoa(int(r.Partition)), printOffset || printDelivery || printEpoch || printHeaders || printKey || printValue)
		}
		if printOffset {
			column(w, "Offset:"+strconv.FormatInt(r.Offset, 10), printDelivery || printEpoch || printHeaders || printKey || printValue)
		}
		if printDelivery {
			column(w, "Delivery:NONE", printEpoch || printHeaders || printKey || printValue)
		}
		if printEpoch {
			column(w, "Epoch:"+strconv.Itoa(int(r.LeaderEpoch)), printHeaders || printKey || printValue)
		}
		if printHeaders {
			text, err := headers(r)
			if err != nil {
				return err
			}
			column(w, text, printKey || printValue)
		}
		if printKey {
			text, err := read["key.deserializer"](r.Key)
			if err != nil {
				return err
			}
			column(w, text, printValue)
		}
		if printValue {
			text, err := read["value.deserializer"](r.Value)
			if err != nil {
				return err
			}
			column(w, text, false)
		}
		return nil
	}, nil
}

// deserializer makes text of bytes as one of Kafka's own deserializers, and Java's way to write what it gives, do.
func deserializer(class string) (func([]byte) (string, error), error) {
	name := strings.TrimPrefix(class, deserializerStart)
	sized := func(n int, text func([]byte) string) func([]byte) (string, error) {
		return func(b []byte) (string, error) {
			if len(b) != n {
				return "", fmt.Errorf("%s: want %d bytes, not %d", name, n, len(b))
			}
			return text(b), nil
		}
	}
	switch name {
	case "", "StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer", "ByteBufferDeserializer":
		return func(b []byte) (string, error) { return string(b), nil }, nil
	case "ShortDeserializer":
		return sized(2, func(b []byte) string { return strconv.Itoa(int(int16(binary.BigEndian.Uint16(b)))) }), nil
	case "IntegerDeserializer":
		return sized(4, func(b []byte) string { return strconv.Itoa(int(int32(binary.BigEndian.Uint32(b)))) }), nil
	case "LongDeserializer":
		return sized(8, func(b []byte) string { return strconv.FormatInt(int64(binary.BigEndian.Uint64(b)), 10) }), nil
	case "DoubleDeserializer":
		return sized(8, func(b []byte) string { return javaDouble(math.Float64frombits(binary.BigEndian.Uint64(b))) }), nil
	case "BooleanDeserializer":
		return sized(1, func(b []byte) string { return strconv.FormatBool(b[0] != 0) }), nil
	case "UUIDDeserializer":
		return func(b []byte) (string, error) {
			id, err := uuid.ParseBytes(b)
			return id.String(), err
		}, nil
	}
	return nil, fmt.Errorf("there is no %s here", class)
}
