package log

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// GetOrCreate is the log of a partition, which is made in the directory with the fewest logs when there is none. ErrOffline
// when the log's directory, or every directory, has failed; ErrNoLog when there can't be such a partition. Several logs are made
// side by side: whoever wants one that somebody else is making waits for that.
func (m *Manager) GetOrCreate(ctx context.Context, tp TopicPartition) (*Log, error) {
	for {
		if l, err := m.Get(tp); err == nil {
			return l, m.online(l)
		}
		if err := tp.check(); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoLog, err)
		}
		d, others, err := m.beginMaking(tp)
		switch {
		case err != nil:
			return nil, err
		case d != nil:
			return m.make(ctx, d, tp)
		case others == nil:
			continue // it has just been made
		}
		select {
		case <-others:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (m *Manager) online(l *Log) error {
	if err := l.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrOffline, err)
	}
	return nil
}

// beginMaking says in which directory the caller is to make a log, and that it does so. It gives no directory when somebody
// else makes the log, with what is closed in the end, or has made it.
func (m *Manager) beginMaking(tp TopicPartition) (d *dirState, others <-chan struct{}, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.Get(tp); err == nil {
		return nil, nil, nil
	}
	if !m.open {
		return nil, nil, ErrClosed
	}
	if others, ok := m.making[tp]; ok {
		return nil, others, nil
	}
	if d, err = m.roomiest(tp); err != nil {
		return nil, nil, err
	}
	// What the checkpoint files say of an earlier log of that name must not be taken for this one's after a crash.
	for i := range d.files {
		if d.files[i].has(tp) {
			if err := d.write(i); err != nil {
				return nil, nil, err
			}
		}
	}
	m.making[tp] = make(chan struct{})
	m.makers.Add(1)
	d.logs.Add(1)
	return d, nil, nil
}

// roomiest is the directory with the fewest logs. The caller holds mu.
func (m *Manager) roomiest(tp TopicPartition) (*dirState, error) {
	var best *dirState
	for _, d := range m.dirs {
		if d.Err() != nil {
			// It may be here, where nobody can tell.
			if _, err := os.Stat(filepath.Join(d.path, tp.String())); err == nil {
				return nil, fmt.Errorf("%w: %s", ErrOffline, d.path)
			}
			continue
		}
		if best == nil || d.logs.Load() < best.logs.Load() {
			best = d
		}
	}
	if best == nil {
		return nil, fmt.Errorf("%w: all of them", ErrOffline)
	}
	return best, nil
}

// make makes a log in a directory, as beginMaking said.
func (m *Manager) make(ctx context.Context, d *dirState, tp TopicPartition) (*Log, error) {
	o := m.options(d, tp)
	o.CleanShutdown = true
	l, err := Open(ctx, o)
	if noDescriptors(err) {
		// That says nothing of the directory, and whoever asks for too many logs must not end the others. The new log's
		// folder goes if nothing is in it yet.
		_ = os.Remove(o.Dir)
	}
	var offline error
	m.mu.Lock()
	if err == nil {
		m.in[l] = d
		m.logs.Store(tp, l)
		// A directory that fails tells the logs that it finds: this one, or else its failure is seen here, before anybody gets the log.
		if failure := d.Err(); failure != nil {
			l.Fail(failure)
		}
		offline = m.online(l) // not later: Close may be waiting, and closes the log
	} else {
		d.logs.Add(-1)
	}
	close(m.making[tp])
	delete(m.making, tp)
	m.mu.Unlock()
	m.makers.Done()

	switch {
	case err == nil:
		return l, offline
	case ctx.Err() != nil:
		return nil, err
	case !noDescriptors(err):
		d.failed(err)
	}
	return nil, fmt.Errorf("%w: %w", ErrOffline, err)
}
