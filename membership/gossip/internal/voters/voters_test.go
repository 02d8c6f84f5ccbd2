package voters

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

func id(name string, store int) member.ServerID {
	return member.ServerID(fmt.Sprintf("%s-%016x", name, store))
}

func peer(name string) Peer {
	return Peer{Name: name, Server: id(name, 1), Address: "10.0.0." + name + ":1"}
}

func TestForm(t *testing.T) {
	c, other := member.NewClusterID(), member.NewClusterID()
	with := func(p Peer, cluster member.ClusterID, store bool) Peer {
		p.Cluster, p.Store = cluster, store
		return p
	}
	tests := map[string]struct {
		f      Forming
		voters string // of the founders, those that vote in capitals; empty to wait
		why    string
	}{
		"alone":               {Forming{Self: peer("1"), Expect: 1, Voters: 3}, "1!", ""},
		"too few":             {Forming{Self: peer("1"), Others: []Peer{peer("2")}, Expect: 3, Voters: 3}, "", "2 of 3"},
		"the lowest proposes": {Forming{Self: peer("2"), Others: []Peer{peer("10"), peer("3")}, Expect: 3, Voters: 3}, "2! 3! 10!", ""},
		"the others wait":     {Forming{Self: peer("10"), Others: []Peer{peer("2"), peer("3")}, Expect: 3, Voters: 3}, "", "broker 2 to propose"},
		"five, three vote": {Forming{Self: peer("1"), Others: []Peer{peer("2"), peer("3"), peer("4"), peer("5")}, Expect: 5, Voters: 3},
			"1! 2! 3! 4 5", ""},
		"two: one votes": {Forming{Self: peer("1"), Others: []Peer{peer("2")}, Expect: 2, Voters: 3}, "1! 2", ""},
		"more than expected": {Forming{Self: peer("1"), Others: []Peer{peer("4"), peer("3"), peer("2")}, Expect: 3, Voters: 3},
			"1! 2! 3!", ""},
		"there is a cluster": {Forming{Self: peer("1"), Others: []Peer{peer("3"), with(peer("2"), c, true)}, Expect: 3, Voters: 3}, "", "broker 2 is there"},
		"another proposes":   {Forming{Self: peer("1"), Others: []Peer{peer("3"), with(peer("2"), c, false)}, Expect: 3, Voters: 3}, "", "being made"},
		"promised":           {Forming{Self: with(peer("1"), c, false), Others: []Peer{peer("3"), peer("2")}, Expect: 3, Voters: 3}, "", "promised itself"},
		"its own proposal goes on": {Forming{Self: with(peer("2"), c, false), Proposed: true, Others: []Peer{peer("1"), with(peer("3"), c, false), peer("4")},
			Expect: 3, Voters: 3}, "1! 2! 3!", ""},
		"its own, with lower ones": {Forming{Self: with(peer("9"), c, false), Proposed: true, Others: []Peer{peer("1"), peer("3"), peer("4")},
			Expect: 3, Voters: 3}, "1! 3! 9!", ""},
		"its own, against another": {Forming{Self: with(peer("1"), c, false), Proposed: true, Others: []Peer{peer("3"), with(peer("2"), other, false)},
			Expect: 3, Voters: 3}, "", "being made"},
		"never": {Forming{Self: peer("1"), Others: []Peer{peer("2")}, Voters: 3}, "", "bootstrap_expect is 0"},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			d := Form(tt.f)
			var got []string
			for _, f := range d.Founders {
				name := f.Name
				if f.Voter {
					name += "!"
				}
				got = append(got, name)
			}
			assert.Equal(t, tt.voters, strings.Join(got, " "))
			assert.Contains(t, d.Why, tt.why)
			assert.NotEmpty(t, d.Why)
		})
	}
}

// TestOneClusterOnly plays servers that see each other in any order and lose messages: at most one cluster is ever made, for each
// promises itself to one proposal only. In the end, when all see each other, there is one.
func TestOneClusterOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 7).Draw(t, "servers")
		expect := rapid.IntRange(n/2+1, n).Draw(t, "expect")
		all := make([]Peer, n)
		proposed := make([]bool, n)
		by := map[member.ClusterID]int{} // who has proposed it
		for i := range all {
			all[i] = peer(fmt.Sprint(i + 1))
		}
		made := map[member.ClusterID]bool{}
		step := func(i int, sees, lost func() bool) {
			if all[i].Store {
				return
			}
			if c := all[i].Cluster; c != "" && !proposed[i] { // does the proposal stand?
				if !lost() && all[by[c]].Cluster != c {
					all[i].Cluster = ""
				}
				return
			}
			var others []Peer
			for j := range all {
				if j != i && sees() {
					others = append(others, all[j])
				}
			}
			d := Form(Forming{Self: all[i], Proposed: proposed[i], Others: others, Expect: expect, Voters: 3})
			if len(d.Founders) == 0 {
				if d.Drop {
					all[i].Cluster, proposed[i] = "", false
				}
				return
			}
			if !proposed[i] {
				c := member.ClusterID(fmt.Sprint("cluster ", len(by)))
				by[c], all[i].Cluster, proposed[i] = i, c, true
			}
			all1, refused := true, false
			for _, f := range d.Founders {
				j := slices.IndexFunc(all, func(p Peer) bool { return p.Server == f.Server })
				switch {
				case j == i:
				case lost():
					all1 = false
				case all[j].Cluster == "":
					all[j].Cluster = all[i].Cluster
				case all[j].Cluster != all[i].Cluster:
					all1, refused = false, true
				}
			}
			switch {
			case all1:
				made[all[i].Cluster] = true
				for _, f := range d.Founders {
					all[slices.IndexFunc(all, func(p Peer) bool { return p.Server == f.Server })].Store = true
				}
			case refused:
				all[i].Cluster, proposed[i] = "", false
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			step(rapid.IntRange(0, n-1).Draw(t, "who"), func() bool { return rapid.Bool().Draw(t, "sees") },
				func() bool { return rapid.IntRange(0, 4).Draw(t, "lost") == 0 })
		}
		for range 10 {
			for i := range all {
				step(i, func() bool { return true }, func() bool { return false })
			}
		}
		if len(made) != 1 {
			t.Fatalf("%d clusters: %v of %v", len(made), made, all)
		}
	})
}

func TestKeep(t *testing.T) {
	cluster := member.NewClusterID()
	self := Member{id("1", 1), "10.0.0.1:1", true}
	two := Member{id("2", 1), "10.0.0.2:1", true}
	three := Member{id("3", 1), "10.0.0.3:1", false}
	moved := peer("2")
	moved.Address = "10.0.0.9:1"
	replaced := Peer{Name: "3", Server: id("3", 2), Address: "10.0.0.3:1"}
	replacedVoter := Peer{Name: "2", Server: id("2", 2), Address: "10.0.0.2:1"}
	foreign := peer("4")
	foreign.Cluster = member.NewClusterID()
	tests := map[string]struct {
		members []Member
		there   []Peer
		want    Change
	}{
		"all is well":              {[]Member{self, two, three}, []Peer{peer("2"), peer("3")}, Change{}},
		"a newcomer follows":       {[]Member{self, two}, []Peer{peer("2"), peer("3")}, Change{Add, three}},
		"nobody is dropped":        {[]Member{self, two, three}, nil, Change{}},
		"an address changed":       {[]Member{self, two}, []Peer{peer("3"), moved}, Change{Move, Member{two.Server, "10.0.0.9:1", true}}},
		"a follower lost its disk": {[]Member{self, two, three}, []Peer{replaced}, Change{Drop, three}},
		"a voter lost its disk":    {[]Member{self, two}, []Peer{replacedVoter}, Change{Add, Member{replacedVoter.Server, "10.0.0.2:1", false}}},
		"foreigners are left out":  {[]Member{self, two}, []Peer{foreign}, Change{}},
		"itself has moved":         {[]Member{{self.Server, "10.0.0.8:1", true}}, nil, Change{Move, self}},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) { assert.Equal(t, tt.want, Keep(self, tt.members, tt.there, cluster)) })
	}
}

// TestKeepNeverTouchesVotes: whatever gossip says, who votes stays, and what is said ends.
func TestKeepNeverTouchesVotes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		self := Member{id("1", 1), "10.0.0.1:1", true}
		members := []Member{self}
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			members = append(members, Member{id(fmt.Sprint(i+2), 1), fmt.Sprintf("10.0.0.%d:1", rapid.IntRange(1, 9).Draw(t, "at")), rapid.Bool().Draw(t, "votes")})
		}
		var there []Peer
		for i := range rapid.IntRange(0, 6).Draw(t, "there") {
			name := fmt.Sprint(i + 2)
			there = append(there, Peer{Name: name, Server: id(name, rapid.IntRange(1, 2).Draw(t, "store")), Address: fmt.Sprintf("10.0.0.%d:1", rapid.IntRange(1, 9).Draw(t, "at"))})
		}
		rand.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
		votes := func() (v []member.ServerID) {
			for _, m := range members {
				if m.Voter {
					v = append(v, m.Server)
				}
			}
			return v
		}
		before := votes()
		for step := 0; ; step++ {
			c := Keep(self, members, there, "")
			if c.Kind == Nothing {
				break
			}
			if step > 50 {
				t.Fatal("it never ends")
			}
			i := slices.IndexFunc(members, func(m Member) bool { return m.Server == c.Server })
			switch c.Kind {
			case Add:
				members = append(members, c.Member)
			case Move:
				members[i] = c.Member
			case Drop:
				members = slices.Delete(members, i, i+1)
			}
		}
		if !slices.Equal(before, votes()) {
			t.Fatalf("%v voted, then %v", before, votes())
		}
	})
}

func TestFind(t *testing.T) {
	members := []Member{{Server: id("1", 1)}, {Server: id("1", 2)}, {Server: id("2", 1)}}
	m, err := Find(members, "2")
	require.NoError(t, err)
	assert.Equal(t, id("2", 1), m.Server)
	m, err = Find(members, string(id("1", 2)))
	require.NoError(t, err)
	assert.Equal(t, id("1", 2), m.Server)
	_, err = Find(members, "1")
	require.ErrorContains(t, err, "say which")
	_, err = Find(members, "9")
	require.ErrorContains(t, err, "no server")
}

// cluster makes one: upper-case letters vote, those before the bar live.
func cluster(text string) (members []Member, living Living) {
	living = Living{}
	alive := true
	for _, r := range text {
		if r == '|' {
			alive = false
			continue
		}
		m := Member{Server: member.ServerID(strings.ToLower(string(r))), Voter: r < 'a'}
		members = append(members, m)
		if alive {
			living[m.Server] = 5000
		}
	}
	return members, living
}

func TestOrders(t *testing.T) {
	tests := []struct {
		cluster, who, promote, remove string // what is said against it; "" nothing
		outcome                       Outcome
	}{
		{"A", "a", "votes already", "only voter", 0},
		{"Ab", "b", "", "stop its broker first", 0},
		{"A|b", "b", "doesn't answer", "", Forget},
		{"AB", "b", "votes already", "", Demote},
		{"A|B", "b", "votes already", "", Forget},
		{"ABC", "c", "votes already", "", Demote},
		{"AB|C", "c", "votes already", "", Forget},
		{"AB|C", "b", "votes already", "only 1 of the 2", 0},
		{"ABd|C", "d", "", "stop its broker first", 0},
		{"Ad|BC", "d", "only 2 of the 4", "stop its broker first", 0},
		{"ABC|DE", "d", "votes already", "", Forget},
		{"ABC|DE", "a", "votes already", "only 2 of the 4", 0},
		{"AB|CDE", "c", "votes already", "only 2 of the 4", 0},
	}
	for _, tt := range tests {
		t.Run(tt.cluster+" "+tt.who, func(t *testing.T) {
			members, living := cluster(tt.cluster)
			m, err := Find(members, tt.who)
			require.NoError(t, err)
			check(t, Promote(members, m, living, 5500), tt.promote)
			outcome, err := Remove(members, m, living)
			check(t, err, tt.remove)
			assert.Equal(t, tt.outcome, outcome)
		})
	}
	members, living := cluster("Ab")
	check(t, Promote(members, members[1], living, 7000), "caught up")
}

func check(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, ErrRefused)
	require.ErrorContains(t, err, want)
}
