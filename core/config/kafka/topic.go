package kafka

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// TopicConfig is what a topic's properties come to. Times are in milliseconds, as records' timestamps are, for they
// are compared with those and may be as large as an int64; sizes are in bytes. What has no effect has no field.
type TopicConfig struct {
	CleanupPolicy CleanupPolicy `kafka:"cleanup.policy"`

	SegmentBytes       int32 `kafka:"segment.bytes"`
	SegmentMs          int64 `kafka:"segment.ms"`
	SegmentJitterMs    int64 `kafka:"segment.jitter.ms"`
	SegmentIndexBytes  int32 `kafka:"segment.index.bytes"`
	IndexIntervalBytes int32 `kafka:"index.interval.bytes"`
	Preallocate        bool  `kafka:"preallocate"`
	FileDeleteDelayMs  int64 `kafka:"file.delete.delay.ms"`

	RetentionMs    int64 `kafka:"retention.ms"`    // -1 is for ever
	RetentionBytes int64 `kafka:"retention.bytes"` // -1 is no bound

	DeleteRetentionMs      int64   `kafka:"delete.retention.ms"`
	MinCleanableDirtyRatio float64 `kafka:"min.cleanable.dirty.ratio"`
	MinCompactionLagMs     int64   `kafka:"min.compaction.lag.ms"`
	MaxCompactionLagMs     int64   `kafka:"max.compaction.lag.ms"`

	FlushMessages int64 `kafka:"flush.messages"`
	FlushMs       int64 `kafka:"flush.ms"`

	MaxMessageBytes   int32 `kafka:"max.message.bytes"`
	MinInsyncReplicas int32 `kafka:"min.insync.replicas"`

	CompressionType      string `kafka:"compression.type"` // a codec's name, "uncompressed", or "producer"
	CompressionGzipLevel int32  `kafka:"compression.gzip.level"`
	CompressionLz4Level  int32  `kafka:"compression.lz4.level"`
	CompressionZstdLevel int32  `kafka:"compression.zstd.level"`

	MessageTimestampType            TimestampType `kafka:"message.timestamp.type"`
	MessageTimestampBeforeMaxMs     int64         `kafka:"message.timestamp.before.max.ms"`
	MessageTimestampAfterMaxMs      int64         `kafka:"message.timestamp.after.max.ms"`
	MessageTimestampDifferenceMaxMs int64         `kafka:"message.timestamp.difference.max.ms"`
	MessageDownconversionEnable     bool          `kafka:"message.downconversion.enable"`

	UncleanLeaderElection bool `kafka:"unclean.leader.election.enable"`

	LeaderThrottledReplicas   ThrottledReplicas `kafka:"leader.replication.throttled.replicas"`
	FollowerThrottledReplicas ThrottledReplicas `kafka:"follower.replication.throttled.replicas"`

	Partitioner      string `kafka:"barnabas.partitioner"`       // "" when the topic declares none
	PartitionerCheck string `kafka:"barnabas.partitioner.check"` // "off", "count" or "reject"
}

// ThrottledReplicas says which replicas of a topic are throttled (KIP-73).
type ThrottledReplicas struct {
	All   bool
	Those []Replica
}

// Replica is a replica of some topic: a partition on a broker.
type Replica struct{ Partition, Broker int32 }

// UnmarshalText reads *, or PARTITION:BROKER,….
func (r *ThrottledReplicas) UnmarshalText(text []byte) error {
	*r = ThrottledReplicas{}
	if strings.TrimSpace(string(text)) == "*" {
		r.All = true
		return nil
	}
	for _, pair := range splitList(string(text)) {
		partition, broker, _ := strings.Cut(pair, ":")
		p, err := strconv.ParseInt(partition, 10, 32)
		if err != nil {
			return err
		}
		b, err := strconv.ParseInt(broker, 10, 32)
		if err != nil {
			return err
		}
		r.Those = append(r.Those, Replica{int32(p), int32(b)})
	}
	return nil
}

// Has says whether a replica is among them.
func (r ThrottledReplicas) Has(partition, broker int32) bool {
	return r.All || slices.Contains(r.Those, Replica{partition, broker})
}

// CleanupPolicy says what happens to old records. With neither they stay.
type CleanupPolicy struct {
	Compact bool
	Delete  bool
}

// UnmarshalText reads the canonical list.
func (p *CleanupPolicy) UnmarshalText(text []byte) error {
	*p = CleanupPolicy{}
	for _, word := range splitList(string(text)) {
		switch word {
		case "compact":
			p.Compact = true
		case "delete":
			p.Delete = true
		default:
			return fmt.Errorf("unknown cleanup policy %q", word)
		}
	}
	return nil
}

// TimestampType says whose time a record's timestamp is. The numbers are the bit in a batch's attributes.
type TimestampType int8

// The timestamp types.
const (
	CreateTime    TimestampType = 0
	LogAppendTime TimestampType = 1
)

// UnmarshalText reads Kafka's name of the type.
func (t *TimestampType) UnmarshalText(text []byte) error {
	switch string(text) {
	case "CreateTime":
		*t = CreateTime
	case "LogAppendTime":
		*t = LogAppendTime
	default:
		return fmt.Errorf("unknown timestamp type %q", text)
	}
	return nil
}

// TimestampBounds gives how far before and after the broker's clock a record's timestamp may be, in milliseconds. The
// older property for both holds where the newer one was left at its default.
func (c TopicConfig) TimestampBounds() (before, after int64) {
	const unset = 1<<63 - 1
	before, after = c.MessageTimestampBeforeMaxMs, c.MessageTimestampAfterMaxMs
	if before == unset {
		before = c.MessageTimestampDifferenceMaxMs
	}
	if after == unset {
		after = c.MessageTimestampDifferenceMaxMs
	}
	return before, after
}

// TopicConfig gives what a topic's own settings come to on this broker. It fails with the faults of [CheckTopic] if
// the settings aren't valid; the result is then the broker's default for what is wrong.
func (l Layers) TopicConfig(own Values) (TopicConfig, error) {
	err := l.CheckTopic(own)
	config := l.fillTopic(own)
	if err != nil {
		sound := make(Values, len(own))
		for name, value := range own {
			if d, ok := TopicDefinition(name); ok {
				if canonical, err := d.Canonical(value); err == nil && (name != "compression.type" || l.checkCodec(canonical) == nil) {
					sound[name] = canonical
				}
			}
		}
		config = l.fillTopic(sound)
	}
	return config, err
}

func (l Layers) fillTopic(own Values) TopicConfig {
	var config TopicConfig
	fill(&config, func(name string) (string, bool) {
		d, ok := TopicDefinition(name)
		return l.topicValue(own, d), ok
	})
	return config
}

// CheckTopic checks a topic's own settings: each by itself, and those that must fit together under this broker's
// defaults. The error joins one [Fault] for each thing that is wrong.
func (l Layers) CheckTopic(own Values) error {
	var faults []error
	for _, name := range sortedNames(own) {
		if _, err := canonicalTopic(name, own[name]); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 {
		faults = append(faults, l.checkTogether(own))
	}
	return errors.Join(faults...)
}

// checkTogether checks what a topic's own settings, nil for the defaults, come to as a whole.
func (l Layers) checkTogether(own Values) error {
	c := l.fillTopic(own)
	if c.MinCompactionLagMs > c.MaxCompactionLagMs {
		return &Fault{Name: "min.compaction.lag.ms", Kind: ErrInvalidValue, Text: fmt.Sprintf(
			"conflict between min.compaction.lag.ms (%d) and max.compaction.lag.ms (%d): the first must not be larger", c.MinCompactionLagMs, c.MaxCompactionLagMs)}
	}
	return errors.Join(l.checkCodec(c.CompressionType), l.checkPartitioner(c.Partitioner, c.PartitionerCheck))
}

// checkPartitioner refuses a partitioner that this broker doesn't have, and a check that can't be made.
func (l Layers) checkPartitioner(name, check string) error {
	const property = "barnabas.partitioner"
	fault := func(property, text string) error {
		return &Fault{Name: property, Kind: ErrInvalidValue, Text: property + ": " + text}
	}
	if name == "" {
		if check != "off" {
			return fault(property+".check", check+" needs "+property+" to say by which partitioner records are placed")
		}
		return nil
	}
	if l.Partitioners == nil {
		return nil
	}
	at := slices.IndexFunc(l.Partitioners, func(p Partitioner) bool { return p.Name == name })
	if at < 0 {
		names := make([]string, len(l.Partitioners))
		for i, p := range l.Partitioners {
			names[i] = p.Name
		}
		return fault(property, "this broker has no partitioner "+name+"; it has: "+strings.Join(names, ", "))
	}
	if check != "off" && !l.Partitioners[at].Keyed {
		return fault(property+".check", "partitioner "+name+" doesn't place records by their keys, so there is nothing to check")
	}
	return nil
}

// checkCodec refuses a compression type for which this broker has no codec.
func (l Layers) checkCodec(name string) error {
	if l.Codecs == nil || name == "producer" || name == "uncompressed" || slices.Contains(l.Codecs, name) {
		return nil
	}
	const property = "compression.type"
	return &Fault{Name: property, Kind: ErrInvalidValue, Text: fmt.Sprintf("%s: this broker has no codec %s; it has: %s", property, name, strings.Join(l.Codecs, ", "))}
}

// canonicalTopic checks one topic property.
func canonicalTopic(name, value string) (string, error) {
	d, ok := TopicDefinition(name)
	if !ok {
		text := "Unknown topic config name: " + name
		if near := nearestTopic(name); near != "" {
			text += fmt.Sprintf(" (did you mean %q?)", near)
		}
		return "", &Fault{Name: name, Kind: ErrUnknownKey, Text: text}
	}
	canonical, err := d.Canonical(value)
	if err == nil && d.Refused && canonical != d.Default {
		err = invalid(d, value, d.NoEffect)
	}
	return canonical, err
}

func nearestTopic(name string) string {
	if topic, ok := definitions().synonyms[name]; ok {
		return topic
	}
	return nearest(name, definitions().topic)
}

func sortedNames(values Values) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
