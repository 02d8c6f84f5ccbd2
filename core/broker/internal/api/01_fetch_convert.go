package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/broker/internal/fetchsession"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/core/storage"
)

var errNegativeLimit = errors.New("negative size limit")

// forOldClients makes of a result what clients of the request's version can read, or an error. Versions 0 and 1 know message
// format 0, versions 2 and 3 know format 1, and zstd came with version 10.
func (x *fetchCall) forOldClients(t *fetchTarget, want *fetchsession.Partition) {
	res := &t.result
	if c := t.p.Log().Config().Compression; !c.Producer && c.Codec == record.Zstd {
		x.cannotConvert(res, kerr.UnsupportedCompressionType)
		return
	}
	if x.request.version >= 4 || res.view == nil || res.view.Len() == 0 {
		return
	}
	if !x.h.downConversion(t.p.ID().Topic) {
		x.cannotConvert(res, kerr.UnsupportedVersion)
		return
	}
	var magic int8
	if x.request.version >= 2 {
		magic = 1
	}
	for offset := want.Offset; res.view != nil; {
		converted, next, err := x.convert(res.view, magic, offset)
		if err != nil {
			x.cannotConvert(res, err)
			return
		}
		res.view.Release()
		res.view, res.converted = nil, converted
		if len(converted) > 0 || next <= offset {
			return
		}
		// There were nothing but markers of transactions and batches that compaction has emptied. Such a client moves on by
		// the messages it gets: without one it would ask for the same offset for ever.
		offset = next
		res.view = x.readOn(t, want, offset)
	}
}

// downConversion says whether a topic may be served in an older message format: message.downconversion.enable.
func (h *handlers) downConversion(topic string) bool {
	return h.Cluster == nil || h.Cluster.Configs == nil || h.Cluster.Configs.TopicConfig(topic).MessageDownconversionEnable
}

// cannotConvert turns a result into an error; Kafka sends null records then.
func (x *fetchCall) cannotConvert(res *fetchResult, err error) {
	if res.view != nil {
		res.view.Release()
	}
	*res = fetchResult{partition: res.partition, code: code(err), hw: -1, lastStable: -1, logStart: -1, hasAborted: true, nullRecords: true,
		preferred: -1, leader: -1, leaderEpoch: -1}
}

// readOn reads from a later offset than the client asked for; nil when there is nothing.
func (x *fetchCall) readOn(t *fetchTarget, want *fetchsession.Partition, offset int64) storage.View {
	q := &x.request
	more, err := t.p.Read(partition.Read{
		Offset: offset, MaxBytes: min(int(want.MaxBytes), x.h.FetchMaxBytes), MinOneBatch: q.version > 2, HardLimit: q.version <= 2,
		Isolation: partition.Isolation(q.isolation), ReplicaID: q.replicaID, LeaderEpoch: want.LeaderEpoch, LastFetchedEpoch: want.LastFetchedEpoch,
	})
	if err != nil { // the client asks again, and is told then
		return nil
	}
	return more.View
}

// convert writes the records of a view in an older message format. When there are none, next is the offset behind the view's
// last whole batch.
func (x *fetchCall) convert(v storage.View, magic int8, offset int64) (converted []byte, next int64, err error) {
	b, err := v.Bytes(x.scratch)
	if err != nil {
		return nil, offset, err
	}
	if cap(b) <= 1<<20 {
		x.scratch = b[:0]
	}
	converted, err = x.downConvert(b, magic, offset)
	switch {
	case err != nil:
		return nil, offset, err
	case len(converted) == 0:
		return nil, behind(b, offset), nil
	case len(converted) <= len(b)+len(b)/16:
		return converted, offset, nil
	}
	// Older formats may take more space. As in Kafka that costs the last messages, one of which is cut off, but never any of
	// the first batch. A little more is let through, because where just compressed messages end is a matter of the codec.
	if first, _, err := record.Next(b); err == nil { // else there is no whole batch that could be cut off
		whole, err := x.downConvert(first, magic, offset)
		if err != nil {
			return nil, offset, err
		}
		converted = converted[:max(len(b), len(whole))]
	}
	return converted, offset, nil
}

// behind is the offset behind the last whole batch of b; offset when there is none.
func behind(b []byte, offset int64) int64 {
	for {
		first, rest, err := record.Next(b)
		if err != nil { // also at the end
			return offset
		}
		offset = first.Header().LastOffset() + 1
		b = rest
	}
}

// downConvert is record.DownConvert, where batches that inflate to much take turns.
func (x *fetchCall) downConvert(b []byte, magic int8, offset int64) (converted []byte, err error) {
	err = x.h.inflation.Do(record.DefaultPayloadLimit, func(limit int) error {
		converted, err = record.DownConvert(nil, b, magic, offset, x.h.Codecs, limit)
		return err
	})
	return converted, err
}
