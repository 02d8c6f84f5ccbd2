package cluster

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func brokers(racks ...string) (list []Broker) {
	for i, r := range racks {
		list = append(list, Broker{ID: int32(i + 1), Rack: r})
	}
	return list
}

func partitions(topic string, replicas ...[]int32) (list []Partition) {
	for i, r := range replicas {
		p := Partition{Topic: topic, Number: int32(i), Leader: NoLeader, Replicas: r, ISR: r}
		if len(r) > 0 {
			p.Leader = r[0]
		}
		list = append(list, p)
	}
	return list
}

// after is what partitions have once the changes are made.
func after(ps []Partition, changes []Change) [][]int32 {
	var got [][]int32
	for _, p := range ps {
		to := p.Replicas
		for _, c := range changes {
			if c.Topic == p.Topic && c.Number == p.Number {
				to = c.Replicas
			}
		}
		got = append(got, to)
	}
	return got
}

func TestSpreadLeavesWhatIsEven(t *testing.T) {
	even := partitions("t", []int32{1, 2, 3}, []int32{2, 3, 1}, []int32{3, 1, 2})
	changes, err := Spread(even, brokers("", "", ""), 0, nil)
	require.NoError(t, err)
	require.Empty(t, changes)
}

func TestSpreadToNewBrokersMovesNoMoreThanItMust(t *testing.T) {
	all := partitions("t", []int32{1, 2}, []int32{2, 1}, []int32{1, 2}, []int32{2, 1})
	changes, err := Spread(all, brokers("", "", "", ""), 0, nil)
	require.NoError(t, err)
	moved := 0
	for _, c := range changes {
		moved += c.Moved()
	}
	require.Equal(t, 4, moved, "%v", changes)
}

func TestSpreadMovesAway(t *testing.T) {
	all := partitions("t", []int32{1, 2}, []int32{2, 1}, []int32{1, 2}, []int32{2, 1})
	only := []Broker{{ID: 2}, {ID: 3}}
	changes, err := Spread(all, only, 0, nil)
	require.NoError(t, err)
	for _, r := range after(all, changes) {
		slices.Sort(r)
		require.Equal(t, []int32{2, 3}, r)
	}
}

func TestSpreadWantsEnoughBrokers(t *testing.T) {
	_, err := Spread(partitions("t", []int32{1}), brokers("", ""), 3, nil)
	require.ErrorContains(t, err, "t-0: 3 replicas want as many brokers, and there are 2")
	_, err = Spread(nil, nil, 1, nil)
	require.ErrorContains(t, err, "no brokers")
}

func TestSpreadSeesWhatIsThere(t *testing.T) {
	load := partitions("other", []int32{1}, []int32{1}, []int32{1})
	changes, err := Spread(partitions("t", []int32{1}, []int32{1}), brokers("", "", ""), 0, load)
	require.NoError(t, err)
	require.Len(t, changes, 2)
	require.ElementsMatch(t, []int32{2, 3}, []int32{changes[0].Replicas[0], changes[1].Replicas[0]})
}

// TestSpreadIsEven spreads whatever there is: each partition has its replicas on different living brokers, in as many racks
// as can be, brokers have about the same number of replicas and of preferred leaders, and a second spread changes nothing
// but who is preferred.
func TestSpreadIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "brokers")
		racked := rapid.Bool().Draw(t, "racked")
		var all []Broker
		for i := range n {
			b := Broker{ID: int32(i * 3)}
			if racked {
				b.Rack = fmt.Sprintf("r%d", rapid.IntRange(0, 2).Draw(t, "rack"))
			}
			all = append(all, b)
		}
		factor := rapid.IntRange(1, n).Draw(t, "replicas")
		var ps []Partition
		for i := range rapid.IntRange(1, 40).Draw(t, "partitions") {
			had := rapid.SliceOfNDistinct(rapid.Int32Range(0, 25), 1, 5, rapid.ID).Draw(t, "had")
			ps = append(ps, Partition{Topic: "t", Number: int32(i), Replicas: had, ISR: had})
		}
		changes, err := Spread(ps, all, factor, nil)
		require.NoError(t, err)
		has, leads := map[int32]int{}, map[int32]int{}
		for _, replicas := range after(ps, changes) {
			require.Len(t, replicas, factor)
			racks := map[string]bool{}
			for _, r := range replicas {
				i := slices.IndexFunc(all, func(b Broker) bool { return b.ID == r })
				require.GreaterOrEqual(t, i, 0, "a broker that isn't there")
				if all[i].Rack == "" {
					racks[fmt.Sprint(r)] = true
				} else {
					racks[all[i].Rack] = true
				}
				has[r]++
			}
			leads[replicas[0]]++
			require.Len(t, slices.Compact(slices.Sorted(slices.Values(replicas))), factor, "a broker twice")
			require.Len(t, racks, min(factor, countRacks(all)), "%v shares racks without need", replicas)
		}
		if !racked {
			room := (len(ps)*factor + n - 1) / n
			for _, b := range all {
				require.LessOrEqual(t, has[b.ID], room+1, "broker %d of %v", b.ID, has)
				require.LessOrEqual(t, leads[b.ID], (len(ps)+n-1)/n+1, "broker %d leads of %v", b.ID, leads)
			}
		}
	})
}

func TestDrain(t *testing.T) {
	ps := partitions("t", []int32{1, 2, 3}, []int32{2, 1, 3}, []int32{1, 3, 2}, []int32{1}, []int32{1, 2})
	ps[1].Leader = 1 // 2 is preferred, 1 leads
	ps[4].Leader = 2 // 1 is preferred, 2 leads
	ps[2].ISR = []int32{1, 3}
	s := State{Brokers: brokers("", "", ""), Partitions: ps}
	changes, stuck := Drain(s, 1)
	require.Equal(t, []Partition{ps[3]}, stuck)
	require.Equal(t, [][]int32{{3, 2, 1}, {2, 3, 1}, {3, 2, 1}, {1}, {2, 1}}, after(ps, changes))
	s.Brokers = s.Brokers[:2] // without 3, which is in an ISR still
	changes, stuck = Drain(s, 1)
	require.Equal(t, [][]int32{{2, 3, 1}, {2, 3, 1}, {1, 3, 2}, {1}, {2, 1}}, after(ps, changes))
	require.Len(t, stuck, 2)
}

func TestHealth(t *testing.T) {
	ps := partitions("t", []int32{1, 2, 3}, []int32{2, 3, 1}, []int32{3, 1, 2}, []int32{9, 1})
	s := State{Controller: 1, Brokers: brokers("", "", "", ""), Partitions: ps[:3]}
	require.Empty(t, Health(s, nil))
	require.Empty(t, Health(s, map[string]int{"t": 2}))

	s.Moving = []Move{{Topic: "t", Number: 1, Adding: []int32{4}}}
	ps[1].Leader = 3
	quiet := Health(s, map[string]int{"t": 3})
	require.True(t, Healthy(quiet))
	require.Equal(t, []Fault{AtMinISR, AtMinISR, AtMinISR, Reassigning, NotPreferred}, faults(quiet))

	ps[0].ISR, ps[0].Leader = []int32{1}, NoLeader
	ps[1].ISR = []int32{3}
	ps[2].ISR = []int32{3, 2}
	s.Partitions, s.Controller = ps, -1
	bad := Health(s, map[string]int{"t": 2})
	require.False(t, Healthy(bad))
	require.Equal(t, []Fault{NoController, BrokerMissing, Leaderless, BelowMinISR, UnderReplicated, AtMinISR, AtMinISR, Reassigning, NotPreferred}, faults(bad))
	require.Equal(t, "9", bad[1].What)
	require.Equal(t, "t-0", bad[2].What)
}

func faults(of []Finding) (list []Fault) {
	for _, f := range of {
		list = append(list, f.Fault)
	}
	return list
}

func TestShares(t *testing.T) {
	s := State{Brokers: brokers("a", "b"), Partitions: partitions("t", []int32{1, 2}, []int32{2, 7})}
	s.Partitions[1].ISR = []int32{2}
	require.Equal(t, []Share{
		{Broker: Broker{ID: 1, Rack: "a"}, Alive: true, Leads: 1, Prefers: 1, Replicas: 1},
		{Broker: Broker{ID: 2, Rack: "b"}, Alive: true, Leads: 1, Prefers: 1, Replicas: 2},
		{Broker: Broker{ID: 7}, Replicas: 1, Behind: 1},
	}, s.Shares())
}
