package compare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFiguresAgainstTargets(t *testing.T) {
	r := Report{
		{Name: "a", Ours: 1, Theirs: 2, Limit: 0.5, OfRatio: true},
		{Name: "b", Ours: 1.01, Theirs: 2, Limit: 0.5, OfRatio: true},
		{Name: "c", Ours: 1, Limit: 0.5, OfRatio: true},
		{Name: "d", Ours: 30, Limit: 30},
		{Name: "e", Ours: 31, Theirs: 300, Limit: 30},
		{Name: "f", Ours: 4, Theirs: 2, Limit: 2, OfRatio: true, AtLeast: true},
		{Name: "g", Ours: 3.9, Theirs: 2, Limit: 2, OfRatio: true, AtLeast: true},
		{Name: "h", Ours: 3.9, Limit: 2, OfRatio: true, AtLeast: true},
	}
	met := make([]bool, len(r))
	for i := range r {
		met[i] = r[i].Met()
	}
	require.Equal(t, []bool{true, false, false, true, false, true, false, false}, met)
	require.Equal(t, 5, r.Missed())
	require.Contains(t, r.String(), "MISSED")
}

func TestMedian(t *testing.T) {
	require.Equal(t, 0.0, median(nil))
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
}

func TestUnknownFigure(t *testing.T) {
	c := &Comparison{Options: Options{Only: []string{"nope"}}}
	_, err := c.Run(t.Context())
	require.ErrorContains(t, err, "start-1000")
}

func TestWhatIsWanted(t *testing.T) {
	single := &Comparison{}
	require.True(t, single.wants("start"))
	require.False(t, single.wantsClusters(clusterNames()...))

	clusters := &Comparison{Options: Options{Clusters: true}}
	require.False(t, clusters.wants("start"))
	require.True(t, clusters.wantsClusters(clusterCPU))

	both := &Comparison{Options: Options{Only: []string{"start", clusterCPU}}}
	require.True(t, both.wants("start"))
	require.False(t, both.wants("memory"))
	require.True(t, both.wantsClusters(clusterThroughput, clusterCPU))
	require.False(t, both.wantsClusters(clusterLatency))
}

func TestAcknowledgements(t *testing.T) {
	begin := time.Unix(1000, 0)
	after := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	acks := []ack{
		{0, after(0), after(90)}, {1, after(1), after(91)}, // what connecting takes
		{0, after(1000), after(1002)}, {1, after(1001), after(1004)},
		{0, after(1500), after(4000)}, {1, after(2000), after(4001)}, {0, after(3000), after(4002)},
	}
	require.Equal(t, 0.0, delay(nil, 0, 0.99))
	require.Equal(t, 90.0, delay(acks[:2], 0, 0.5))
	require.Equal(t, 2.0, delay(acks[:4], time.Second, 0.5))
	require.Equal(t, 0.0, delay(acks[:4], time.Minute, 0.5))
	require.Equal(t, 2500.0, delay(acks, time.Second, 1))

	require.Equal(t, 2998*time.Millisecond, silence(acks))
	require.Equal(t, time.Duration(0), silence(acks[:2]))

	require.Equal(t, after(4002), goesOn(acks, after(1500), 2), "what was to be sent before doesn't count")
	require.Zero(t, goesOn(acks, after(2000), 2), "partition 1 never went on")
}
