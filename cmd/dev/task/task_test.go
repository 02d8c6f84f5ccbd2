package task

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
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testEnv(t *testing.T, out io.Writer) *Env {
	t.Helper()
	dir := t.TempDir()
	return &Env{Root: dir, Cache: filepath.Join(dir, ".cache"), out: out, start: time.Now()}
}

func TestNewEnvFindsTheRepository(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o755))
	t.Chdir(below)
	_, err := NewEnv(io.Discard)
	require.ErrorContains(t, err, "go.mod")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module m\n"), 0o644))
	e, err := NewEnv(io.Discard)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(e.Root, "x"), e.Path("x"))
	require.DirExists(t, e.Cache)
}

func TestTailKeepsTheEnd(t *testing.T) {
	tail := &Tail{Max: 10}
	for range 100 {
		_, _ = tail.Write([]byte("0123456789abc"))
	}
	require.Equal(t, "…3456789abc", tail.String())

	short := &Tail{Max: 10}
	_, _ = short.Write([]byte("0123456789"))
	require.Equal(t, "0123456789", short.String())
}

func TestRunShowsTheEndOfAFailingCommand(t *testing.T) {
	e := testEnv(t, io.Discard)
	err := e.Run(context.Background(), Command{Args: []string{"sh", "-c", "echo to out; echo to err >&2; exit 3"}})
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "to out")
	require.ErrorContains(t, err, "to err")

	out, err := e.Output(context.Background(), Command{Env: []string{"GREETING=hello"}, Stdin: strings.NewReader("you"), Args: []string{"sh", "-c", "echo $GREETING; cat"}})
	require.NoError(t, err)
	require.Equal(t, "hello\nyou", out)
}

func TestRunKillsWhatACommandStarted(t *testing.T) {
	e := testEnv(t, io.Discard)
	ctx, cancel := context.WithCancel(context.Background())
	mark := filepath.Join(e.Root, "started")
	done := make(chan error, 1)
	go func() {
		// The grandchild holds the output open: without the group it would keep Run waiting.
		done <- e.Run(ctx, Command{Args: []string{"sh", "-c", "sleep 600 & touch " + mark + "; wait"}})
	}()
	require.Eventually(t, func() bool { _, err := os.Stat(mark); return err == nil }, 10*time.Second, 5*time.Millisecond)
	cancel()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(4 * time.Second): // below WaitDelay, which would end it too
		t.Fatal("the command still runs")
	}
}

func TestPick(t *testing.T) {
	stages := []Stage{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	names := func(s []Stage) (n []string) {
		for _, x := range s {
			n = append(n, x.Name)
		}
		return n
	}
	all, err := Pick(stages, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "c"}, names(all))
	some, err := Pick(stages, []string{"c", "a"})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "c"}, names(some), "in the order of stages")
	_, err = Pick(stages, []string{"a", "d"})
	require.ErrorContains(t, err, `no stage "d"; there are a, b, c`)
}

func TestRunStagesGoesOnAfterAFailure(t *testing.T) {
	var out bytes.Buffer
	e := testEnv(t, &out)
	ran := ""
	stage := func(name string, err error) Stage {
		return Stage{Name: name, Run: func(context.Context) error { ran += name; return err }}
	}
	err := e.RunStages(context.Background(), []Stage{stage("a", nil), stage("b", errors.New("what went wrong")), stage("c", nil)})
	require.ErrorContains(t, err, "1 of 3 stages failed")
	require.Equal(t, "abc", ran)
	require.Contains(t, out.String(), "what went wrong")
	require.True(t, strings.HasSuffix(out.String(), "\n\nFailed:\n  b: what went wrong\n"), "the end says it, too: %s", out.String())
	require.Regexp(t, `b +\| FAILED`, out.String())
	require.Regexp(t, `c +\| ok`, out.String())

	ran = ""
	require.NoError(t, e.RunStages(context.Background(), []Stage{stage("a", nil)}))

	ran = ""
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, e.RunStages(ctx, []Stage{stage("a", nil)}), context.Canceled)
	require.Empty(t, ran)
}

func TestBrief(t *testing.T) {
	require.Equal(t, "one\n    two", Brief(errors.New("one\ntwo\n")))
	require.Equal(t, "x"+strings.Repeat("\n    x", briefLines-1)+"\n    …", Brief(errors.New(strings.Repeat("x\n", 100))))
	require.Equal(t, strings.Repeat("é", briefLine/2)+"…", Brief(errors.New(strings.Repeat("é", 1000))))
	require.Equal(t, "x"+strings.Repeat("é", briefLine/2-1)+"…", Brief(errors.New("x"+strings.Repeat("é", 1000))), "no character is cut")
}

func TestTestLog(t *testing.T) {
	events := `{"Action":"start"}
{"Action":"output","Test":"TestA","Output":"said by A\n"}
{"Action":"pass","Test":"TestA"}
{"Action":"output","Test":"TestB/sub","Output":"said by sub\n"}
{"Action":"fail","Test":"TestB/sub"}
{"Action":"output","Test":"TestB","Output":"said by B\n"}
{"Action":"fail","Test":"TestB"}
{"Action":"skip","Test":"TestC"}
exec: no such file
{"Action":"fail"}
`
	var out bytes.Buffer
	l := &TestLog{Out: &out}
	for _, b := range []byte(events) { // in the smallest pieces
		_, _ = l.Write([]byte{b})
	}
	passed, failed, skipped := l.Counts()
	require.Equal(t, []int{1, 1, 1}, []int{passed, failed, skipped})
	require.Equal(t, "said by sub\nsaid by B\nexec: no such file\n", out.String())
}

func TestRunStagesAgain(t *testing.T) {
	var out bytes.Buffer
	e := testEnv(t, &out)
	tries := map[string]int{}
	stage := func(name string, again bool, fails int) Stage {
		return Stage{Name: name, Again: again, Run: func(context.Context) error {
			if tries[name]++; tries[name] <= fails {
				return errors.New(name + " went wrong")
			}
			return nil
		}}
	}
	err := e.RunStages(context.Background(), []Stage{stage("once", true, 1), stage("always", true, 9), stage("judge", false, 1)})
	require.ErrorContains(t, err, "2 of 3 stages failed")
	require.Equal(t, map[string]int{"once": 2, "always": 2, "judge": 1}, tries)
	require.Contains(t, out.String(), "once went wrong", "also what a second run excuses is shown")
	require.Contains(t, out.String(), "passed when run again (look into these):\n  the stage once: once went wrong\n")
	require.Contains(t, out.String(), "\nFailed:\n  always: always went wrong\n  judge: judge went wrong\n")
}

func TestRunStagesBeside(t *testing.T) {
	var out bytes.Buffer
	e := testEnv(t, &out)
	meet, alone := make(chan struct{}), 0
	waits := func(name string, err error) Stage {
		return Stage{Name: name, Beside: "group", Run: func(ctx context.Context) error {
			select {
			case meet <- struct{}{}:
			case <-meet:
			case <-time.After(10 * time.Second):
				return errors.Join(err, errors.New("nothing ran at the same time"))
			}
			return err
		}}
	}
	single := func(name, beside string) Stage {
		return Stage{Name: name, Beside: beside, Run: func(context.Context) error {
			alone++
			time.Sleep(10 * time.Millisecond)
			if alone--; alone > 0 {
				return errors.New("another one ran at the same time")
			}
			return nil
		}}
	}
	err := e.RunStages(t.Context(), []Stage{single("a", ""), single("b", ""), waits("c", errors.New("c went wrong")), waits("d", nil), single("e", "other"), single("f", "")})
	require.ErrorContains(t, err, "1 of 6 stages failed")
	require.Regexp(t, `(?s)a .*ok.*b .*ok.*c .*FAILED.*d .*ok.*e .*ok.*f .*ok`, out.String(), "the table is in their order")
	require.True(t, strings.HasSuffix(out.String(), "\n\nFailed:\n  c: c went wrong\n"), out.String())
}
