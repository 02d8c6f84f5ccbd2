package partition

// waiter is a produce request that waits for the high watermark to reach offset under leader epoch.
type waiter struct {
	id     *byte // identity, for withdraw
	offset int64
	epoch  int32
	f      func(error)
}

// callbacks are answers to be given once no lock is held.
type callbacks []callback

type callback struct {
	f   func(error)
	err error
}

func (c callbacks) call() {
	for _, cb := range c {
		cb.f(cb.err)
	}
}

// answer says whether a wait for the high watermark to reach offset under a leader epoch is over, and how it ended. Called
// with mu held.
func (p *Partition) answer(offset int64, epoch int32) (done bool, err error) {
	v := p.view.Load()
	switch {
	case v.removed:
		return true, ErrUnknownPartition
	case v.offline != nil:
		return true, ErrOffline
	case v.role != RoleLeader || v.epoch != epoch:
		return true, ErrNotLeader
	case p.state.hw < offset:
		return false, nil
	case v.underMin:
		return true, ErrNotEnoughReplicasAfterAppend
	}
	return true, nil
}

// settle takes out the waits that are over (all of them, with err, when that is given). Called with mu held.
func (p *Partition) settle(err error) (done callbacks) {
	rest := p.waiting[:0]
	for _, w := range p.waiting {
		if err != nil {
			done = append(done, callback{w.f, err})
		} else if over, result := p.answer(w.offset, w.epoch); over {
			done = append(done, callback{w.f, result})
		} else {
			rest = append(rest, w)
		}
	}
	clear(p.waiting[len(rest):])
	if p.waiting = rest; len(rest) == 0 {
		p.waiting = nil // an idle partition keeps no buffer
	}
	return done
}

// withdraw takes a wait back; it reports false when its callback was or is being called.
func (p *Partition) withdraw(id *byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.waiting {
		if p.waiting[i].id == id {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// Watch is signalled when something changes that a reader may wait for. One watch may be registered with many partitions: a
// fetch request has one for all that it asks for. It is used by one goroutine.
type Watch struct{ c chan struct{} }

// NewWatch makes a watch that has not been signalled.
func NewWatch() *Watch { return &Watch{c: make(chan struct{}, 1)} }

// C receives when the watch was signalled since it was last received from. Several signals make one.
func (w *Watch) C() <-chan struct{} { return w.c }

// Signal wakes whoever receives from C. It never blocks.
func (w *Watch) Signal() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

type watchEntry struct {
	w *Watch
	// replica is set for followers, who wait for the log end; consumers wait for the high watermark.
	replica bool
}

// Watch registers w, to be signalled when leadership or existence of this replica changes, and for consumers when the high watermark or
// last stable offset do, for replicas when the log end offset or the low watermark does. Register first, then look, so that nothing is
// missed.
func (p *Partition) Watch(w *Watch, replica bool) {
	p.mu.Lock()
	if p.watches == nil {
		p.watches = p.fewWatches[:0]
	}
	p.watches = append(p.watches, watchEntry{w, replica})
	p.mu.Unlock()
}

// Unwatch takes the registration back.
func (p *Partition) Unwatch(w *Watch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.watches {
		if p.watches[i].w == w {
			last := len(p.watches) - 1
			p.watches[i] = p.watches[last]
			p.watches[last] = watchEntry{}
			if p.watches = p.watches[:last]; last == 0 {
				p.watches = nil
			}
			return
		}
	}
}

// Changes counts what watches are signalled for. Who has read and finds it as it was before needn't read again.
func (p *Partition) Changes() uint64 { return p.changes.Load() }

// what is what has changed.
type what uint8

const (
	committed what = 1 << iota // high watermark, last stable offset, or log start: for consumers
	appended                   // log end offset or low watermark: for replicas
	all       = committed | appended
)

// signal wakes the watches for what has changed. Called with mu held.
func (p *Partition) signal(w what) {
	p.changes.Add(1)
	for i := range p.watches {
		if e := &p.watches[i]; w == all || e.replica == (w == appended) {
			e.w.Signal()
		}
	}
}
