package interop

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

func testEnv(t *testing.T) *task.Env {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o644))
	t.Chdir(dir)
	e, err := task.NewEnv(io.Discard)
	require.NoError(t, err)
	return e
}

// script is a client whose program is a shell script; the flags come as its arguments.
func script(text string) installed {
	return installed{Client: Client{Name: "scripted"}, command: command{args: []string{"sh", "-c", text, "sh"}, env: []string{"FROM=env"}}}
}

func TestPlayReportsWhatIsMissing(t *testing.T) {
	e := testEnv(t)
	good := `{"client":"x","version":"7","check":"a","ok":true}`
	for name, c := range map[string]struct {
		script string
		want   map[string]bool
	}{
		"all reported":    {"echo '" + good + "'", map[string]bool{"a": true}},
		"one missing":     {"true", map[string]bool{"a": false}},
		"failed program":  {"echo '" + good + "'; exit 4", map[string]bool{"a": true, "program (checks)": false}},
		"talk in between": {"echo hello; echo '" + good + "'", map[string]bool{"a": true, "output": false}},
		"a failed check":  {strings.ReplaceAll("echo '"+good+"'", "true", "false"), map[string]bool{"a": false}},
		"flags and environment": {`test "$FROM $1 $2 $3 $4" = "env --role checks --client scripted" && echo '` + good + "'",
			map[string]bool{"a": true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]bool{}
			for _, r := range script(c.script).play(context.Background(), e, probe.Args{Role: probe.RoleChecks}, []string{"a"}) {
				require.Equal(t, "scripted", r.Client)
				got[r.Check] = r.OK
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestPlaySurvivesAnEndlessLine(t *testing.T) {
	e := testEnv(t)
	results := script(`head -c 3000000 /dev/zero | tr '\0' x`).play(context.Background(), e, probe.Args{Role: probe.RoleChecks}, []string{"a"})
	require.Len(t, results, 1)
	require.Equal(t, "not reported", results[0].Detail)
}

func TestMembersLeaveOrAreKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	join := func(text string) *member {
		m, err := script(text).join("the member", probe.Args{})
		require.NoError(t, err)
		t.Cleanup(m.kill)
		return m
	}
	polite := join(`echo '{"event":"assigned","partitions":[1,2]}'; cat > /dev/null`)
	require.Equal(t, []int32{1, 2}, (<-polite.events).Partitions)
	require.NoError(t, polite.leave(ctx))

	rude := join(`cat > /dev/null; echo why >&2; exit 3`)
	err := rude.leave(ctx)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "why")

	deaf := join(`sleep 600 & wait`)
	short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	require.ErrorIs(t, deaf.leave(short), context.DeadlineExceeded)
	deaf.kill() // the sleep, too, or this would not return
	_, open := <-deaf.events
	require.False(t, open)
}

func TestGroupJudgesWhatMembersTell(t *testing.T) {
	a, b := &member{name: "a"}, &member{name: "b"}
	g := &group{state: map[*member]*view{a: {committed: map[int32]int64{}}, b: {committed: map[int32]int64{}}}, seen: map[string]int{}}
	assigned := func(m *member, p ...int32) { g.apply(m, probe.Event{Event: probe.EventAssigned, Partitions: p}) }

	assigned(a, 0, 1, 2, 3, 4, 5)
	require.True(t, g.owns(a))
	require.False(t, g.owns(a, b), "b has none")
	assigned(b, 3, 4, 5)
	require.False(t, g.owns(a, b), "both have 3")
	assigned(a, 0, 1)
	require.False(t, g.owns(a, b), "nobody has 2")
	assigned(a, 0, 1, 2)
	require.True(t, g.owns(a, b))

	g.apply(a, probe.Event{Event: probe.EventRecord, Partition: 1, Offset: 4, Value: "9"})
	g.apply(a, probe.Event{Event: probe.EventCommitted, Partition: 1, Offset: 5})
	g.apply(b, probe.Event{Event: probe.EventRecord, Partition: 1, Offset: 5, Value: "10"})
	require.Empty(t, g.state[b].early)
	g.apply(b, probe.Event{Event: probe.EventRecord, Partition: 1, Offset: 4, Value: "9"})
	require.Equal(t, []string{"1/4"}, g.state[b].early)
	g.sent = 2
	require.True(t, g.allSeen())
}

func TestGroupFailsAtItsFirstStep(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	results := playGroup(ctx, script("exit 1"), "127.0.0.1:1", "p") // nobody listens there
	require.Len(t, results, len(groupChecks()))
	for _, r := range results {
		require.False(t, r.OK)
		require.NotEmpty(t, r.Detail)
	}
}

func TestReport(t *testing.T) {
	r := Report{Target: "somewhere", Results: []probe.Result{
		{Client: "x", Version: "7.1", Check: "a", OK: true},
		{Client: "x", Check: "b", Detail: "went wrong"},
		{Client: "y", Version: "2", Check: "a", OK: true},
	}}
	passed, failed := r.Counts()
	require.Equal(t, []int{2, 1}, []int{passed, failed})
	text := r.String()
	require.Regexp(t, `x +\| 7\.1 +\| +1 \| +1 \|`, text)
	require.Regexp(t, `y +\| 2 +\| +1 \| +0 \|`, text)
	require.Contains(t, text, "FAILED x: b: went wrong")
}

func TestChooseFiles(t *testing.T) {
	dir := t.TempDir()
	var names []string
	add := func(name string, size int) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o644))
		names = append(names, path)
	}
	add("empty", 0)
	add("huge", corpusFileMax+1)
	for i := range corpusFilesMin - 1 {
		add("file"+string(rune('a'+i)), i+1)
	}
	begin := time.UnixMilli(1_000_000)
	_, err := chooseFiles(names, begin)
	require.ErrorContains(t, err, "too few")
	add("last", 5)
	files, err := chooseFiles(names, begin)
	require.NoError(t, err)
	require.Len(t, files, corpusFilesMin)
	for i := 1; i < len(files); i++ {
		require.True(t, files[i].Time.After(files[i-1].Time))
	}
}

func TestSegmentList(t *testing.T) {
	data := t.TempDir()
	for _, name := range []string{
		"t-0/00000000000000000000.log", "t-0/00000000000000000000.index", "t-0/00000000000000000000.timeindex", "t-0/leader-epoch-checkpoint",
		"t-0/00000000000000000012.snapshot", "__cluster_metadata-0/00000000000000000000.log", "meta.properties", "t-0/short.log",
	} {
		path := filepath.Join(data, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
	}
	list, cleanup, err := segmentList(data)
	require.NoError(t, err)
	defer cleanup()
	b, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Len(t, strings.Fields(string(b)), 3)
	require.NotContains(t, string(b), "__cluster_metadata")

	_, _, err = segmentList(filepath.Join(data, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Who waits for records of a producer that has ended says so, and doesn't wait.
func TestAProducerThatHasEnded(t *testing.T) {
	s := &survival{group: &group{seen: map[string]int{}}, done: make(chan error, 1)}
	s.done <- errors.New("exit status 1")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.ErrorContains(t, s.reads(ctx), "the producer has ended, with 0 records of 100 read: exit status 1")
}
