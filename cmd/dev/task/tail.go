package task

import "sync"

// Tail keeps the last Max bytes written to it. Any goroutine may use it.
type Tail struct {
	Max int

	mu  sync.Mutex
	buf []byte
	cut bool
}

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.Max { // cut seldom, so that a byte is copied twice at most
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.Max:]...)
		t.cut = true
	}
	return len(p), nil
}

// String is the kept text; "…" in front says that there was more.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b, cut := t.buf, t.cut
	if len(b) > t.Max {
		b, cut = b[len(b)-t.Max:], true
	}
	if cut {
		return "…" + string(b)
	}
	return string(b)
}
