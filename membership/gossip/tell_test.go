package gossip

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// TestFollowersLearnAtOnce writes through one server and reads at the others, where raft itself would tell them after hours what was
// decided.
func TestFollowersLearnAtOnce(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	g.timings.Commit = time.Hour
	all := g.voters(3)
	all = append(all, g.run(4)) // it follows
	ctx := inTime(t)
	term, err := all[0].Campaign(ctx, 1)
	require.NoError(t, err)
	for i := range 12 {
		name := fmt.Sprintf("t%d", i)
		errs, err := all[i%4].Metadata().CreateTopics(ctx, term.Epoch(), []election.NewTopic{newTopic(name, byte(i+1))})
		require.NoError(t, err)
		require.NoError(t, errs[0])
		for _, c := range all {
			topics, err := c.Metadata().Topics(ctx, name)
			require.NoError(t, err, "%s at server %s", name, c.server.id())
			require.Len(t, topics, 1)
		}
	}
}
