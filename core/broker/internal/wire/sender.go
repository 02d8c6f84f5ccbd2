package wire

import (
	"io"
	"net"

	"github.com/barnabas-mq/barnabas/core/storage"
)

const (
	// viewStep is how much of a view goes out before the connection counts as having made progress: a slow reader is not a
	// stuck one.
	viewStep = 4 << 20
)

// sender writes responses. It belongs to the goroutine whose turn it is to write.
type sender struct {
	gather net.Buffers // kept for its capacity
	rest   net.Buffers // of gather, while it is written
	sink   sink
}

// send writes r, whose size is filled in.
func (s *sender) send(c *Conn, r *Response) error {
	if len(r.cuts) == 0 {
		return s.write(c, r.B)
	}
	// Mapped memory goes to the kernel only: anything else, as TLS, would read it in Go code, where a fault is fatal.
	if c.tcp != nil && r.viewBytes <= viewStep && allMapped(r.cuts) {
		return s.gatherAll(c, r)
	}
	from := 0
	for _, cut := range r.cuts {
		if cut.at > from {
			if err := writeMore(c, r.B[from:cut.at]); err != nil {
				return err
			}
			from = cut.at
		}
		if err := writeView(c, cut.view); err != nil {
			return err
		}
	}
	if from < len(r.B) {
		_, err := c.nc.Write(r.B[from:])
		return err
	}
	return nil
}

func allMapped(cuts []cut) bool {
	for _, c := range cuts {
		if c.view.Mapped() == nil {
			return false
		}
	}
	return true
}

// gatherAll writes everything in one writev(2), views straight out of their maps.
func (s *sender) gatherAll(c *Conn, r *Response) error {
	all, from := s.gather[:0], 0
	for _, cut := range r.cuts {
		if cut.at > from {
			all = append(all, r.B[from:cut.at])
			from = cut.at
		}
		all = append(all, cut.view.Mapped())
	}
	if from < len(r.B) {
		all = append(all, r.B[from:])
	}
	s.gather, s.rest = all, all
	_, err := s.rest.WriteTo(c.nc)
	s.rest = nil
	clear(s.gather)
	if cap(s.gather) > 64 {
		s.gather = nil
	}
	return err
}

// writeView sends one view, in steps.
func writeView(c *Conn, v storage.View) error {
	total := v.Len()
	if total <= viewStep {
		return fully(v, c.nc)
	}
	for at := int64(0); at < total; at += viewStep {
		part, err := v.Slice(at, min(viewStep, total-at))
		if err != nil {
			return err
		}
		err = fully(part, c.nc)
		part.Release()
		if err != nil {
			return err
		}
		c.progress.Add(1)
	}
	return nil
}

func fully(v storage.View, w io.Writer) error {
	n, err := v.WriteTo(w)
	if err == nil && n < v.Len() {
		err = io.ErrShortWrite
	}
	return err
}
