package partition

import (
	"context"
	"sync"
)

// flushes are the appends of a partition that wait for an fsync. All that wait when one begins share it (group commit), and one
// goroutine, which is there as long as there are any, serves them.
type flushes struct {
	mu      sync.Mutex
	waiting []*flushWait
	running bool
}

// committedAfterFlush is [Partition.Committed] for what isn't on the device yet.
func (p *Partition) committedAfterFlush(a Appended, acks int16, f func(error)) (bool, error, func() bool) {
	w := &flushWait{appended: a, acks: acks, f: f}
	p.flushes.mu.Lock()
	p.flushes.waiting = append(p.flushes.waiting, w)
	first := !p.flushes.running
	p.flushes.running = true
	p.flushes.mu.Unlock()
	if first {
		go p.flush()
	}
	return false, nil, w.cancel
}

// flush serves all who wait for an fsync, until there is nobody.
func (p *Partition) flush() {
	for {
		p.flushes.mu.Lock()
		waiting := p.flushes.waiting
		p.flushes.waiting = nil
		p.flushes.running = len(waiting) > 0
		p.flushes.mu.Unlock()
		if len(waiting) == 0 {
			return
		}
		upTo := int64(0)
		for _, w := range waiting {
			upTo = max(upTo, w.appended.LastOffset+1)
		}
		err := p.failed(p.log.Flush(context.Background(), upTo))
		if err == nil {
			p.flushed()
		}
		for _, w := range waiting {
			p.afterFlush(w, err)
		}
	}
}

// flushed lets what is on the device count for the high watermark. What isn't doesn't: nobody may read what a crash could take back.
// Leadership is held still, so that what was cut off since by a change of it doesn't count either.
func (p *Partition) flushed() {
	p.role.RLock()
	defer p.role.RUnlock()
	p.advance(min(p.log.RecoveryPoint(), p.log.EndOffset()))
}

// afterFlush goes on with a wait whose fsync has ended with err.
func (p *Partition) afterFlush(w *flushWait, err error) {
	if err != nil || w.acks != -1 {
		w.finish(err)
		return
	}
	done, err, cancel := p.register(w.appended, w.finish)
	if done {
		w.finish(err)
		return
	}
	w.setCancel(cancel)
}

// flushWait is the wait for an fsync and then, maybe, for the high watermark. Whoever is first, finish or cancel, has it.
type flushWait struct {
	appended Appended
	acks     int16
	f        func(error)

	mu    sync.Mutex
	over  bool
	inner func() bool
}

func (w *flushWait) finish(err error) {
	w.mu.Lock()
	first := !w.over
	w.over = true
	w.mu.Unlock()
	if first {
		w.f(err)
	}
}

func (w *flushWait) setCancel(c func() bool) {
	w.mu.Lock()
	over := w.over
	w.inner = c
	w.mu.Unlock()
	if over { // cancelled while the flush was running
		c()
	}
}

func (w *flushWait) cancel() bool {
	w.mu.Lock()
	first, inner := !w.over, w.inner
	w.over = true
	w.mu.Unlock()
	if first && inner != nil {
		inner()
	}
	return first
}
