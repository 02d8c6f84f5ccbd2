package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Change is a partition's new replicas, the preferred leader first.
type Change struct {
	Topic    string
	Number   int32
	Replicas []int32
	From     []int32 // what they were
	Leader   int32   // who led, NoLeader for nobody
}

// Spread works out where the replicas of partitions go so that the brokers share them evenly: replicas and preferred
// leaders, with no two replicas of a partition in one rack as long as there are enough racks. A replica stays where it is
// when that doesn't stand against it, for moving one costs what it holds. replicas is their number for each partition; 0
// keeps what each has. Partitions that needn't change are left out.
//
// load is what else the brokers have, partitions that aren't among those that are spread; it may be nil.
func Spread(partitions []Partition, brokers []Broker, replicas int, load []Partition) ([]Change, error) {
	if len(brokers) == 0 {
		return nil, errors.New("no brokers to put replicas on")
	}
	s := spreader{racks: map[int32]string{}, has: map[int32]int{}, leads: map[int32]int{}}
	for _, b := range brokers {
		s.brokers = append(s.brokers, b.ID)
		s.racks[b.ID] = b.Rack
	}
	s.distinct = countRacks(brokers)
	total := 0
	for _, p := range load {
		s.count(p.Replicas)
		total += len(p.Replicas)
	}
	want := make([]int, len(partitions))
	for i, p := range partitions {
		want[i] = cmp.Or(replicas, len(p.Replicas))
		if want[i] > len(brokers) {
			return nil, fmt.Errorf("%s: %d replicas want as many brokers, and there are %d", p.Name(), want[i], len(brokers))
		}
		total += want[i]
	}
	// A replica is let stay only where there is room for it, which is what each broker has to take at least.
	s.room = (total + len(brokers) - 1) / len(brokers)
	kept := make([][]int32, len(partitions))
	for i, p := range partitions {
		kept[i] = s.keep(p, want[i])
	}
	var changes []Change
	for i, p := range partitions {
		to := s.lead(s.fill(p, kept[i], want[i]))
		if !slices.Equal(to, p.Replicas) {
			changes = append(changes, Change{Topic: p.Topic, Number: p.Number, Replicas: to, From: p.Replicas, Leader: p.Leader})
		}
	}
	return changes, nil
}

// countRacks is the number of racks. Brokers without one are each a rack of their own.
func countRacks(brokers []Broker) int {
	names, alone := map[string]bool{}, 0
	for _, b := range brokers {
		if b.Rack == "" {
			alone++
		} else {
			names[b.Rack] = true
		}
	}
	return len(names) + alone
}

// spreader counts what the brokers have while replicas are given out.
type spreader struct {
	brokers  []int32
	racks    map[int32]string
	distinct int           // racks
	has      map[int32]int // replicas
	leads    map[int32]int // partitions whose first replica they are
	room     int
}

func (s *spreader) count(replicas []int32) {
	for i, r := range replicas {
		s.has[r]++
		if i == 0 {
			s.leads[r]++
		}
	}
}

// crowded says whether a replica on broker b would share its rack with one of the others, while another rack is free.
func (s *spreader) crowded(b int32, others []int32) bool {
	if len(others) >= s.distinct || s.racks[b] == "" {
		return false
	}
	return slices.ContainsFunc(others, func(o int32) bool { return o != b && s.racks[o] == s.racks[b] })
}

// keep chooses those of a partition's replicas that may stay.
func (s *spreader) keep(p Partition, want int) (stay []int32) {
	for _, r := range p.Replicas {
		_, wanted := s.racks[r]
		if wanted && len(stay) < want && s.has[r] < s.room && !s.crowded(r, stay) {
			stay = append(stay, r)
			s.has[r]++
		}
	}
	return stay
}

// fill adds replicas on the brokers that have the fewest.
func (s *spreader) fill(p Partition, replicas []int32, want int) []int32 {
	replicas = slices.Clone(replicas)
	for len(replicas) < want {
		best := int32(-1)
		for _, b := range s.brokers {
			if slices.Contains(replicas, b) {
				continue
			}
			if best < 0 || s.before(b, best, replicas, p) {
				best = b
			}
		}
		replicas = append(replicas, best)
		s.has[best]++
	}
	return replicas
}

// before says whether broker a is better for another replica than b.
func (s *spreader) before(a, b int32, replicas []int32, p Partition) bool {
	if x, y := s.crowded(a, replicas), s.crowded(b, replicas); x != y {
		return y
	}
	if s.has[a] != s.has[b] {
		return s.has[a] < s.has[b]
	}
	if x, y := slices.Contains(p.Replicas, a), slices.Contains(p.Replicas, b); x != y {
		return x
	}
	// Beginning at another broker for each partition, or the first broker would always get the odd one.
	n := int32(len(s.brokers))
	at := func(id int32) int32 { return (int32(slices.Index(s.brokers, id)) - p.Number%n + n) % n }
	return at(a) < at(b)
}

// lead puts that replica first whose broker leads the fewest.
func (s *spreader) lead(replicas []int32) []int32 {
	first := slices.MinFunc(replicas, func(a, b int32) int { return s.leads[a] - s.leads[b] })
	s.leads[first]++
	return append([]int32{first}, slices.DeleteFunc(slices.Clone(replicas), func(r int32) bool { return r == first })...)
}

// Drain works out who leads instead of a broker: for each partition that it leads or would lead, its replicas in another
// order, with one first that is in sync and whose broker leads few. stuck are the partitions that it leads and nobody else
// could: no other replica is in sync.
func Drain(s State, id int32) (changes []Change, stuck []Partition) {
	leads := map[int32]int{}
	for _, p := range s.Partitions {
		leads[p.Leader]++
	}
	for _, p := range s.Partitions {
		if p.Leader != id && p.Preferred() != id {
			continue
		}
		var able []int32
		for _, r := range p.Replicas {
			_, alive := s.Broker(r)
			if r != id && alive && slices.Contains(p.ISR, r) {
				able = append(able, r)
			}
		}
		if len(able) == 0 {
			if p.Leader == id {
				stuck = append(stuck, p)
			}
			continue
		}
		next := slices.MinFunc(able, func(a, b int32) int { return leads[a] - leads[b] })
		if p.Leader != id && slices.Contains(able, p.Leader) {
			next = p.Leader // it leads already
		} else {
			leads[next]++
		}
		rest := slices.DeleteFunc(slices.Clone(p.Replicas), func(r int32) bool { return r == next || r == id })
		to := append(append([]int32{next}, rest...), id)
		changes = append(changes, Change{Topic: p.Topic, Number: p.Number, Replicas: to, From: p.Replicas, Leader: p.Leader})
	}
	return changes, stuck
}

// Moved counts the replicas that a change brings to brokers that didn't have one.
func (c Change) Moved() (n int) {
	for _, r := range c.Replicas {
		if !slices.Contains(c.From, r) {
			n++
		}
	}
	return n
}
