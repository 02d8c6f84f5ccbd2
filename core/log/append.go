package log

import (
	"fmt"
	"math"
	"time"

	"github.com/barnabas-mq/barnabas/core/log/producers"
	"github.com/barnabas-mq/barnabas/core/record"
)

// LeaderAppend is what a leader appends.
type LeaderAppend struct {
	// Batches is one batch, or a legacy message set, as a Produce request carries it for one partition. It is stamped in
	// place, whether or not it is appended, and belongs to the caller again when AppendLeader returns.
	Batches []byte
	// LeaderEpoch is the epoch under which the caller leads.
	LeaderEpoch int32
	// Origin says how much is checked.
	Origin record.Origin
	// Client is the software of the client that sends it.
	Client Client
	// Verify is asked before a batch opens a transaction in this log, whether its producer may (KIP-890). It is called under the
	// log's lock, so that no marker comes between its answer and the append; it must not wait or call the log. Nil: it may.
	Verify func(producerID int64, epoch int16) error
}

// AppendInfo says what became of an append.
type AppendInfo struct {
	// BaseOffset and LastOffset are those of the records, -1 when there were none.
	BaseOffset, LastOffset int64
	// MaxTimestamp is the largest timestamp; LogAppendTime the time that all records were stamped with, -1 when they keep
	// the producer's.
	MaxTimestamp  int64
	LogAppendTime int64
	// StartOffset is the log's.
	StartOffset int64
	// Duplicate says that the batch had been appended before and was not appended again; offsets are those of then.
	Duplicate bool
	// Flush says that flush.messages is reached: Flush up to LastOffset+1 before the append is acknowledged.
	Flush bool
}

// AppendLeader checks what a producer or a coordinator sent, gives it the next offsets and appends it. On return it can be
// read; it survives the death of the process, but not of the machine (see AppendInfo.Flush). Either all of it is appended or,
// with an error, nothing.
//
// Errors: those of record.Validator, ErrStaleEpoch, those of package producers, Verify's, ErrFailed, ErrClosed.
func (l *Log) AppendLeader(a LeaderAppend) (AppendInfo, error) {
	none := AppendInfo{BaseOffset: -1, LastOffset: -1, MaxTimestamp: record.NoTimestamp, LogAppendTime: record.NoTimestamp, StartOffset: l.start.Load()}
	if err := l.Err(); err != nil {
		return none, err
	}
	cfg := l.cfg.Load()
	rules := record.Rules{
		Origin:        a.Origin,
		Now:           l.o.Now().UnixMilli(),
		LeaderEpoch:   a.LeaderEpoch,
		MaxBatchBytes: cfg.MaxMessageBytes,
		SegmentBytes:  int(cfg.segmentBytes()),
		Compacted:     cfg.Compact,
		LogAppendTime: cfg.LogAppendTime,
		BeforeMaxMs:   cfg.TimestampBeforeMaxMs,
		AfterMaxMs:    cfg.TimestampAfterMaxMs,
		Target:        record.Target{Producer: cfg.Compression.Producer, Codec: cfg.Compression.Codec, Level: cfg.Compression.Level},
	}
	var keys KeyCheck
	if cfg.Keys != nil && a.Origin == record.FromClient {
		keys = cfg.Keys.Check(l.o.Partition, a.Client)
		rules.Keys = keys
	}
	res, err := l.o.Validator.Validate(a.Batches, &rules)
	if err != nil || res.Batch == nil {
		return none, err
	}
	h := res.Header
	var marker *record.EndTxnMarker
	if h.Attributes.Control() {
		if marker, err = l.marker(res.Batch, h); err != nil {
			return none, err
		}
	}
	from := producers.Client
	if a.Origin == record.FromCoordinator {
		from = producers.Coordinator
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return none, err
	}
	if a.LeaderEpoch < l.epochs.latest() {
		return none, l.wrap(fmt.Errorf("%w: %d where the log has %d", ErrStaleEpoch, a.LeaderEpoch, l.epochs.latest()))
	}
	if marker != nil {
		err = l.producers.CheckMarker(h.ProducerID, h.ProducerEpoch, marker.CoordinatorEpoch)
	} else {
		var before producers.Batch
		var duplicate bool
		if before, duplicate, err = l.producers.Check(h, from); duplicate {
			return AppendInfo{BaseOffset: before.BaseOffset(), LastOffset: before.LastOffset, MaxTimestamp: before.Timestamp, LogAppendTime: before.Timestamp,
				StartOffset: l.start.Load(), Duplicate: true, Flush: l.flushDue(before.LastOffset, cfg)}, nil
		}
	}
	if err == nil && marker == nil && a.Verify != nil && l.producers.Opens(h) {
		err = a.Verify(h.ProducerID, h.ProducerEpoch)
	}
	if err != nil {
		return none, l.wrap(err)
	}
	base := l.end.Load()
	record.SetBaseOffset(res.Batch, base)
	h.BaseOffset = base
	if err := l.append(res.Batch, h, marker, cfg); err != nil {
		return none, err
	}
	if keys != nil {
		keys.Appended()
	}
	return AppendInfo{BaseOffset: base, LastOffset: h.LastOffset(), MaxTimestamp: h.MaxTimestamp, LogAppendTime: res.LogAppendTime,
		StartOffset: l.start.Load(), Flush: l.flushDue(h.LastOffset(), cfg)}, nil
}

// flushDue says whether an append whose last offset is given has to be on the device before it is acknowledged.
func (l *Log) flushDue(last int64, cfg *Config) bool {
	durable := l.recovery.Load()
	return last >= durable && l.end.Load()-durable >= cfg.FlushMessages
}

// marker reads the transaction marker of a control batch; nil for other control records and emptied batches.
func (l *Log) marker(b record.Batch, h record.Header) (*record.EndTxnMarker, error) {
	for r, err := range b.Each(l.o.Codecs, record.DefaultPayloadLimit) {
		if err != nil {
			return nil, err
		}
		m, ok, err := record.ParseEndTxnMarker(r)
		if err != nil || !ok {
			return nil, err
		}
		return &m, nil
	}
	return nil, nil
}

// room gives the segment that the next batch, of that size, goes into: the active one, or a new one in its place. The caller holds mu.
func (l *Log) room(size int64, h record.Header, cfg *Config) (*segment, error) {
	s := l.active()
	roll, err := s.shouldRoll(size, h.LastOffset(), h.MaxTimestamp, l.o.Now(), cfg)
	if err != nil {
		return nil, l.fail(err)
	}
	if roll {
		err = l.roll(h.BaseOffset, size)
	} else if s.size.Load() == 0 && size > s.capacity {
		err = l.widen(size)
	}
	return l.active(), err
}

// append writes one batch, whose offsets are set and checked, and takes it into everything. The caller holds mu.
func (l *Log) append(b record.Batch, h record.Header, marker *record.EndTxnMarker, cfg *Config) error {
	s, err := l.room(int64(len(b)), h, cfg)
	if err != nil {
		return err
	}
	l.assignEpoch(h.LeaderEpoch, h.BaseOffset)
	if err := l.settle(s); err != nil {
		return err
	}
	pos, err := s.data.Append(b)
	if err != nil {
		return l.fail(fmt.Errorf("append: %w", err))
	}
	if err := s.note(h, pos, cfg); err != nil {
		return l.fail(fmt.Errorf("append to index: %w", err))
	}
	if h.ProducerID >= 0 {
		if err := l.track(s, h, marker); err != nil {
			return l.fail(fmt.Errorf("append to transaction index: %w", err))
		}
	}
	l.appended(s, h.LastOffset()+1, pos+int64(len(b)), cfg)
	return nil
}

// appended shows what was appended: the segment has that size, and the log that end. The caller holds mu.
func (l *Log) appended(s *segment, end, size int64, cfg *Config) {
	s.publish(end, size)
	l.end.Store(end)
	if cfg.FlushMs != math.MaxInt64 && l.dirtySince.Load() == 0 {
		l.dirtySince.Store(time.Now().UnixMilli())
	}
}

// track takes a batch that is in s into the state of its producer, and into the index of aborted transactions unless s is
// nil. The caller holds mu.
func (l *Log) track(s *segment, h record.Header, marker *record.EndTxnMarker) error {
	if marker == nil {
		l.producers.Apply(h)
	} else if txn, ended := l.producers.ApplyMarker(h.ProducerID, h.ProducerEpoch, marker.CoordinatorEpoch, h.BaseOffset, h.MaxTimestamp, !marker.Commit); ended && txn.Aborted && s != nil {
		stable := l.producers.FirstOpen(txn.LastOffset + 1)
		if err := s.txns.add(txnEntry{txn.ProducerID, txn.FirstOffset, txn.LastOffset, stable}); err != nil {
			return err
		}
	}
	l.unstable.Store(l.producers.FirstUnstable())
	return nil
}
