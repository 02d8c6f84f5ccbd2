package log

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// finishSwaps does what the replacement of segments by cleaned ones left undone, and returns the names that are there then.
// Files ending in .cleaned are of a replacement that did not begin: they go, and with them the .swap files it had already
// made. Other .swap files are whole: they take their final names, and the segments that they cover go.
func (l *Log) finishSwaps(names []string) ([]string, error) {
	least := int64(-1)
	any := false
	for _, n := range names {
		any = any || strings.HasSuffix(n, swapSuffix) || strings.HasSuffix(n, cleanedSuffix)
		if whole, ok := strings.CutSuffix(n, cleanedSuffix); ok {
			if base, _, ok := parseSegmentName(whole); ok && (least < 0 || base < least) {
				least = base
			}
		}
	}
	if !any {
		return names, nil
	}
	path := func(name string) string { return filepath.Join(l.o.Dir, name) }
	var swaps []string
	kept := names[:0:0]
	for _, n := range names {
		whole, swap := strings.CutSuffix(n, swapSuffix)
		switch base, _, ok := parseSegmentName(whole); {
		case strings.HasSuffix(n, cleanedSuffix), swap && ok && least >= 0 && base >= least:
			if err := os.Remove(path(n)); err != nil {
				return nil, err
			}
		case swap && ok:
			swaps = append(swaps, whole)
		default:
			kept = append(kept, n)
		}
	}
	// What a cleaned segment covers is known from the segment itself.
	for _, whole := range swaps {
		base, suffix, _ := parseSegmentName(whole)
		if suffix != logSuffix {
			continue
		}
		s, err := openSwap(l.o.Storage, path(whole+swapSuffix), base)
		if err != nil {
			return nil, err
		}
		next, err := s.lastOffset()
		if err := closeAfter(s, err); err != nil {
			return nil, err
		}
		for _, n := range slices.Clone(kept) {
			if b, suffix, ok := parseSegmentName(n); ok && b >= base && (b == base || b < next) && suffix != snapshotSuffix {
				if err := os.Remove(path(n)); err != nil {
					return nil, err
				}
				kept = slices.DeleteFunc(kept, func(k string) bool { return k == n })
			}
		}
	}
	// The data first: should this be interrupted, too, nothing beside it is taken for what it replaces.
	slices.SortStableFunc(swaps, func(a, b string) int {
		return cmp.Compare(btoi(!strings.HasSuffix(a, logSuffix)), btoi(!strings.HasSuffix(b, logSuffix)))
	})
	for _, whole := range swaps {
		if err := os.Rename(path(whole+swapSuffix), path(whole)); err != nil {
			return nil, err
		}
		if !slices.Contains(kept, whole) {
			kept = append(kept, whole)
		}
	}
	return kept, syncPath(l.o.Dir)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
