package wire

import (
	"sync"
	"time"
)

// watchAfter is how long a handler waits before anybody looks whether its client is still there: most waits are shorter.
const watchAfter = time.Second

// watch looks after the peer while a handler waits and nobody reads from the connection.
type watch struct {
	timer *time.Timer

	mu      sync.Mutex
	armed   bool
	running chan struct{} // closed when the look-out has ended; nil when there is none
}

// Waiting says that the handler is about to wait, perhaps for long. Until [Conn.Resume] the context of the request also ends
// when the peer goes away. Only for the handler of this connection's request.
func (c *Conn) Waiting() {
	w := &c.watch
	w.mu.Lock()
	w.armed = true
	w.mu.Unlock()
	if w.timer == nil {
		w.timer = time.AfterFunc(watchAfter, c.lookOut)
	} else {
		w.timer.Reset(watchAfter)
	}
}

// Resume says that the wait is over. The context stays ended when the peer went away: there is nobody to answer then, but a
// reply is still tried, for a client that only closed its sending side.
func (c *Conn) Resume() {
	w := &c.watch
	w.mu.Lock()
	w.armed = false
	running := w.running
	w.mu.Unlock()
	w.timer.Stop()
	if running == nil {
		return
	}
	c.wake() // ends the look-out
	<-running
	w.mu.Lock()
	w.running = nil
	w.mu.Unlock()
	c.nc.SetReadDeadline(time.Time{})
}

// lookOut waits until the peer closes, sends more, or the handler's wait ends. It runs in the timer's goroutine.
func (c *Conn) lookOut() {
	w := &c.watch
	w.mu.Lock()
	if !w.armed || w.running != nil {
		w.mu.Unlock()
		return
	}
	running := make(chan struct{})
	w.running = running
	w.mu.Unlock()
	defer close(running)
	if c.peerGone() {
		c.cancel()
	}
}
