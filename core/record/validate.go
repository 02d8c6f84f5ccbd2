package record

import (
	"errors"
	"fmt"
	"sync"
)

// maxPooled is the largest scratch buffer kept for the next batch: a bomb must
// not stay in memory for good.
const maxPooled = 4 << 20

// Validator checks what producers send before a leader appends it. It is safe
// for use by many goroutines; all it holds are scratch buffers.
type Validator struct {
	codecs    Codecs
	scratch   sync.Pool // of *scratch
	inflation *Inflation
}

// scratch is the memory of one Validate call.
type scratch struct {
	payload []byte
	builder Builder
	keys    [][]byte // for Rules.Keys
}

// NewValidator returns a validator that reads compressed batches with c.
func NewValidator(c Codecs) *Validator {
	return &Validator{codecs: c, inflation: NewInflation(), scratch: sync.Pool{New: func() any { return new(scratch) }}}
}

// Inflation is where the validator's large batches take turns, for others that
// decompress the same batches.
func (v *Validator) Inflation() *Inflation { return v.inflation }

// Result is what is left to append.
type Result struct {
	// Batch is the one batch to append: a part of the bytes given to Validate
	// or, when Rewritten, new memory of its own. Its base offset is 0, its
	// leader epoch that of the rules; SetBaseOffset makes it ready. Nil when
	// the set was empty, which old Produce versions allow.
	Batch Batch
	// Header is Batch's header, so that nobody has to parse it again.
	Header Header
	// MaxTimestampOffset is the offset, counted from the batch's first, of the
	// first record with the batch's largest timestamp.
	MaxTimestampOffset int32
	// LogAppendTime is the time that all records were stamped with, else
	// NoTimestamp: what a Produce response tells.
	LogAppendTime int64
	// Rewritten says that the bytes are not those of the producer: converted,
	// recompressed or rebuilt.
	Rewritten bool
}

// Validate checks the record set b of one partition, and makes the one batch
// of it that a leader appends, as UnifiedLog.analyzeAndValidateRecords and
// LogValidator of Kafka 3.9 do. It works in place: leader epoch, timestamp type
// and largest timestamp are put right where b lies, and no memory is allocated
// for a batch that stays what it is. A partial batch at the end of b is left
// out. Messages of formats 0 and 1 are converted to format 2.
//
// Nothing may be appended after an error, which is one of
//   - ErrCorrupt: a checksum or length is wrong
//   - ErrInvalid: the header contradicts the records, or lies; a producer sent
//     more than one batch or a control record
//   - *RecordErrors: single records are refused; it wraps ErrInvalid or
//     ErrTimestamp
//   - ErrUnreadable: the records do not decompress, or are compressed under
//     inner offsets other than 0, 1, 2 …
//   - ErrTooLarge, ErrLargerThanSegment: too many bytes, as sent or as stored
//   - what Rules.Keys answers
//
// Inner offsets of an uncompressed batch are taken as they are, and those of a
// compressed one refused unless the batch is recompressed, which gives it
// right ones: so do Kafka 3.9 and 4.4.
func (v *Validator) Validate(b []byte, r *Rules) (res Result, err error) {
	limit := r.payloadLimit()
	if e, _, err := nextAny(b); err != nil || e == nil || e.codec() == None {
		return v.validate(b, r, limit) // a compressed message behind others is refused unread
	}
	// Inflation.Do, without a closure in the usual case: that would be an allocation per batch.
	if res, err = v.inSlot(b, r, min(limit, largePayload)); limit <= largePayload || !errors.Is(err, ErrPayloadTooLarge) {
		return res, err
	}
	err = v.inflation.inTurn(limit, func(limit int) error {
		res, err = v.validate(b, r, limit)
		return err
	})
	return res, err
}

func (v *Validator) inSlot(b []byte, r *Rules, limit int) (Result, error) {
	v.inflation.slots <- struct{}{}
	defer v.inflation.leave()
	return v.validate(b, r, limit)
}

// validate is Validate for batches that decompress to no more than limit.
func (v *Validator) validate(b []byte, r *Rules, limit int) (Result, error) {
	first, rest, err := nextAny(b)
	switch {
	case err != nil:
		return Result{}, err
	case first == nil:
		return Result{LogAppendTime: NoTimestamp}, nil
	}
	if first.magic() != Magic {
		return v.validateLegacy(b, r, limit)
	}
	// All of the set is checked before any of it is judged, so that the reason
	// given is the same whatever comes first.
	more := 0
	for e := first; e != nil; more++ {
		if err := r.analyze(e); err != nil {
			return Result{}, err
		}
		if e, rest, err = nextAny(rest); err != nil {
			return Result{}, err
		}
	}
	if more > 1 {
		return Result{}, invalid("%d batches where one is allowed", more)
	}
	h, err := first.header()
	if err != nil {
		return Result{}, err
	}
	res, err := v.validateBatch(Batch(first), h, r, limit)
	if err != nil {
		return Result{}, err
	}
	return r.checkStored(res)
}

// analyze checks what can be told of a batch or message without reading its
// records.
func (r *Rules) analyze(e entry) error {
	if e.magic() == Magic && r.Origin == FromClient && e.offset() != 0 {
		return invalid("base offset %d where a producer writes 0", e.offset())
	}
	if err := r.checkSize(len(e)); err != nil {
		return err
	}
	if err := e.check(); err != nil {
		return err
	}
	if c := e.codec(); !c.Valid() {
		return fmt.Errorf("%w: no such codec: %d", ErrUnreadable, c)
	}
	return nil
}

// checkStored checks the size of what is to be appended.
func (r *Rules) checkStored(res Result) (Result, error) {
	n := len(res.Batch)
	if res.Rewritten {
		if err := r.checkSize(n); err != nil {
			return Result{}, err
		}
	}
	if n > r.SegmentBytes {
		return Result{}, fmt.Errorf("%w: %d bytes, a segment has %d", ErrLargerThanSegment, n, r.SegmentBytes)
	}
	return res, nil
}

// validateBatch is Validate for one batch of format 2 with a good checksum.
func (v *Validator) validateBatch(b Batch, h Header, r *Rules, limit int) (Result, error) {
	if err := r.checkHeader(h); err != nil {
		return Result{}, err
	}
	source := h.Attributes.Codec()
	target := r.codecFor(source)
	if h.Attributes.Control() && source == None {
		target = None // markers stay readable for whoever has no codec
	}
	payload := b.Records()
	s := v.scratch.Get().(*scratch)
	defer v.release(s)
	if source != None {
		var err error
		if payload, err = decompress(v.codecs, source, s.payload[:0], payload, limit); err != nil {
			return Result{}, err
		}
		s.payload = payload
	}
	w, err := r.walk(h, payload)
	if err != nil {
		return Result{}, err
	}
	if r.Keys != nil {
		for it := Iterate(h, payload); it.Next(); {
			s.keys = append(s.keys, it.Record.Key)
		}
		if err := s.checkKeys(r); err != nil {
			return Result{}, err
		}
	}
	if source != target {
		return v.recompress(s, h, payload, target, w, r)
	}
	if source != None && !w.sequential {
		return Result{}, fmt.Errorf("%w: compressed under inner offsets that do not count from 0", ErrUnreadable)
	}
	SetBaseOffset(b, 0)
	SetLeaderEpoch(b, r.LeaderEpoch)
	res := Result{Batch: b, MaxTimestampOffset: w.maxIndex, LogAppendTime: NoTimestamp}
	maxTimestamp := w.maxTimestamp
	if r.LogAppendTime {
		maxTimestamp, res.MaxTimestampOffset, res.LogAppendTime = r.Now, 0, r.Now
	}
	SetMaxTimestamp(b, r.LogAppendTime, maxTimestamp)
	res.Header = b.Header()
	return res, nil
}

// release keeps the scratch memory for the next call, unless it has grown.
func (v *Validator) release(s *scratch) {
	if cap(s.payload) > maxPooled {
		s.payload = nil
	}
	if cap(s.builder.payload) > maxPooled {
		s.builder.payload = nil
	}
	clear(s.keys) // they point into what is the caller's again
	s.keys = s.keys[:0]
	if cap(s.keys) > maxPooled/24 {
		s.keys = nil
	}
	v.scratch.Put(s)
}

// checkKeys has the keys that were gathered judged.
func (s *scratch) checkKeys(r *Rules) error {
	refused, err := r.Keys.Refuse(s.keys)
	if err != nil {
		return err
	}
	var errs *RecordErrors
	for _, i := range refused {
		errs = errs.add(i, ErrInvalid, reasonElsewhere)
	}
	if errs != nil {
		return errs
	}
	return nil
}

// walked is what a walk over a batch's records found.
type walked struct {
	maxTimestamp int64
	maxIndex     int32 // of the first record with it
	sequential   bool  // inner offsets are 0, 1, 2 …
	plain        bool  // a Builder would encode the records to the same bytes
}

// walk checks every record of a batch: that it is well-formed, and that the
// rules allow it. It touches neither keys nor values.
func (r *Rules) walk(h Header, payload []byte) (walked, error) {
	if !h.Attributes.LogAppendTime() {
		w := unwalked()
		if n, rest, ok := r.walkPlain(&w, h, payload); ok {
			return r.walkOn(w, h, n, rest)
		}
	}
	return r.walkOn(unwalked(), h, 0, payload)
}

// unwalked is what is known of a batch before its first record.
func unwalked() walked { return walked{maxTimestamp: NoTimestamp, sequential: true, plain: true} }

// walkOn is walk from the n-th record on, when w was found before.
func (r *Rules) walkOn(w walked, h Header, n int32, rest []byte) (_ walked, err error) {
	claimed := h.Attributes.LogAppendTime()
	var raw rawRecord
	var errs *RecordErrors
	for i := n; i < h.Count; i++ {
		if rest, err = raw.read(rest); err != nil {
			return w, fmt.Errorf("record %d of %d: %w", i, h.Count, err)
		}
		// A false claim of LogAppendTime is taken off the batch, so what counts
		// are the timestamps that are there without it.
		timestamp := h.BaseTimestamp + raw.timestampDelta
		errs = r.checkRecord(errs, i, raw.key != nil, timestamp, claimed)
		if timestamp > w.maxTimestamp {
			w.maxTimestamp, w.maxIndex = timestamp, i
		}
		w.sequential = w.sequential && raw.offsetDelta == i
		w.plain = w.plain && raw.attributes == 0 && (i > 0 || raw.timestampDelta == 0)
	}
	switch {
	case h.Count < 0:
		return w, invalid("record count %d", h.Count)
	case len(rest) > 0:
		return w, invalid("%d bytes behind the last of %d records", len(rest), h.Count)
	case errs != nil:
		return w, errs
	}
	w.plain = w.plain && w.sequential
	return w, nil
}

// recompress makes a batch of the records in payload, with another codec,
// offsets from 0, and nothing in its header that the format does not define.
func (v *Validator) recompress(s *scratch, h Header, payload []byte, target Codec, w walked, r *Rules) (Result, error) {
	if !w.plain {
		return v.rebuild(s, h, payload, target, r)
	}
	res := Result{MaxTimestampOffset: w.maxIndex, LogAppendTime: NoTimestamp, Rewritten: true}
	out := h
	out.BaseOffset, out.LeaderEpoch, out.LastOffsetDelta = 0, r.LeaderEpoch, h.Count-1
	out.Attributes &= AttrTransactional | AttrControl
	out.MaxTimestamp = w.maxTimestamp
	if r.LogAppendTime {
		out.Attributes |= AttrLogAppendTime
		out.MaxTimestamp, res.MaxTimestampOffset, res.LogAppendTime = r.Now, 0, r.Now
	}
	b, err := appendBatch(nil, out, target, r.Target.Level, payload, v.codecs)
	if err != nil {
		return Result{}, err
	}
	res.Batch = b
	res.Header = res.Batch.Header()
	return res, nil
}

// rebuild is recompress for records that have to be encoded anew.
func (v *Validator) rebuild(s *scratch, h Header, payload []byte, target Codec, r *Rules) (Result, error) {
	o := OptionsOf(h)
	o.BaseOffset, o.Codec, o.AppendTime, o.DeleteHorizon, o.LastOffset = 0, target, nil, nil, nil
	s.start(o, r)
	h.Attributes &^= AttrLogAppendTime // see walk
	for it := Iterate(h, payload); it.Next(); {
		if err := s.add(it.Record); err != nil {
			return Result{}, err
		}
	}
	return s.finish(r, v.codecs)
}

// start begins a batch for records that come with offsets of no use.
func (s *scratch) start(o Options, r *Rules) {
	o.LeaderEpoch, o.Level = r.LeaderEpoch, r.Target.Level
	if r.LogAppendTime {
		now := r.Now // of its own, so that rules can live on the caller's stack
		o.AppendTime = &now
	}
	s.builder.Reset(o)
}

func (s *scratch) add(rec Record) error {
	rec.Offset = int64(s.builder.count)
	return s.builder.Append(rec)
}

func (s *scratch) finish(r *Rules, c Codecs) (Result, error) {
	b, err := s.builder.Build(nil, c)
	if err != nil {
		return Result{}, err
	}
	res := Result{Batch: b, Header: Batch(b).Header(), LogAppendTime: NoTimestamp, Rewritten: true,
		MaxTimestampOffset: s.builder.maxIndex}
	if r.LogAppendTime {
		res.LogAppendTime, res.MaxTimestampOffset = r.Now, 0
	}
	return res, nil
}
