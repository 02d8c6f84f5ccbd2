package log

import (
	"errors"
	"fmt"
	"maps"
)

// dirEvents hears what the logs of a directory tell.
type dirEvents dirState

func (e *dirEvents) HighWatermarkMoved(*Log) { (*dirState)(e).changed(highWatermarks) }
func (e *dirEvents) RecoveryPointMoved(*Log) { (*dirState)(e).changed(recoveryPoints) }
func (e *dirEvents) StartOffsetMoved(*Log)   { (*dirState)(e).changed(startOffsets) }
func (e *dirEvents) CompactionDue(*Log) {
	if c := e.manager.cleaner; c != nil {
		c.due()
	}
}

func (e *dirEvents) RecoveryPointMovedBack(*Log) {
	_ = (*dirState)(e).write(recoveryPoints) // an error takes the directory offline
}

func (e *dirEvents) BeginsAnew(*Log) {
	_ = (*dirState)(e).write(startOffsets) // an error takes the directory offline
}

func (e *dirEvents) CleanedToMovedBack(*Log) {
	_ = (*dirState)(e).write(cleanerOffsets) // an error takes the directory offline
}

func (e *dirEvents) Failed(_ *Log, err error) {
	(*dirState)(e).failed(err)
}

// changed sees to it that a checkpoint file is written soon. Nothing waits when nothing changes.
func (d *dirState) changed(i int) {
	c := &d.files[i]
	if c.every <= 0 || c.due.Load() || c.due.Swap(true) {
		return
	}
	d.manager.upkeep.After(c.every, func() {
		if err := d.write(i); err != nil && d.Err() == nil {
			d.failed(err)
		}
	})
}

// has reports whether the file speaks of a partition.
func (c *checkpoint) has(tp TopicPartition) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.written[tp]
	return ok
}

// write puts what the logs have now into a checkpoint file, unless that is what it says. An error takes the directory
// offline.
func (d *dirState) write(i int) error {
	c := &d.files[i]
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due.Store(false) // before looking: what changes from now on asks for another write
	offsets := make(map[TopicPartition]int64, d.logs.Load())
	if !d.manager.opened.Load() {
		maps.Copy(offsets, c.written) // of logs that are still to be opened
	}
	d.manager.logs.Range(func(key, l any) bool {
		log, tp := l.(*Log), key.(TopicPartition)
		if log.o.Events == Events((*dirEvents)(d)) {
			if offset, yes := c.of(log); yes {
				offsets[tp] = offset
			} else {
				delete(offsets, tp)
			}
		}
		return true
	})
	if maps.Equal(offsets, c.written) {
		return nil
	}
	if err := d.WriteCheckpoint(c.name, offsets); err != nil {
		err = fmt.Errorf("write %s: %w", c.name, err)
		d.failed(err)
		return err
	}
	c.written = offsets
	return nil
}

// failed takes a directory offline: its logs take no more writes, and DirFailed is called.
func (d *dirState) failed(cause error) {
	err := fmt.Errorf("%w: %s: %w", ErrOffline, d.path, cause)
	if !d.offline.CompareAndSwap(nil, &err) {
		return
	}
	d.log.Error("log directory is offline from now on", "dir", d.path, "err", cause)
	d.manager.logs.Range(func(_, l any) bool {
		if log := l.(*Log); log.o.Events == Events((*dirEvents)(d)) {
			log.Fail(errors.New("its directory failed"))
		}
		return true
	})
	if d.manager.o.DirFailed != nil {
		d.manager.upkeep.After(0, func() { d.manager.o.DirFailed(d.Dir, err) })
	}
}
