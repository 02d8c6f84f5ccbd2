package wire

// Counts is what became of connections since the server was made.
type Counts struct {
	Accepted uint64
	Refused  uint64 // beyond a limit on their number
	Idle     uint64 // closed because they were idle, for too long or to make room
}

// Counts gives what became of connections. Any goroutine may call it.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

// Connections is how many clients are connected.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// Peer is who connections come from: through which listener, and with which software, empty where the client didn't say.
type Peer struct {
	Listener string
	Software Software
}

// Peers says how many connections there are of each kind. Any goroutine may call it.
func (s *Server) Peers() map[Peer]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[Peer]int{}
	for c := range s.conns {
		all[Peer{c.listener.name, c.Software()}]++
	}
	return all
}
