package wire

import (
	"context"
	"errors"
	"net"
	"time"
)

// listener is one bound address.
type listener struct {
	name string
	nl   net.Listener
}

// How long accepting pauses after an error such as too many open files.
const (
	firstPause = 5 * time.Millisecond
	maxPause   = time.Second
)

// accept takes connections in until the listener is closed.
func (s *Server) accept(l *listener) {
	pause := firstPause
	for {
		nc, err := l.nl.Accept()
		if err == nil {
			pause = firstPause
			s.admit(l, nc)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.logger.Warn("cannot accept connections", "listener", l.name, "error", err, "retry_in", pause)
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// admit starts to serve a connection, if the limits allow it.
func (s *Server) admit(l *listener, nc net.Conn) {
	host, _, err := net.SplitHostPort(nc.RemoteAddr().String())
	if err != nil {
		host = nc.RemoteAddr().String()
	}
	c := &Conn{server: s, listener: l, nc: nc, host: host, ip: host, gone: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || !s.roomFor(host, descriptor(nc)) {
		s.counts.Refused++
		nc.Close()
		return
	}
	s.counts.Accepted++
	c.shard = uint32(s.counts.Accepted)
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	c.room.L = &c.mu
	c.in.pool, c.in.max, c.in.moved = &s.buffers, s.options.MaxRequestBytes, &c.progress
	c.in.src.attach(nc)
	c.in.src.idle = c.sendHeld
	c.seen.since = time.Now()
	if tcp, ok := nc.(*net.TCPConn); ok {
		c.tcp = tcp
		s.tune(tcp)
	}
	s.conns[c] = struct{}{}
	s.perIP[host]++
	s.running.Go(c.serve)
}

// tune sets the options of a new socket. Go has set TCP_NODELAY and keep-alive already. What the system refuses is left as
// it is: the connection works all the same.
func (s *Server) tune(tcp *net.TCPConn) {
	if n := s.options.SendBuffer; n > 0 {
		tcp.SetWriteBuffer(n)
	}
	if n := s.options.ReceiveBuffer; n > 0 {
		tcp.SetReadBuffer(n)
	}
}

// SetLimits sets the limits for connections that come from now on. Those that are there stay.
func (s *Server) SetLimits(l Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = l
}

// roomFor reports whether one more connection from host, with that file descriptor, may be served, if need be by closing an idle
// one.
func (s *Server) roomFor(host string, descriptor int) bool {
	limit, special := s.limits.PerIP[host]
	if !special {
		limit = s.limits.MaxConnectionsPerIP
	}
	if (special || limit > 0) && s.perIP[host] >= limit {
		s.logger.Debug("connection refused: too many from this address", "client", host, "limit", limit)
		return false
	}
	s.watchDescriptors(descriptor)
	most := s.limits.MaxConnections
	if s.most > 0 && (most <= 0 || s.most < most) {
		most = s.most
	}
	if most <= 0 || len(s.conns) < most {
		return true
	}
	idlest := s.idlest()
	if idlest == nil {
		s.logger.Debug("connection refused: too many, and none is idle", "client", host, "limit", most)
		return false
	}
	idlest.close()
	s.counts.Idle++
	return true
}

// watchDescriptors looks at the file descriptor of a new connection. A large one says that there may be no more connections than
// now, until there are far fewer. Where the logs alone have that many files open, a few clients may come all the same.
func (s *Server) watchDescriptors(descriptor int) {
	n := len(s.conns)
	if n <= s.most/2 {
		s.most = 0
	}
	if descriptor <= s.options.MaxDescriptor || n <= s.options.MaxDescriptor/20 || s.most > 0 && n >= s.most {
		return
	}
	if s.most == 0 {
		s.logger.Warn("nearly all files that this process may have open are: new connections take the place of idle ones, or are refused",
			"connections", n, "max_descriptor", s.options.MaxDescriptor)
	}
	s.most = n
}

// idlest is the connection that has waited for a request for longest, as far as the last sweep knows.
func (s *Server) idlest() *Conn {
	var found *Conn
	for c := range s.conns {
		if c.state.Load() != reading || c.closed() {
			continue
		}
		if found == nil || c.seen.at(c).Before(found.seen.at(found)) {
			found = c
		}
	}
	return found
}

// sighting is what the sweeper last saw of a connection. The server's lock guards it.
type sighting struct {
	progress uint32
	since    time.Time
}

// at is when the connection was first seen without progress, now when it has moved since.
func (v *sighting) at(c *Conn) time.Time {
	if p := c.progress.Load(); p != v.progress {
		v.progress, v.since = p, time.Now()
	}
	return v.since
}

// sweep closes idle connections: those that wait for a byte, or to get rid of one, for longer than MaxIdle. It looks eight
// times in that span, so that no connection has to keep a timer or look at the clock.
func (s *Server) sweep() {
	ticker := time.NewTicker(max(s.options.MaxIdle/8, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-ticker.C:
			for _, c := range s.idle(now) {
				s.logger.Debug("idle connection closed", "listener", c.listener.name, "client", c.host)
				c.close()
			}
		}
	}
}

func (s *Server) idle(now time.Time) []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var idle []*Conn
	for c := range s.conns {
		since := c.seen.at(c)
		if c.state.Load() == working {
			c.seen.since = now
		} else if now.Sub(since) >= s.options.MaxIdle {
			idle = append(idle, c)
			s.counts.Idle++
		}
	}
	return idle
}
