package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sort"
	"strings"

	"github.com/barnabas-mq/barnabas/core/record"
)

// segment verifies a segment whose offsets are below limit, with its indexes.
func (v *verifier) segment(base, limit int64, last bool) error {
	path := v.path(segmentName(base))
	// The indexes first: what they name is there then, also when somebody appends meanwhile.
	x, err := v.indexesOf(base)
	if err != nil {
		return err
	}
	s, err := OpenSegment(path)
	if errors.Is(err, fs.ErrNotExist) && !v.known.stopped {
		v.harmless(path, -1, "was removed meanwhile")
		return nil
	}
	if err != nil {
		return err
	}
	defer s.Close()
	if last && !v.known.stopped {
		s.Patience = v.o.Patience
	}
	v.Segments++
	if base < v.next {
		v.fault(path, -1, "begins before %d, the end of the one before it", v.next)
	}
	v.next = base
	end, sound := int64(0), true
	for b, err := range s.Batches() {
		var damage *Damage
		if errors.As(err, &damage) {
			sound = false
			v.damage(path, damage, last || v.next == limit && damage.Kind == Preallocated) // the end of a sealed one is cut off soon
			continue
		}
		if err != nil {
			return err
		}
		if b.BaseOffset < v.next && s.Patience > 0 {
			b = s.again(b)
		}
		v.Batches++
		v.batch(path, b, base, limit)
		x.batch(b)
		if v.o.Records {
			v.records(path, b)
		}
		v.next, end = max(v.next, b.LastOffset()+1), b.Position+int64(b.Size())
	}
	if !sound && end < s.Size() && v.incomplete {
		return nil // entries of what is behind the damage can't be judged
	}
	x.end(end, v.next, v.known.stopped)
	if v.known.stopped && end > 0 {
		for _, file := range []string{x.offsetFile, x.timeFile} {
			if gone(file) {
				v.fault(file, -1, "is missing")
			}
		}
	}
	return nil
}

// damage decides whether it is a broker's that is running or died.
func (v *verifier) damage(path string, d *Damage, last bool) {
	switch {
	case d.Kind == Corrupt || !last || v.known.stopped:
		v.incomplete = true
		why := ""
		if d.Kind != Corrupt && last {
			why = ", though the broker stopped in order"
		} else if d.Kind != Corrupt {
			why = ", and another segment follows"
		}
		v.fault(path, d.Position, "%s%s", d.Reason, why)
	case d.Kind == Preallocated:
		v.harmless(path, d.Position, "%s, space for the next batches", d.Reason)
	case v.known.recovery > v.next:
		v.incomplete = true
		v.fault(path, d.Position, "%s, but all up to offset %d was on the device", d.Reason, v.known.recovery)
	default:
		v.harmless(path, d.Position, "%s: an append that is under way or was interrupted", d.Reason)
	}
}

func (v *verifier) indexesOf(base int64) (*indexes, error) {
	stem := strings.TrimSuffix(v.path(segmentName(base)), logSuffix)
	x := &indexes{report: v.Report, exact: v.o.Exact, offsetFile: stem + offsetSuffix, timeFile: stem + timeSuffix, txnFile: stem + txnSuffix, largest: record.NoTimestamp}
	read := func(file string, parse func([]byte) (zeros int, err error)) error {
		b, err := ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		zeros, err := parse(b)
		if err != nil {
			v.fault(file, -1, "%s", err)
		} else if zeros > 0 && v.known.stopped {
			v.fault(file, -1, "%d entries of zeros at the end, though the broker stopped in order", zeros)
		}
		return nil
	}
	err := errors.Join(
		read(x.offsetFile, func(b []byte) (zeros int, err error) { x.offsets, zeros, err = ReadOffsetIndex(b, base); return }),
		read(x.timeFile, func(b []byte) (zeros int, err error) { x.times, zeros, err = ReadTimeIndex(b, base); return }),
		read(x.txnFile, func(b []byte) (zeros int, err error) { x.txns, err = ReadTxnIndex(b); return }),
	)
	v.OffsetEntries += len(x.offsets)
	v.TimeEntries += len(x.times)
	x.rising()
	return x, err
}

// batch checks what a batch's header says against its neighbours, and what no checksum covers.
func (v *verifier) batch(path string, b Batch, base, limit int64) {
	switch {
	case b.BaseOffset < v.next:
		v.fault(path, b.Position, "offset %d, where at least %d should be", b.BaseOffset, v.next)
	case b.LastOffsetDelta < 0 || b.LastOffset() < b.BaseOffset:
		v.fault(path, b.Position, "last offset delta %d", b.LastOffsetDelta)
	case b.LastOffset() >= limit:
		v.fault(path, b.Position, "offset %d, but the next segment begins with %d", b.LastOffset(), limit)
	case b.LastOffset()-base > math.MaxInt32:
		v.fault(path, b.Position, "offset %d is too far from %d, the segment's first", b.LastOffset(), base)
	case b.Count < 0 || int64(b.Count) > int64(b.LastOffsetDelta)+1:
		v.fault(path, b.Position, "%d records with offsets %d to %d", b.Count, b.BaseOffset, b.LastOffset())
	case !b.Attributes.Codec().Valid():
		v.fault(path, b.Position, "there is no codec %d", b.Attributes.Codec())
	}
	if !b.Legacy() {
		v.epoch(path, b)
	}
}

// epoch checks a batch's leader epoch, which no checksum covers.
func (v *verifier) epoch(path string, b Batch) {
	e := b.LeaderEpoch
	if e < v.lastEpoch || e < record.NoLeaderEpoch {
		v.fault(path, b.Position, "leader epoch %d follows %d", e, v.lastEpoch)
		return
	}
	v.lastEpoch = e
	if e == record.NoLeaderEpoch || len(v.epochs) == 0 {
		return
	}
	if e > latest(v.epochs) && !v.known.stopped {
		v.readEpochs() // it may have begun meanwhile
		if e > latest(v.epochs) && b.BaseOffset >= v.known.recovery {
			v.harmless(path, b.Position, "leader epoch %d, which %s doesn't have yet", e, epochFile)
			return
		}
	}
	n := sort.Search(len(v.epochs), func(i int) bool { return v.epochs[i].Start > b.BaseOffset })
	if n == 0 && e <= v.epochs[0].Epoch {
		return // it lies below the start of the log, which the first row was moved to
	}
	if want := v.epochs[max(n-1, 0)].Epoch; e != want {
		v.fault(path, b.Position, "leader epoch %d, but offset %d is of epoch %d (%s)", e, b.BaseOffset, want, epochFile)
	}
}

// latest is the last epoch of a checkpoint, -1 of an empty one.
func latest(epochs []Epoch) int32 {
	if len(epochs) == 0 {
		return record.NoLeaderEpoch
	}
	return epochs[len(epochs)-1].Epoch
}

// records reads all records of a batch.
func (v *verifier) records(path string, b Batch) {
	last, largest := b.BaseOffset-1, record.NoTimestamp
	n := 0
	var fault error
	for r, err := range b.Each(v.o.Codecs, v.o.RecordLimit) {
		if err != nil {
			fault = err
			break
		}
		if !b.Legacy() && (r.Offset <= last || r.Offset > b.LastOffset()) {
			fault = fmt.Errorf("record %d has offset %d behind %d, in a batch that ends with %d", n, r.Offset, last, b.LastOffset())
			break
		}
		n++
		last, largest = r.Offset, max(largest, r.Timestamp)
	}
	v.Records += n
	if fault == nil && !b.Legacy() && largest > b.MaxTimestamp {
		fault = fmt.Errorf("a record has timestamp %d, but the largest of the batch is said to be %d", largest, b.MaxTimestamp)
	}
	if fault != nil {
		v.fault(path, b.Position, "records: %s", fault)
	}
}
