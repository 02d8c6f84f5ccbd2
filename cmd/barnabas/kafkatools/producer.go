package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func producerTool() Tool {
	return Tool{
		Name:  "kafka-console-producer",
		About: "This tool helps to read data from standard input and publish it to Kafka.",
		options: []option{
			bootstrapOption(), commandConfigOption(),
			{name: "broker-list", arg: "broker-list", about: "The older name of --bootstrap-server."},
			{name: "topic", arg: "topic", about: "REQUIRED: The topic to produce messages to."},
			{name: "sync", about: "Send one message at a time, and wait for its acknowledgement."},
			{name: "compression-codec", arg: "codec", optional: true, about: "none, gzip, snappy, lz4 or zstd. Without value, gzip."},
			{name: "batch-size", arg: "size", bits: 32, preset: "16384", about: "Means nothing here: batches grow with what there is to send."},
			{name: "max-partition-memory-bytes", arg: "bytes", bits: 32, about: "Means nothing here, either."},
			{name: "message-send-max-retries", arg: "n", bits: 32, preset: "3", about: "How often to try again."},
			{name: "retry-backoff-ms", arg: "ms", bits: 64, preset: "100", about: "How long to wait before it."},
			{name: "timeout", arg: "ms", bits: 64, preset: "1000", about: "The longest time a message waits for others to fill its batch (linger.ms)."},
			{name: "request-required-acks", arg: "acks", preset: "-1", about: "The acknowledgements to wait for: 0, 1, -1 or all."},
			{name: "request-timeout-ms", arg: "ms", bits: 32, preset: "1500", about: "How long to wait for the broker's answer."},
			{name: "metadata-expiry-ms", arg: "ms", bits: 64, preset: "300000", about: "After how long the cluster is asked for its metadata again."},
			{name: "max-block-ms", arg: "ms", bits: 64, preset: "60000", about: "How long to wait until a message can be sent."},
			{name: "max-memory-bytes", arg: "bytes", bits: 64, preset: "33554432", about: "The most bytes that wait to be sent."},
			{name: "socket-buffer-size", arg: "size", bits: 32, preset: "102400", about: "Means nothing here: it is left to the system."},
			{name: "line-reader", arg: "class", preset: lineReaderClass, about: "Only the default."},
			{name: "property", arg: "prop", many: true, about: "The older name of --reader-property."},
			{name: "reader-property", arg: "prop", many: true, about: "A setting of the reader, NAME=VALUE: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, headers.key.separator, ignore.error, null.marker."},
			{name: "reader-config", arg: "file", about: "Properties file for the reader."},
			{name: "producer-property", arg: "prop", many: true, about: "The older name of --command-property."},
			{name: "command-property", arg: "prop", many: true, about: "A setting of the client, NAME=VALUE. It goes over --command-config."},
			{name: "producer.config", arg: "file", about: "The older name of --command-config."},
		},
		run: func(ctx context.Context, c *call) error { return c.produce(ctx) },
	}
}

const lineReaderClass = "org.apache.kafka.tools.LineMessageReader"

// either takes the arguments of an option by its new or its old name, and refuses both.
func (c *call) either(name, old string) ([]string, error) {
	if c.has(name) && c.has(old) {
		return nil, misused("Options --%s and --%s cannot be specified together.", old, name)
	}
	if c.has(old) {
		return c.values[old], nil
	}
	return c.values[name], nil
}

// clientProperties reads a client's file and the properties that go over it, each by its new or its old name.
func (c *call) clientProperties(oldConfig, oldProperty string) (*properties, error) {
	files, err := c.either("command-config", oldConfig)
	if err != nil {
		return nil, err
	}
	over, err := c.either("command-property", oldProperty)
	if err != nil {
		return nil, err
	}
	return loadProperties(strings.Join(files, ""), pairs(over))
}

// merge is a setting of the client: from the option, else from the properties, else the option's preset.
func (c *call) merge(p *properties, name, option string) string {
	if c.has(option) {
		p.get(name, "")
		return c.text(option)
	}
	return p.get(name, c.text(option))
}

func (c *call) mergeNumber(p *properties, name, option string) (int64, error) {
	text := c.merge(p, name, option)
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: want a number that isn't negative, not %q", name, text)
	}
	return n, nil
}

func (c *call) produce(ctx context.Context) error {
	servers := c.text("bootstrap-server")
	if servers == "" {
		if servers = c.text("broker-list"); servers == "" {
			return misused("Missing required option(s) [bootstrap-server]")
		}
	}
	if err := c.require("topic"); err != nil {
		return err
	}
	p, err := c.clientProperties("producer.config", "producer-property")
	if err != nil {
		return err
	}
	reader, err := c.lineReader()
	if err != nil {
		return err
	}
	options, err := c.producerOptions(p)
	if err != nil {
		return err
	}
	k, err := c.connect(ctx, servers, p, "console-producer", options...)
	if err != nil {
		return err
	}
	defer k.Close()
	return c.produceAll(ctx, k, reader)
}

// producerOptions turns options and properties into the client's. As with Kafka, what an option has as preset is weaker than a property.
func (c *call) producerOptions(p *properties) ([]kgo.Opt, error) {
	p.get("key.serializer", "") // bytes are sent as they are, whatever these are
	p.get("value.serializer", "")
	batch := "batch-size"
	if c.has("max-partition-memory-bytes") {
		batch = "max-partition-memory-bytes"
	}
	numbers := map[string]int64{}
	for name, option := range map[string]string{
		"linger.ms": "timeout", "retries": "message-send-max-retries", "retry.backoff.ms": "retry-backoff-ms", "request.timeout.ms": "request-timeout-ms",
		"buffer.memory": "max-memory-bytes", "batch.size": batch, "metadata.max.age.ms": "metadata-expiry-ms", "max.block.ms": "max-block-ms", "send.buffer.bytes": "socket-buffer-size",
	} {
		n, err := c.mergeNumber(p, name, option)
		if err != nil {
			return nil, err
		}
		numbers[name] = n
	}
	millis := func(name string) time.Duration { return time.Duration(numbers[name]) * time.Millisecond }
	delivery, err := p.millis("delivery.timeout.ms", 2*time.Minute)
	if err != nil {
		return nil, err
	}
	largest, err := strconv.ParseInt(p.get("max.request.size", "1048576"), 10, 32)
	if err != nil || largest < 1 {
		return nil, errors.New("max.request.size: want bytes")
	}
	p.values["request.timeout.ms"] = strconv.FormatInt(numbers["request.timeout.ms"], 10) // what connect reads
	p.values["default.api.timeout.ms"] = strconv.FormatInt(numbers["max.block.ms"], 10)
	options := []kgo.Opt{
		kgo.DefaultProduceTopic(c.text("topic")), kgo.AllowAutoTopicCreation(), kgo.ProducerLinger(millis("linger.ms")),
		kgo.ProduceRequestTimeout(max(millis("request.timeout.ms"), 100*time.Millisecond)), kgo.RecordDeliveryTimeout(max(delivery, time.Second)),
		kgo.RecordRetries(int(numbers["retries"]) + 1), kgo.ProducerBatchMaxBytes(int32(max(largest, 1024))),
		kgo.MaxBufferedBytes(int(max(numbers["buffer.memory"], 1<<20))), kgo.MetadataMaxAge(max(millis("metadata.max.age.ms"), time.Second)),
		kgo.RetryBackoffFn(func(int) time.Duration { return millis("retry.backoff.ms") }),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // Kafka's own hash of keys, and whole batches without
	}
	codec := "none"
	if c.has("compression-codec") {
		p.get("compression.type", "")
		if codec = c.text("compression-codec"); codec == "" {
			codec = "gzip"
		}
	} else {
		codec = p.get("compression.type", codec)
	}
	compression, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}[codec]
	if !ok {
		return nil, fmt.Errorf("Unknown compression name: %s", codec) //nolint:staticcheck // Kafka's words
	}
	options = append(options, kgo.ProducerBatchCompression(compression))
	idempotent := p.get("enable.idempotence", "true") == "true"
	switch acks := c.merge(p, "acks", "request-required-acks"); acks {
	case "0":
		return append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()), nil
	case "1":
		return append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite()), nil
	case "-1", "all":
		if !idempotent {
			options = append(options, kgo.DisableIdempotentWrite())
		}
		return options, nil
	default:
		return nil, fmt.Errorf("Invalid value %s for configuration acks: String must be one of: all, -1, 0, 1", acks) //nolint:staticcheck // Kafka's words
	}
}

// produceAll sends what the reader reads. Messages that are lost are told, and make the exit code 1: other than with Kafka's
// tool, nobody who asks for the code takes them for sent.
func (c *call) produceAll(ctx context.Context, k *cluster, reader *lineReader) error {
	var mu sync.Mutex // of lost, and of the writing to Err
	lost := 0
	done := func(r *kgo.Record, err error) {
		if err == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		lost++
		fmt.Fprintf(c.Err, "ERROR: Error when sending message to topic %s with key: %s, value: %d bytes with error: %v\n", r.Topic, sizeOrNull(r.Key), len(r.Value), err)
	}
	var failed error
	for ctx.Err() == nil {
		if c.Terminal {
			fmt.Fprint(c.Out, ">")
		}
		record, err := reader.next()
		if err != nil {
			failed = err
			break
		}
		if record == nil {
			break
		}
		if c.has("sync") {
			if failed = k.ProduceSync(ctx, record).FirstErr(); failed != nil {
				break
			}
			continue
		}
		k.Produce(ctx, record, done)
	}
	failed = errors.Join(failed, k.Flush(context.WithoutCancel(ctx))) // bounded by the delivery timeout
	mu.Lock()
	defer mu.Unlock()
	if failed == nil && lost > 0 {
		return codeError(1)
	}
	return failed
}

func sizeOrNull(b []byte) string {
	if b == nil {
		return "null"
	}
	return fmt.Sprintf("%d bytes", len(b))
}
