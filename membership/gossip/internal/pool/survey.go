package pool

import (
	"errors"
	"sync"

	"github.com/hashicorp/memberlist"
)

// Opinion is what gossip thinks of a server.
type Opinion string

const (
	Alive   Opinion = "alive"
	Suspect Opinion = "suspect"
	Dead    Opinion = "dead"
	Left    Opinion = "left"
)

// errSurvey ends the exchange with itself in which a pool asks what memberlist thinks.
var errSurvey = errors.New("a survey, which only asks")

// surveyor asks memberlist what it thinks of the others. It tells that only to servers that join, so the pool joins itself, and
// refuses.
type surveyor struct {
	mu     sync.Mutex // held by Survey
	state  sync.Mutex
	merges int // of both ends of the exchange, that are still to come
	found  map[string]Opinion
}

// Survey says what gossip thinks of all servers that it knows, by name, this one among them.
func (p *Pool) Survey() map[string]Opinion {
	s := &p.survey
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Lock()
	s.merges, s.found = 2, nil
	s.state.Unlock()
	_, _ = p.list.Join([]string{p.own}) // errSurvey
	s.state.Lock()
	defer s.state.Unlock()
	return s.found
}

// take says whether this is the pool's own exchange, and keeps what it says.
func (s *surveyor) take(p *Pool, peers []*memberlist.Node) bool {
	s.state.Lock()
	defer s.state.Unlock()
	if s.merges == 0 {
		return false
	}
	found, own := map[string]Opinion{}, false
	for _, n := range peers {
		own = own || n.Name == p.c.Name && n.Address() == p.own
		found[n.Name] = opinion(n.State)
	}
	if own {
		s.merges--
		s.found = found
	}
	return own
}

func opinion(s memberlist.NodeStateType) Opinion {
	switch s {
	case memberlist.StateAlive:
		return Alive
	case memberlist.StateSuspect:
		return Suspect
	case memberlist.StateLeft:
		return Left
	}
	return Dead
}
