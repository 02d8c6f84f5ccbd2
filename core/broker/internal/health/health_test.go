package health

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestChecks(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	well := func(change func(*Facts)) Facts {
		f := Facts{Now: now, Phase: "serving", Since: now.Add(-time.Hour), Serving: true, Registered: true, Controller: 1, Dirs: []Dir{{Path: "/a"}, {Path: "/b"}}, Led: 4}
		change(&f)
		return f
	}
	for _, c := range []struct {
		name             string
		facts            Facts
		live, ready, all Status
		check, says      string
	}{
		{"well", well(func(*Facts) {}), Pass, Pass, Pass, "process", ""},
		{"starting", well(func(f *Facts) {
			f.Serving, f.Registered, f.Phase, f.Since = false, false, "recovering logs", now.Add(-90*time.Second)
		}),
			Pass, Fail, Fail, "started", "recovering logs, for 1m30s by now"},
		{"stopping", well(func(f *Facts) { f.Phase, f.Since = "stopping", now }), Pass, Fail, Fail, "started", "stopping, for 0s by now"},
		{"registration lost", well(func(f *Facts) { f.Registered, f.LostAt = false, now.Add(-3*time.Second) }), Pass, Fail, Fail, "registration", "lost sight of this broker 3s ago"},
		{"can't go on", well(func(f *Facts) { f.Failure = errors.New("EIO") }), Fail, Fail, Fail, "process", "the broker can't go on: EIO"},
		{"one disk", well(func(f *Facts) { f.Dirs[1].Err = errors.New("EIO") }), Pass, Warn, Warn, "log-dirs", "1 of 2 log directories failed (/b: EIO)"},
		{"all disks", well(func(f *Facts) { f.Dirs = []Dir{{"/a", errors.New("EIO")}} }), Pass, Fail, Fail, "log-dirs", "all log directories failed: /a: EIO"},
		{"no controller", well(func(f *Facts) { f.Controller = -1 }), Pass, Pass, Warn, "controller", "no controller is known"},
		{"loading", well(func(f *Facts) { f.Loading = []int32{9, 1, 2, 3, 4, 5} }), Pass, Pass, Warn, "group-coordinator", "6 shards of consumer groups being read (1, 2, 3, 4, 5, …)"},
		{"partitions", well(func(f *Facts) { f.UnderReplicated, f.UnderMinISR, f.Leaderless, f.Unserved = 2, 1, 1, 3 }), Pass, Pass, Warn, "partitions",
			"3 replicas here not served, because their log directory failed; 1 partition of the cluster without a leader; " +
				"1 partition led here with fewer replicas in sync than min.insync.replicas (acks=all is refused); 2 of 4 partitions led here under-replicated"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.live, Worst(Live(c.facts)), "live")
			assert.Equal(t, c.ready, Worst(Ready(c.facts)), "ready")
			assert.Equal(t, c.all, Worst(All(c.facts)), "all")
			for _, check := range All(c.facts) {
				if check.Name == c.check {
					assert.Contains(t, check.Reason, c.says)
				}
				assert.Equal(t, check.Status == Pass, check.Reason == "", check.Name)
			}
		})
	}
}
