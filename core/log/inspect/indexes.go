package inspect

import (
	"math"

	"github.com/barnabas-mq/barnabas/core/record"
)

// indexes follows the batches of a segment with what its indexes say of them.
type indexes struct {
	report *Report
	exact  bool // see Options

	offsets    []OffsetEntry
	offsetFile string
	nextOffset int          // of offsets, the first that no batch was found for
	open       *OffsetEntry // of a batch that was found, and not yet one that ends at its offset

	times    []TimeEntry
	timeFile string
	nextTime int
	largest  int64 // timestamp of the batches so far that have records

	txns    []TxnEntry
	txnFile string
	nextTxn int
}

// rising checks that the entries rise, and keeps those that do.
func (x *indexes) rising() {
	last := OffsetEntry{math.MinInt64, -1}
	for i, e := range x.offsets {
		if e.Offset <= last.Offset || e.Position <= last.Position {
			x.report.fault(x.offsetFile, int64(i)*offsetWidth, "entry %d: offset %d at %d follows %d at %d", i, e.Offset, e.Position, last.Offset, last.Position)
			x.offsets = x.offsets[:i]
			break
		}
		last = e
	}
	before := TimeEntry{-1, -1}
	for i, e := range x.times {
		if e.Timestamp <= before.Timestamp || e.Offset < before.Offset {
			x.report.fault(x.timeFile, int64(i)*timeWidth, "entry %d: timestamp %d of offset %d follows %d of %d", i, e.Timestamp, e.Offset, before.Timestamp, before.Offset)
			x.times = x.times[:i]
			break
		}
		before = e
	}
	marker := int64(-1)
	for i, e := range x.txns {
		if e.LastOffset <= marker || e.FirstOffset < 0 || e.FirstOffset > e.LastOffset || e.ProducerID < 0 {
			x.report.fault(x.txnFile, int64(i)*txnWidth, "entry %d: offsets %d to %d of producer %d follow a marker at %d", i, e.FirstOffset, e.LastOffset, e.ProducerID, marker)
			x.txns = x.txns[:i]
			break
		}
		marker = e.LastOffset
	}
}

// batch looks at the next batch.
func (x *indexes) batch(b Batch) {
	x.offset(b)
	x.time(b)
	for x.nextTxn < len(x.txns) && x.txns[x.nextTxn].LastOffset <= b.LastOffset() {
		e := x.txns[x.nextTxn]
		if e.LastOffset >= b.BaseOffset && (!b.Attributes.Control() || b.ProducerID != e.ProducerID) {
			x.report.fault(x.txnFile, int64(x.nextTxn)*txnWidth, "entry %d: offset %d is no marker of producer %d", x.nextTxn, e.LastOffset, e.ProducerID)
		} // compaction may have removed it
		x.nextTxn++
	}
}

// offset: an entry has the position of a batch and that batch's last offset, or that of a later one: followers under Apache
// Kafka 3.9 make one entry for all batches that they got at once.
func (x *indexes) offset(b Batch) {
	for x.nextOffset < len(x.offsets) && x.offsets[x.nextOffset].Position <= b.Position {
		e := x.offsets[x.nextOffset]
		x.closeOffset(e.Position)
		if x.exact && e.Position == b.Position && e.Offset != b.LastOffset() {
			x.report.fault(x.offsetFile, int64(x.nextOffset)*offsetWidth, "entry %d: offset %d, but the batch at %d ends with %d", x.nextOffset, e.Offset, e.Position, b.LastOffset())
		} else if e.Position < b.Position {
			x.report.fault(x.offsetFile, int64(x.nextOffset)*offsetWidth, "entry %d: no batch begins at %d", x.nextOffset, e.Position)
		} else {
			x.open = &e
		}
		x.nextOffset++
	}
	if x.open != nil && b.LastOffset() >= x.open.Offset {
		if b.LastOffset() > x.open.Offset {
			x.report.fault(x.offsetFile, int64(x.nextOffset-1)*offsetWidth, "entry %d: no batch ends with offset %d: that at %d ends with %d", x.nextOffset-1, x.open.Offset, b.Position, b.LastOffset())
		}
		x.open = nil
	}
}

// closeOffset gives up waiting for the batch that ends with an entry's offset.
func (x *indexes) closeOffset(position int64) {
	if x.open != nil {
		x.report.fault(x.offsetFile, int64(x.nextOffset-1)*offsetWidth, "entry %d: no batch from %d up to %d ends with offset %d", x.nextOffset-1, x.open.Position, position, x.open.Offset)
		x.open = nil
	}
}

// time: an entry has a timestamp and an offset in the batch that has it, and no batch before has a larger one.
func (x *indexes) time(b Batch) {
	if b.Count > 0 {
		x.largest = max(x.largest, b.MaxTimestamp)
	}
	for x.nextTime < len(x.times) && x.times[x.nextTime].Offset <= b.LastOffset() {
		e, at := x.times[x.nextTime], int64(x.nextTime)*timeWidth
		switch {
		case e.Offset < b.BaseOffset && !b.Legacy():
			x.report.fault(x.timeFile, at, "entry %d: no batch has offset %d", x.nextTime, e.Offset)
		case x.exact && e.Offset != b.LastOffset():
			x.report.fault(x.timeFile, at, "entry %d: no batch ends with offset %d", x.nextTime, e.Offset)
		case e.Timestamp != b.MaxTimestamp:
			x.report.fault(x.timeFile, at, "entry %d: timestamp %d, but the batch with offset %d has %d", x.nextTime, e.Timestamp, e.Offset, b.MaxTimestamp)
		case e.Timestamp < x.largest:
			x.report.fault(x.timeFile, at, "entry %d: timestamp %d, but the largest up to offset %d is %d", x.nextTime, e.Timestamp, e.Offset, x.largest)
		}
		x.nextTime++
	}
}

// end is called behind the last batch, which ends at size with next as the offset behind it. complete says that the time index has to
// have the largest timestamp.
func (x *indexes) end(size, next int64, complete bool) {
	x.closeOffset(size)
	if x.nextOffset < len(x.offsets) {
		e := x.offsets[x.nextOffset]
		x.report.fault(x.offsetFile, int64(x.nextOffset)*offsetWidth, "entry %d: no batch begins at %d, the good ones end at %d", x.nextOffset, e.Position, size)
	}
	if x.nextTime < len(x.times) {
		x.report.fault(x.timeFile, int64(x.nextTime)*timeWidth, "entry %d: no batch has offset %d, the good ones end before %d", x.nextTime, x.times[x.nextTime].Offset, next)
	}
	if x.nextTxn < len(x.txns) {
		x.report.fault(x.txnFile, int64(x.nextTxn)*txnWidth, "entry %d: offset %d is behind the end, %d", x.nextTxn, x.txns[x.nextTxn].LastOffset, next)
	}
	last := record.NoTimestamp
	if n := len(x.times); n > 0 {
		last = x.times[n-1].Timestamp
	}
	if complete && last < x.largest {
		x.report.fault(x.timeFile, -1, "ends with timestamp %d, but there is %d", last, x.largest)
	}
}
