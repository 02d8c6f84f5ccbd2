package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// TestSoftwareIsBounded: clients call themselves what they want; there are so many series, and no connection is lost.
func TestSoftwareIsBounded(t *testing.T) {
	peers := map[wire.Peer]int{{Listener: "A"}: 7}
	for i := range 1000 {
		peers[wire.Peer{Listener: "A", Software: wire.Software{Name: fmt.Sprint("client-", i), Version: "1"}}] = 1 + i%3
	}
	peers[wire.Peer{Listener: "A", Software: wire.Software{Name: strings.Repeat("x", 30_000), Version: "1"}}] = 50
	total, want := 0, 0
	for _, n := range peers {
		want += n
	}
	all := countSoftware(peers)
	assert.LessOrEqual(t, len(all), maxSoftware+1)
	seen := map[softwareCount]bool{}
	for _, s := range all {
		total += s.connections
		s.connections = 0
		assert.False(t, seen[s], "%v is there twice", s)
		seen[s] = true
		assert.LessOrEqual(t, len(s.name), maxSoftwareName)
	}
	assert.Equal(t, want, total)
	assert.True(t, seen[softwareCount{listener: "A", name: unknownSoftware, version: unknownSoftware}])
}

// TestGroupsAreBounded: the pairs that are furthest behind are shown, and those that aren't are counted.
func TestGroupsAreBounded(t *testing.T) {
	var lags []groupLag
	for i := range maxGroupTopics + 10 {
		lags = append(lags, groupLag{group: fmt.Sprintf("g-%06d", i), partition: partition.ID{Topic: "t"}, records: int64(i), aged: true})
	}
	lags = append(lags, groupLag{group: strings.Repeat("x", maxGroupName+1), partition: partition.ID{Topic: "t"}, records: 1 << 40})
	all, leftOut := byTopic(lags)
	assert.Len(t, all, maxGroupTopics)
	assert.Equal(t, 11, leftOut)
	assert.EqualValues(t, maxGroupTopics+9, all[0].records)
	assert.Equal(t, `"\xff"`, label("\xff"))
	assert.Equal(t, "ü", label("ü"))
}

// TestRecentForgets: quantiles are of what came within the last minutes, however often anybody asks.
func TestRecentForgets(t *testing.T) {
	now := time.Unix(0, 0)
	r := newRecent(func() time.Time { return now })
	var h meter.Histogram
	read := func() meter.Distribution {
		var d meter.Distribution
		h.Read(&d)
		return r.distributions(nil, d).flushes
	}
	h.Observe(time.Second)
	d := read()
	assert.EqualValues(t, 1, d.Count())
	for range 1000 {
		now = now.Add(time.Second)
		h.Observe(time.Millisecond)
		d = read()
		assert.LessOrEqual(t, len(r.kept), int(recentSpan/recentStep)+2)
	}
	assert.LessOrEqual(t, d.Quantile(1), time.Millisecond, "the second was long ago")
	assert.InDelta(t, recentSpan.Seconds(), float64(d.Count()), recentStep.Seconds()+1)
}
