package partition

import "fmt"

// This file and the other cluster_*_test.go play a whole cluster in one process, without files, connections or clocks: the real
// controller and coordination in memory, the real decider of each replica, and around them the plainest things that behave like
// a broker, a log, a network and a client. What happens, and in which order, is drawn.

// entry is one record. Values are unique.
type entry struct {
	epoch int32
	value int
}

// epochStart says where a leader epoch begins in a log.
type epochStart struct {
	epoch int32
	start int64
}

// trail is a log as far as replication sees it. It outlives the broker's process.
type trail struct {
	entries []entry
	epochs  []epochStart
	hw      int64 // what is known to be committed
	saved   int64 // the high watermark in the checkpoint: what is left of hw after a crash
}

func (l *trail) end() int64 { return int64(len(l.entries)) }

func (l *trail) latest() int32 {
	if len(l.epochs) == 0 {
		return -1
	}
	return l.epochs[len(l.epochs)-1].epoch
}

func (l *trail) assign(epoch int32, at int64) {
	if epoch > l.latest() {
		l.epochs = append(l.epochs, epochStart{epoch, at})
	}
}

func (l *trail) append(e entry) {
	l.assign(e.epoch, l.end())
	l.entries = append(l.entries, e)
}

// endOf is the largest epoch up to the one asked for, and where it ends.
func (l *trail) endOf(epoch int32) (int32, int64) {
	if epoch > l.latest() {
		return -1, -1
	}
	for i := len(l.epochs) - 1; i >= 0; i-- {
		if l.epochs[i].epoch > epoch {
			continue
		}
		if i == len(l.epochs)-1 {
			return l.epochs[i].epoch, l.end()
		}
		return l.epochs[i].epoch, l.epochs[i+1].start
	}
	return epoch, l.epochs[0].start
}

func (l *trail) truncate(offset int64) {
	offset = min(offset, l.end()) // at the end it cuts epochs that have begun there
	l.entries = l.entries[:offset:offset]
	for len(l.epochs) > 0 && l.epochs[len(l.epochs)-1].start >= offset {
		l.epochs = l.epochs[:len(l.epochs)-1]
	}
	l.hw, l.saved = min(l.hw, offset), min(l.saved, offset)
}

func (l *trail) String() string {
	s := fmt.Sprintf("hw=%d", l.hw)
	for i, e := range l.entries {
		s += fmt.Sprintf(" %d:%d@%d", i, e.value, e.epoch)
	}
	return s
}
