package log

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// agenda is a list of things to do, by time. It is a state machine: who owns it brings the time.
type agenda struct{ items agendaHeap }

type agendaItem struct {
	due time.Time
	f   func()
}

// add notes f for a time.
func (a *agenda) add(due time.Time, f func()) { heap.Push(&a.items, agendaItem{due, f}) }

// take gives one thing that is due, nil when there is none; next is when the next one is, zero for never.
func (a *agenda) take(now time.Time) (f func(), next time.Time) {
	if len(a.items) == 0 {
		return nil, time.Time{}
	}
	if first := a.items[0]; first.due.After(now) {
		return nil, first.due
	}
	return heap.Pop(&a.items).(agendaItem).f, time.Time{}
}

type agendaHeap []agendaItem

func (h agendaHeap) Len() int           { return len(h) }
func (h agendaHeap) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h agendaHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *agendaHeap) Push(x any)        { *h = append(*h, x.(agendaItem)) }
func (h *agendaHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	old[len(old)-1] = agendaItem{}
	*h = old[:len(old)-1]
	return x
}

// upkeep runs what is due: one goroutine that waits, and up to workers more while something runs.
type upkeep struct {
	mu      sync.Mutex
	agenda  agenda
	stopped bool
	wake    chan struct{}
	slots   chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
	running sync.WaitGroup
}

func startUpkeep(workers int) *upkeep {
	ctx, stop := context.WithCancel(context.Background())
	u := &upkeep{wake: make(chan struct{}, 1), slots: make(chan struct{}, workers), stop: stop, done: make(chan struct{})}
	go u.loop(ctx)
	return u
}

// After implements Scheduler.
func (u *upkeep) After(d time.Duration, f func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.stopped {
		return
	}
	u.agenda.add(time.Now().Add(d), f)
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

func (u *upkeep) loop(ctx context.Context) {
	defer close(u.done)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		u.mu.Lock()
		f, next := u.agenda.take(time.Now())
		u.mu.Unlock()
		if f != nil {
			select {
			case u.slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			u.running.Add(1)
			go func() {
				defer u.running.Done()
				defer func() { <-u.slots }()
				f()
			}()
			continue
		}
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-u.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
	}
}

// end drops what isn't due yet and waits for what runs.
func (u *upkeep) end() {
	u.mu.Lock()
	u.stopped = true
	u.mu.Unlock()
	u.stop()
	<-u.done
	u.running.Wait()
}
