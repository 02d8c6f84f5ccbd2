package compact

import "math"

// Segment is what grouping has to know of a segment that is to be cleaned.
type Segment struct {
	Base int64 // its first offset
	Next int64 // the base of the segment behind it
	// Bytes is the size of its data, IndexEntries of its larger index.
	Bytes        int64
	IndexEntries int
}

// Limits bound the segment that a group becomes.
type Limits struct {
	Bytes        int64
	IndexEntries int
}

// Group divides segments, which are in order and without a gap, into runs that are cleaned into one segment each, and gives
// the length of each run. A run keeps to the limits unless it is of one segment, and its offsets are no further apart than an
// index can tell.
func Group(segments []Segment, l Limits) []int {
	var runs []int
	for len(segments) > 0 {
		first := segments[0]
		bytes, entries, n := first.Bytes, first.IndexEntries, 1
		for n < len(segments) {
			s := segments[n]
			bytes, entries = bytes+s.Bytes, entries+s.IndexEntries
			if bytes > l.Bytes || entries > l.IndexEntries || s.Next-1-first.Base > math.MaxInt32 {
				break
			}
			n++
		}
		runs = append(runs, n)
		segments = segments[n:]
	}
	return runs
}
