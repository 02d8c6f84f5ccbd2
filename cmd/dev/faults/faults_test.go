package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify"
	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
	"github.com/barnabas-mq/barnabas/core/record"
)

// batchAt makes a batch of one record.
func batchAt(t *testing.T, offset int64, epoch int32, value string) []byte {
	t.Helper()
	b := record.NewBuilder(record.Options{BaseOffset: offset, LeaderEpoch: epoch})
	require.NoError(t, b.Append(record.Record{Offset: offset, Value: []byte(value), Timestamp: 1}))
	set, err := b.Build(nil, nil)
	require.NoError(t, err)
	return set
}

// replica writes a partition's folder: segments that begin with the given batches.
func replica(t *testing.T, root string, segments ...[]byte) string {
	t.Helper()
	dir := filepath.Join(root, "t-0")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	for _, s := range segments {
		base := record.Batch(s).Header().BaseOffset
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%020d.log", base)), s, 0o644))
	}
	return root
}

// A scenario that counts what nobody prints any more would find that no broker loses its session.
func TestBrokersPrintThatSessionsAreOver(t *testing.T) {
	text, err := os.ReadFile("../../../membership/gossip/session.go")
	require.NoError(t, err)
	require.Regexp(t, `c\.log\.(Info|Warn)\("[^"]*`+sessionOver, string(text))
}

func join(sets ...[]byte) (all []byte) {
	for _, s := range sets {
		all = append(all, s...)
	}
	return all
}

func TestReplicas(t *testing.T) {
	a, b, c := batchAt(t, 0, 1, "a"), batchAt(t, 1, 1, "b"), batchAt(t, 2, 2, "c")
	whole := replica(t, t.TempDir(), join(a, b, c))
	for want, other := range map[string]string{
		"":               replica(t, t.TempDir(), join(a, b), c),
		" ":              replica(t, t.TempDir(), join(b, c)), // the first was deleted by time or size
		"goes on with":   replica(t, t.TempDir(), join(a, b)),
		"leader epoch 3": replica(t, t.TempDir(), join(a, b), batchAt(t, 2, 3, "c")),
		"offsets 1 to 1": replica(t, t.TempDir(), join(a, batchAt(t, 1, 1, "x"), c)),
		"offsets 2 to 2": replica(t, t.TempDir(), join(a, c)),
	} {
		compared, err := Replicas(whole, other)
		assert.Equal(t, 1, compared)
		if want == "" || want == " " {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, want)
		}
	}
	compared, err := Replicas(whole)
	require.NoError(t, err)
	require.Zero(t, compared, "one alone is no comparison")
}

func TestTear(t *testing.T) {
	a, b, c := batchAt(t, 0, 1, "a"), batchAt(t, 1, 1, "b"), batchAt(t, 2, 2, "c")
	set := join(a, b, c, make([]byte, 1000)) // with room at the end
	for luck, whole := range map[float64]int{0: len(a) + len(b), 0.5: len(a), 0.99: 0} {
		root := replica(t, t.TempDir(), set)
		require.NoError(t, tear(filepath.Join(root, "t-0"), luck))
		data, err := os.ReadFile(filepath.Join(root, "t-0", fmt.Sprintf("%020d.log", 0)))
		require.NoError(t, err)
		assert.Greater(t, len(data), whole, "a part of a batch is left")
		assert.Less(t, len(data), whole+len(a))
		assert.Equal(t, set[:len(data)], data)
	}
	assert.Error(t, tear(t.TempDir(), 0))
}

func TestScenariosAreWellFormed(t *testing.T) {
	names := map[string]bool{}
	short := 0
	for _, s := range Scenarios() {
		assert.False(t, names[s.Name], "%s is there twice", s.Name)
		assert.NotEmpty(t, s.About)
		assert.NotNil(t, s.Break)
		names[s.Name] = true
		if s.Short {
			short++
		}
	}
	assert.Positive(t, short)
}

func TestOneController(t *testing.T) {
	write := func(lines ...string) string {
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644))
		return path
	}
	line := func(broker, epoch int) string {
		return fmt.Sprintf(`time=2026-01-02T03:04:05.678Z level=INFO msg="elected controller" broker=%d epoch=%d`, broker, epoch)
	}
	a := write("starting", line(1, 1), "not controller any more", line(1, 3))
	n, err := oneController(a, write(line(2, 2), line(2, 10)))
	require.NoError(t, err)
	require.Equal(t, 4, n)
	_, err = oneController(a, write(line(2, 2), line(2, 3)))
	require.ErrorContains(t, err, "epoch 3 has two controllers")
	_, err = oneController(write(line(1, 4), line(1, 4)))
	require.ErrorContains(t, err, "epoch 4 has two controllers", "one that has forgotten is two, too")
	_, err = oneController(write("starting"))
	require.Error(t, err)
	_, err = oneController(filepath.Join(t.TempDir(), "missing"))
	require.Error(t, err)
}

// TestVerdict holds what has to be looked into at once, whatever a second run says, against what may be a matter of time.
func TestVerdict(t *testing.T) {
	require.NoError(t, verdict(nil))
	require.NoError(t, verdict(&verify.Report{OK: true, Counts: map[history.Kind]int{history.Stale: 1}}), "what a scenario tolerates")
	for _, k := range history.Kinds() {
		fault := history.Fault{Kind: k, Detail: "what was seen"}
		err := verdict(&verify.Report{Counts: map[history.Kind]int{k: 1}, Faults: []history.Fault{fault}})
		require.ErrorContains(t, err, "what was seen")
		require.Equal(t, k != history.Stale, errors.Is(err, ErrPromise), k)
		err = verdict(&verify.Report{Counts: map[history.Kind]int{k: 1, history.Stale: 1, history.Lost: 1}})
		require.ErrorIs(t, err, ErrPromise)
	}
	err := verdict(&verify.Report{OK: true, Unread: []string{"partition 1"}})
	require.ErrorContains(t, err, "not read: partition 1")
	require.NotErrorIs(t, err, ErrPromise)
}
