package api

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/broker/internal/fetchsession"
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
	converted, err := x.convert(res.view, magic, want.Offset)
	if err != nil {
		x.cannotConvert(res, err)
		return
	}
	res.view.Release()
	res.view, res.converted = nil, converted
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
		leader: -1, leaderEpoch: -1}
}

// convert writes the records of a view in an older message format.
func (x *fetchCall) convert(v storage.View, magic int8, offset int64) ([]byte, error) {
	b, err := v.Bytes(x.scratch)
	if err != nil {
		return nil, err
	}
	if cap(b) <= 1<<20 {
		x.scratch = b[:0]
	}
	converted, err := x.downConvert(b, magic, offset)
	if err != nil || len(converted) <= len(b)+len(b)/16 {
		return converted, err
	}
	// Older formats may take more space. As in Kafka that costs the last messages, one of which is cut off, but never any of
	// the first batch. A little more is let through, because where just compressed messages end is a matter of the codec.
	first, _, partial := record.Next(b)
	if partial != nil {
		return converted, nil // there is no whole batch that could be cut off
	}
	whole, err := x.downConvert(first, magic, offset)
	if err != nil {
		return nil, err
	}
	return converted[:max(len(b), len(whole))], nil
}

// downConvert is record.DownConvert, where batches that inflate to much take turns.
func (x *fetchCall) downConvert(b []byte, magic int8, offset int64) (converted []byte, err error) {
	err = x.h.inflation.Do(record.DefaultPayloadLimit, func(limit int) error {
		converted, err = record.DownConvert(nil, b, magic, offset, x.h.Codecs, limit)
		return err
	})
	return converted, err
}
