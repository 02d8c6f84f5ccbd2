package voters

import (
	"errors"
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// ErrRefused says that a change of who votes isn't made: it could cost the quorum, or makes no sense.
var ErrRefused = errors.New("refused")

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// Find gives the one server that an operator means: by its id, or by the broker's when only one server has it.
func Find(members []Member, which string) (Member, error) {
	var found []Member
	for _, m := range members {
		if string(m.Server) == which || m.Server.Name() == which {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		return Member{}, refuse("no server of raft's configuration is %.64q; there are %s", which, list(members))
	case 1:
		return found[0], nil
	}
	return Member{}, refuse("broker %s has several servers, say which: %s", which, list(found))
}

func list(members []Member) string {
	var ids []string
	for _, m := range members {
		ids = append(ids, string(m.Server))
	}
	return strings.Join(ids, ", ")
}

// maxLag is how many entries a server may lack of the leader's log to be given a vote.
const maxLag = 1000

// Living says of each server that answers how far its log goes.
type Living map[member.ServerID]uint64

// Promote checks that a server may be given a vote; last is the end of the leader's log.
func Promote(members []Member, m Member, living Living, last uint64) error {
	if m.Voter {
		return refuse("server %s votes already", m.Server)
	}
	end, ok := living[m.Server]
	if !ok {
		return refuse("server %s doesn't answer", m.Server)
	}
	if end+maxLag < last {
		return refuse("server %s has %d of %d entries of raft's log: try again when it has caught up", m.Server, end, last)
	}
	voting, alive := count(members, living)
	if alive+1 < majority(voting+1) {
		return refuse("only %d of the %d voters that there would be answer: nothing could be decided", alive+1, voting+1)
	}
	return nil
}

// Outcome is what the removal of a server comes to.
type Outcome int8

const (
	// Forget takes the server out of raft's configuration.
	Forget Outcome = iota + 1
	// Demote takes its vote: it lives, and goes on as one that follows.
	Demote
)

// Remove checks that a server may lose its vote, or its place.
func Remove(members []Member, m Member, living Living) (Outcome, error) {
	_, lives := living[m.Server]
	if !m.Voter {
		if lives {
			return 0, refuse("server %s lives, and follows only: stop its broker first, or it would be added again", m.Server)
		}
		return Forget, nil
	}
	voting, alive := count(members, living)
	if voting == 1 {
		return 0, refuse("server %s is the only voter", m.Server)
	}
	if lives {
		alive--
	}
	if alive < majority(voting-1) {
		return 0, refuse("only %d of the %d voters that would be left answer: nothing could be decided", alive, voting-1)
	}
	if lives {
		return Demote, nil
	}
	return Forget, nil
}

// count says how many vote, and how many of those answer.
func count(members []Member, living Living) (voting, alive int) {
	for _, m := range members {
		if !m.Voter {
			continue
		}
		voting++
		if _, ok := living[m.Server]; ok {
			alive++
		}
	}
	return voting, alive
}

func majority(n int) int { return n/2 + 1 }
