package topic_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	offsetstest.Run(t, func(t *testing.T) offsetstest.World {
		log := offsetstest.NewLog(50)
		return offsetstest.World{Keeps: true, Store: func() offsets.Store {
			s, err := topic.New(offsets.Settings{Log: log})
			require.NoError(t, err)
			return s
		}}
	})
}

func TestFactory(t *testing.T) {
	f := topic.NewFactory()
	require.Equal(t, "topic", f.Name())
	_, err := f.New(config.Empty("offsets.topic"), offsets.Settings{})
	require.ErrorContains(t, err, "needs the log")
	s, err := f.New(config.Empty("offsets.topic"), offsets.Settings{Log: offsetstest.NewLog(1)})
	require.NoError(t, err)
	require.Equal(t, "__consumer_offsets", s.Topic())
}

func started(t *testing.T, log *offsetstest.Log, c record.Codecs) *topic.Store {
	s, err := topic.New(offsets.Settings{Log: log, Codecs: c})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func entry(group string, at int64) offsets.Entry {
	return offsets.Entry{Key: offsets.OffsetKey(group, "t", 1), Offset: &offsets.Offset{Offset: at, LeaderEpoch: 4, Metadata: "m", CommitTimestamp: 99, ExpireTimestamp: offsets.None}}
}

func none(offsets.Event) error { return nil }

// TestRecords looks at what lies in the log with another implementation's eyes.
func TestRecords(t *testing.T) {
	log := offsetstest.NewLog(1)
	s := started(t, log, nil)
	require.NoError(t, s.Load(t.Context(), 0, 3, none))
	protocol := "range"
	batch := offsets.Batch{Timestamp: 1234, Entries: []offsets.Entry{
		entry("g", 7), {Key: offsets.OffsetKey("g", "t", 2)},
		{Key: offsets.GroupKey("g"), Meta: &offsets.Group{ProtocolType: "consumer", Generation: 2, Protocol: &protocol, StateTimestamp: 5,
			Members: []offsets.Member{{ID: "m", Subscription: []byte{1}, Assignment: []byte{2}}}}},
	}}
	require.NoError(t, s.Write(t.Context(), 0, 3, batch))
	b, rest, err := record.Next(log.Bytes(0))
	require.NoError(t, err)
	require.Empty(t, rest)
	require.NoError(t, record.CheckCRC(b))
	h := b.Header()
	require.EqualValues(t, 3, h.Count)
	require.EqualValues(t, 1234, h.MaxTimestamp)
	require.EqualValues(t, record.NoProducerID, h.ProducerID)
	require.False(t, h.Attributes.Transactional() || h.Attributes.Control())
	it := record.Iterate(h, b.Records())
	require.True(t, it.Next())
	var key kmsg.OffsetCommitKey
	var value kmsg.OffsetCommitValue
	require.NoError(t, key.ReadFrom(it.Record.Key))
	require.NoError(t, value.ReadFrom(it.Record.Value))
	require.Equal(t, kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "t", Partition: 1}, key)
	require.Equal(t, kmsg.OffsetCommitValue{Version: 3, Offset: 7, LeaderEpoch: 4, Metadata: "m", CommitTimestamp: 99}, value)
	require.True(t, it.Next())
	require.NotNil(t, it.Record.Key)
	require.Nil(t, it.Record.Value, "a tombstone's value is null")
	require.True(t, it.Next())
	var meta kmsg.GroupMetadataValue
	require.NoError(t, meta.ReadFrom(it.Record.Value))
	require.EqualValues(t, 3, meta.Version)
	require.Equal(t, "m", meta.Members[0].MemberID)

	require.NoError(t, s.Write(t.Context(), 0, 3, offsets.Batch{Producer: &offsets.Producer{ID: 8, Epoch: 2}, Entries: []offsets.Entry{entry("g", 9)}}))
	require.NoError(t, s.Write(t.Context(), 0, 3, offsets.Batch{Producer: &offsets.Producer{ID: 8, Epoch: 2}, Ended: offsets.Committed, CoordinatorEpoch: 6}))
	_, rest, err = record.Next(log.Bytes(0))
	require.NoError(t, err)
	b, rest, err = record.Next(rest)
	require.NoError(t, err)
	h = b.Header()
	require.True(t, h.Attributes.Transactional() && !h.Attributes.Control())
	require.EqualValues(t, 8, h.ProducerID)
	require.EqualValues(t, record.NoSequence, h.BaseSequence)
	b, _, err = record.Next(rest)
	require.NoError(t, err)
	require.True(t, b.Header().Attributes.Transactional() && b.Header().Attributes.Control())
}

// put puts a batch of one record into the log.
func put(t *testing.T, log *offsetstest.Log, o record.Options, key, value []byte) {
	b := record.NewBuilder(o)
	require.NoError(t, b.Append(record.Record{Timestamp: 1, Key: key, Value: value}))
	raw, err := b.Build(nil, codecs{})
	require.NoError(t, err)
	log.Put(0, raw)
}

// codecs is a codec that turns every byte around.
type codecs struct{}

func (codecs) Compress(_ record.Codec, _ int, dst, src []byte) ([]byte, error) {
	for _, b := range src {
		dst = append(dst, ^b)
	}
	return dst, nil
}

func (c codecs) Decompress(_ record.Codec, dst, src []byte, _ int) ([]byte, error) {
	return c.Compress(record.Gzip, 0, dst, src)
}

func TestLoadWhatOthersLeft(t *testing.T) {
	key, err := offsets.AppendKey(nil, offsets.OffsetKey("g", "t", 1))
	require.NoError(t, err)
	value, err := offsets.AppendValue(nil, entry("g", 7))
	require.NoError(t, err)
	cases := []struct {
		name   string
		fill   func(*offsetstest.Log)
		codecs record.Codecs
		want   error
		found  int
	}{
		{"compressed", func(l *offsetstest.Log) { put(t, l, record.Options{Codec: record.Gzip}, key, value) }, codecs{}, nil, 1},
		{"compressed, no codec here", func(l *offsetstest.Log) { put(t, l, record.Options{Codec: record.Gzip}, key, value) }, nil, offsets.ErrCorrupt, 0},
		{"newer kind of group", func(l *offsetstest.Log) { put(t, l, record.Options{}, []byte{0, 3, 0, 1, 'g'}, value) }, nil, nil, 0},
		{"without a key", func(l *offsetstest.Log) { put(t, l, record.Options{}, nil, value) }, nil, nil, 0},
		{"key that ends early", func(l *offsetstest.Log) { put(t, l, record.Options{}, key[:5], value) }, nil, offsets.ErrCorrupt, 0},
		{"value that ends early", func(l *offsetstest.Log) { put(t, l, record.Options{}, key, value[:9]) }, nil, offsets.ErrCorrupt, 0},
		{"newer value", func(l *offsetstest.Log) { put(t, l, record.Options{}, key, []byte{0, 9}) }, nil, offsets.ErrUnsupported, 0},
		{"wrong checksum", func(l *offsetstest.Log) {
			put(t, l, record.Options{}, key, value)
			b := l.Bytes(0)
			b[len(b)-1] ^= 1
			l.Put(0, b)
		}, nil, offsets.ErrCorrupt, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log := offsetstest.NewLog(1)
			c.fill(log)
			s := started(t, log, c.codecs)
			found := 0
			err := s.Load(t.Context(), 0, 1, func(offsets.Event) error { found++; return nil })
			if c.want == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, s.Write(t.Context(), 0, 1, offsets.Batch{Entries: []offsets.Entry{entry("g", 8)}}), offsets.ErrNotOwner)
			}
			require.Equal(t, c.found, found)
		})
	}
}

func TestErrorsOfTheLog(t *testing.T) {
	log := offsetstest.NewLog(1)
	s := started(t, log, nil)
	_, err := s.Shard("g")
	require.ErrorIs(t, err, offsets.ErrUnavailable, "before the topic exists")
	require.NoError(t, s.Prepare(t.Context()))
	_, err = s.Shard("g")
	require.NoError(t, err)
	require.NoError(t, s.Load(t.Context(), 0, 1, none))
	boom := errors.New("boom")
	log.Fail = func(int32, []byte) error { return boom }
	require.ErrorIs(t, s.Write(t.Context(), 0, 1, offsets.Batch{Entries: []offsets.Entry{entry("g", 8)}}), boom)
	require.Empty(t, log.Bytes(0))
}

func BenchmarkWrite(b *testing.B) {
	s, err := topic.New(offsets.Settings{Log: discard{}})
	require.NoError(b, err)
	require.NoError(b, s.Start(b.Context()))
	require.NoError(b, s.Load(b.Context(), 0, 1, none))
	batch := offsets.Batch{Timestamp: 1234}
	for p := range int64(10) {
		batch.Entries = append(batch.Entries, entry("group", p))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Write(b.Context(), 0, 1, batch); err != nil {
			b.Fatal(err)
		}
	}
}

// discard is a log that keeps nothing.
type discard struct{}

func (discard) Ensure(context.Context, string) error { return nil }
func (discard) Shards(string) (int32, error)         { return 1, nil }
func (discard) Append(context.Context, string, int32, int32, []byte) error {
	return nil
}
func (discard) Read(context.Context, string, int32, int32, func([]byte) error) error { return nil }
