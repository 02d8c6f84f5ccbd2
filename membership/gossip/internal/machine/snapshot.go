package machine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// formatName and formatVersion are in the first line of a snapshot.
const (
	formatName    = "barnabas-memberlist"
	formatVersion = 1
)

// line is one line of a snapshot: exactly one member is set.
type line struct {
	Header    *snapshotHeader  `json:"header,omitempty"`
	Op        *state.Op        `json:"op,omitempty"`
	Session   *snapshotSession `json:"session,omitempty"`
	Seat      *snapshotSeat    `json:"controller,omitempty"`
	Broker    *Register        `json:"broker,omitempty"`
	Request   *Request         `json:"request,omitempty"`
	Withdrawn *Holding         `json:"withdrawn,omitempty"`
	Reported  int64            `json:"reported,omitempty"`
	Lines     int              `json:"lines,omitempty"` // the last: how many there are before it
}

type snapshotHeader struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Index   uint64 `json:"index"` // of the last command that is in it
}

type snapshotSession struct {
	ID     uint64 `json:"id"`
	Server string `json:"server"`
}

type snapshotSeat struct {
	Campaign
	Epoch int32 `json:"epoch"`
}

// Snapshot is a state that doesn't change any more. It may be used by another goroutine than the Machine.
type Snapshot struct{ lines []line }

// Snapshot copies the state, as it is after the command at index.
func (m *Machine) Snapshot(index uint64) *Snapshot {
	s := &Snapshot{}
	add := func(l line) { s.lines = append(s.lines, l) }
	add(line{Header: &snapshotHeader{formatName, formatVersion, index}})
	m.kept.Dump(func(o state.Op) bool {
		if o.State != nil {
			o.State.ISR = slices.Clone(o.State.ISR)
		}
		if o.Config != nil {
			o.Config.Values = maps.Clone(o.Config.Values)
		}
		add(line{Op: &o})
		return true
	})
	ids, servers := m.Sessions()
	for i, id := range ids {
		add(line{Session: &snapshotSession{id, servers[i]}})
	}
	if c := m.controller; c != nil {
		add(line{Seat: &snapshotSeat{Campaign{c.Holding, c.broker}, c.epoch}})
	}
	for _, id := range slices.Sorted(maps.Keys(m.brokers)) {
		r := m.brokers[id]
		add(line{Broker: &Register{r.Holding, r.broker}})
	}
	for _, r := range m.requests {
		add(line{Request: &Request{r.Broker, r.ID}})
	}
	for _, h := range slices.SortedFunc(maps.Keys(m.withdrawn), func(a, b Holding) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Nonce, b.Nonce))
	}) {
		add(line{Withdrawn: &h})
	}
	if m.reported > 0 {
		add(line{Reported: m.reported})
	}
	return s
}

// WriteTo writes the snapshot as lines of JSON, the last of which counts them.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	size := int64(0)
	for i := range len(s.lines) + 1 {
		l := line{Lines: len(s.lines)}
		if i < len(s.lines) {
			l = s.lines[i]
		}
		text, err := json.Marshal(l)
		if err != nil {
			return size, err
		}
		n, err := out.Write(append(text, '\n'))
		if size += int64(n); err != nil {
			return size, err
		}
	}
	return size, out.Flush()
}

// ErrSnapshot says that a snapshot is damaged, or was written by a newer version.
var ErrSnapshot = errors.New("snapshot can't be read")

// ReadSnapshot reads what WriteTo has written: the state, and the index of its last command. Its errors are ErrSnapshot.
func ReadSnapshot(r io.Reader) (*Machine, uint64, error) {
	m, index := New(), uint64(0)
	in := bufio.NewReaderSize(r, 64<<10)
	for n := 0; ; n++ {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return nil, 0, fmt.Errorf("%w: it ends after %d lines: %w", ErrSnapshot, n, err)
		}
		var l line
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&l); err != nil && n > 0 {
			return nil, 0, fmt.Errorf("%w: line %d: %w", ErrSnapshot, n+1, err)
		}
		switch {
		case n == 0:
			if l.Header == nil || l.Header.Format != formatName {
				return nil, 0, fmt.Errorf("%w: its first line is no header of one", ErrSnapshot)
			}
			if l.Header.Version != formatVersion {
				return nil, 0, fmt.Errorf("%w: it has format version %d, this program knows %d", ErrSnapshot, l.Header.Version, formatVersion)
			}
			index = l.Header.Index
		case l.Lines > 0:
			if l.Lines != n {
				return nil, 0, fmt.Errorf("%w: it has %d lines, not %d", ErrSnapshot, n, l.Lines)
			}
			return m, index, nil
		default:
			if err := m.restore(&l); err != nil {
				return nil, 0, fmt.Errorf("%w: line %d: %w", ErrSnapshot, n+1, err)
			}
		}
	}
}

func (m *Machine) restore(l *line) error {
	switch {
	case l.Op != nil:
		return m.kept.Apply(l.Op)
	case l.Session != nil:
		m.sessions[l.Session.ID] = l.Session.Server
	case l.Seat != nil:
		if _, ok := m.sessions[l.Seat.Session]; !ok || l.Seat.Epoch != m.kept.ControllerEpoch {
			return fmt.Errorf("a controller of session %d and epoch %d, where the last was %d", l.Seat.Session, l.Seat.Epoch, m.kept.ControllerEpoch)
		}
		m.controller = &seat{l.Seat.Holding, l.Seat.Broker, l.Seat.Epoch}
	case l.Broker != nil:
		if _, ok := m.sessions[l.Broker.Session]; !ok || state.CheckBroker(l.Broker.Broker.Election()) != nil {
			return fmt.Errorf("broker %d of session %d", l.Broker.Broker.ID, l.Broker.Session)
		}
		m.brokers[l.Broker.Broker.ID] = registered{l.Broker.Holding, l.Broker.Broker}
	case l.Request != nil:
		m.requests = append(m.requests, election.Request{Kind: election.DirFailed, Broker: l.Request.Broker, ID: l.Request.ID})
	case l.Withdrawn != nil:
		if !m.HasSession(l.Withdrawn.Session) {
			return fmt.Errorf("something of session %d, which does not exist, was taken back", l.Withdrawn.Session)
		}
		m.withdrawn[*l.Withdrawn] = struct{}{}
	case l.Reported > 0:
		m.reported = l.Reported
	default:
		return errors.New("it says nothing")
	}
	return nil
}
