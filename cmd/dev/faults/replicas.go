package faults

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Replicas holds the logs of several stopped brokers against one another: where two have the same offsets of a partition, they
// have the same bytes, and all end at the same offset. Internal topics are left out: their last records may be on their way when
// brokers stop. It returns how many partitions had several replicas.
func Replicas(dirs ...string) (compared int, err error) {
	first := map[string]string{} // the first directory that has a partition
	var faults []error
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return compared, err
		}
		for _, e := range entries {
			if !e.IsDir() || strings.HasSuffix(e.Name(), "-delete") || strings.HasPrefix(e.Name(), "__") {
				continue
			}
			other, ok := first[e.Name()]
			if !ok {
				first[e.Name()] = dir
				continue
			}
			compared++
			if err := sameLog(filepath.Join(other, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", e.Name(), err))
			}
		}
	}
	return compared, errors.Join(faults...)
}

// sameLog compares two replicas, however they are cut into segments.
func sameLog(a, b string) error {
	first, err := batches(a)
	if err != nil {
		return err
	}
	second, err := batches(b)
	if err != nil {
		return err
	}
	i, j := 0, 0
	for i < len(first) && j < len(second) {
		x, y := first[i], second[j]
		switch {
		case x.Header().BaseOffset < y.Header().BaseOffset && j == 0:
			i++ // the other one begins later
		case y.Header().BaseOffset < x.Header().BaseOffset && i == 0:
			j++
		case !bytes.Equal(x, y):
			return fmt.Errorf("%s has %v, and %s has %v", a, about(x), b, about(y))
		default:
			i++
			j++
		}
	}
	if i < len(first) {
		return fmt.Errorf("%s goes on with %v, where %s ends", a, about(first[i]), b)
	}
	if j < len(second) {
		return fmt.Errorf("%s goes on with %v, where %s ends", b, about(second[j]), a)
	}
	return nil
}

func about(b record.Batch) string {
	h := b.Header()
	return fmt.Sprintf("a batch of offsets %d to %d, leader epoch %d, checksum %08x", h.BaseOffset, h.LastOffset(), h.LeaderEpoch, record.Checksum(b))
}

// batches reads all batches of a partition's folder.
func batches(dir string) (all []record.Batch, err error) {
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil {
		return nil, err
	}
	slices.Sort(logs)
	for _, path := range logs {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for b, err := range record.All(data) {
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			all = append(all, b)
		}
	}
	return all, nil
}
