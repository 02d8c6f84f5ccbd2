package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
)

// sender is one connection that produces ready-made requests. One goroutine sends; where answers come while it sends or waits,
// another receives.
type sender struct {
	conn      *conn
	worker    *worker
	schedule  schedule
	templates []*template
	// share.partitions, in turn.
	partitions []int32
	producer   *producer // nil unless idempotent
	window     int64     // requests under way at most
	acks       bool      // there are answers
	codeAt     int       // where in an answer its error code stands

	sent     int64 // requests
	heads    []byte
	parts    [][]byte    // of the vectored write that is being put together
	writing  net.Buffers // parts, as the write eats them
	flights  []flight    // a ring of window places: what is under way
	answered atomic.Int64
	posted   atomic.Int64  // what answers may come for
	room     chan struct{} // has something when answers came
}

// flight is a request under way.
type flight struct{ due, records, size, wire int64 }

// burst is how much is written at once, when several requests are due: about what a socket takes.
const burst = 128 << 10

func newSender(c *conn, w *worker, p *Produce, templates []*template, partitions []int32, by *producer, s schedule) *sender {
	x := &sender{conn: c, worker: w, schedule: s, templates: templates, partitions: partitions, producer: by,
		window: int64(p.InFlight), acks: p.Acks != 0, room: make(chan struct{}, 1)}
	x.codeAt = 4 + 1 + 1 + 1 + len(p.Topic) + 1 + 4 // correlation id, tags, topics, name, partitions, index
	x.flights = make([]flight, x.window)
	return x
}

// run sends until the run is over, and waits for what is still under way.
func (s *sender) run(ctx context.Context) error {
	return because(ctx, s.send())
}

func (s *sender) send() error {
	switch {
	case !s.acks:
		return s.blind()
	case !s.schedule.paced() && s.window*int64(len(s.templates[0].body)) <= burst:
		return s.lockstep()
	}
	return s.pipeline()
}

// add puts one more request into the next write.
func (s *sender) add(due int64) *template {
	t := s.templates[s.sent%int64(len(s.templates))]
	at := int(s.sent % int64(len(s.partitions)))
	t.stamp(due)
	from := len(s.heads)
	s.heads = t.appendHead(s.heads, int32(s.sent), s.partitions[at], s.producer, at)
	s.parts = append(s.parts, s.heads[from:len(s.heads):len(s.heads)], t.body)
	s.flights[s.sent%s.window] = flight{due: due, records: t.records, size: t.size, wire: t.wire()}
	s.sent++
	return t
}

// flush writes what was added.
func (s *sender) flush() error {
	s.posted.Store(s.sent)
	s.writing = s.parts
	_, err := s.writing.WriteTo(s.conn.nc)
	s.parts, s.heads = s.parts[:0], s.heads[:0]
	return err
}

// fits reports whether one more request belongs into the write that is being put together.
func (s *sender) fits(t *template) bool {
	return t.stamps == nil && len(s.parts)/2*int(t.wire()) < burst
}

// blind sends without acknowledgements: what is written counts as answered.
func (s *sender) blind() error {
	for s.worker.more() {
		due := s.schedule.next
		if s.schedule.paced() {
			if s.worker.meter.now() < due {
				s.worker.meter.sleepUntil(due)
				continue
			}
		} else {
			due = s.worker.meter.now()
		}
		s.schedule.step()
		s.worker.sent(due, s.worker.meter.now())
		t := s.add(due)
		if err := s.flush(); err != nil {
			return err
		}
		s.worker.done(due, s.worker.meter.now(), t.records, t.size, t.wire())
	}
	s.leave()
	return nil
}

// lockstep sends what there is room for, then receives what has come, in turn. That takes the fewest switches between
// goroutines; a write must not block, though, or answers would lie about meanwhile.
func (s *sender) lockstep() error {
	for {
		for s.sent-s.answered.Load() < s.window && s.worker.more() {
			if t := s.add(s.worker.meter.now()); !s.fits(t) {
				break
			}
		}
		if len(s.parts) > 0 {
			if err := s.flush(); err != nil {
				return err
			}
		}
		if s.sent == s.answered.Load() {
			return nil
		}
		for {
			if err := s.receive(); err != nil {
				return err
			}
			if !s.conn.whole() {
				break
			}
		}
	}
}

// pipeline sends here and receives in another goroutine.
func (s *sender) pipeline() error {
	ended := make(chan error, 1)
	go func() { // ends with the connection
		err := s.receiveAll()
		close(s.room)
		ended <- err
	}()
	err := s.post()
	for err == nil && s.answered.Load() < s.sent {
		if _, open := <-s.room; !open {
			break
		}
	}
	complete := err == nil && s.answered.Load() == s.sent
	s.conn.close()
	if failed := <-ended; !complete && err == nil {
		err = failed
	}
	return err
}

// post sends until the run is over, or nobody receives any more.
func (s *sender) post() error {
	m := s.worker.meter
	for {
		if s.sent-s.answered.Load() >= s.window {
			if _, open := <-s.room; !open {
				return nil
			}
			if !m.stop.Load() {
				continue
			}
		}
		now := m.now()
		if s.schedule.paced() && now < s.schedule.next && !m.stop.Load() {
			m.sleepUntil(s.schedule.next)
			continue
		}
		for s.sent-s.answered.Load() < s.window && s.worker.more() {
			due := now
			if s.schedule.paced() {
				if due = s.schedule.next; due > now {
					break
				}
				s.schedule.step()
			}
			s.worker.sent(due, now)
			if t := s.add(due); !s.fits(t) {
				break
			}
		}
		if len(s.parts) == 0 {
			if m.stop.Load() || s.worker.left < 0 {
				s.leave()
				return nil
			}
			continue
		}
		if err := s.flush(); err != nil {
			return err
		}
	}
}

// leave counts what was due and could not be sent.
func (s *sender) leave() {
	if s.schedule.paced() {
		s.worker.giveUp(s.schedule.next, max(1, int64(s.schedule.interval)), s.templates[0].records)
	}
}

// receiveAll receives until the connection ends, which is an error.
func (s *sender) receiveAll() error {
	for {
		if err := s.receive(); err != nil {
			return err
		}
		if !s.conn.whole() { // one word for all answers that came together
			select {
			case s.room <- struct{}{}:
			default:
			}
		}
	}
}

// receive takes one answer.
func (s *sender) receive() error {
	response, err := s.conn.read()
	if err != nil {
		return err
	}
	if len(response) < s.codeAt+2 {
		return fmt.Errorf("the answer to Produce has %d bytes only", len(response))
	}
	if code := int16(binary.BigEndian.Uint16(response[s.codeAt:])); code != 0 {
		return fmt.Errorf("the broker refuses: %w", kerr.ErrorForCode(code))
	}
	n := s.answered.Load()
	if n >= s.posted.Load() {
		return errors.New("an answer to a request that was not sent")
	}
	f := s.flights[n%s.window]
	s.worker.done(f.due, s.worker.meter.now(), f.records, f.size, f.wire)
	s.answered.Store(n + 1)
	return nil
}
