package checks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// repository makes a module of its own with the given files and returns checks that run in it.
func repository(t *testing.T, files map[string]string) Checks {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module example.test/m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	require.NoError(t, exec.Command("git", "-C", dir, "init", "-q").Run())
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "-mod=mod")
	env, err := task.NewEnv(io.Discard)
	require.NoError(t, err)
	return Checks{Env: env}
}

func TestFormatNamesTheFile(t *testing.T) {
	good := "package m\n\nvar _ = 1\n"
	ctx := context.Background()
	require.NoError(t, repository(t, map[string]string{"good.go": good}).Format(ctx))
	err := repository(t, map[string]string{"good.go": good, "bad.go": "package m\nvar   _ = 1\n"}).Format(ctx)
	require.ErrorContains(t, err, "bad.go")
	require.NotContains(t, err.Error(), "good.go")
}

func TestVetAndCrossFail(t *testing.T) {
	ctx := context.Background()
	require.Error(t, repository(t, map[string]string{"m.go": "package m\n\nimport \"fmt\"\n\nfunc F() { fmt.Printf(\"%d\", \"x\") }\n"}).Vet(ctx))
	onlyHere := "//go:build linux && amd64\n\npackage m\n\nconst C = 1\n"
	user := "package m\n\nvar V = C\n"
	require.Error(t, repository(t, map[string]string{"c.go": onlyHere, "m.go": user}).Cross(ctx))
}

func TestFuzzFindsACrash(t *testing.T) {
	const fuzz = "package m\n\nimport \"testing\"\n\nfunc FuzzIt(f *testing.F) {\n\tf.Add(1)\n\tf.Fuzz(func(t *testing.T, n int) {\n\t\tif n == %s {\n\t\t\tt.Fatal(\"crash\")\n\t\t}\n\t})\n}\n"
	ctx := context.Background()
	good := repository(t, map[string]string{"m_test.go": fmt.Sprintf(fuzz, "-12345678")})
	require.NoError(t, good.Fuzz(ctx, 200*time.Millisecond))
	bad := repository(t, map[string]string{"m_test.go": fmt.Sprintf(fuzz, "1")})
	require.ErrorContains(t, bad.Fuzz(ctx, 200*time.Millisecond), "crash")
	none := repository(t, map[string]string{"m.go": "package m\n"})
	require.ErrorContains(t, none.Fuzz(ctx, time.Millisecond), "no fuzz function")
}

func TestFuzzFunctions(t *testing.T) {
	got := fuzzFunctions("package m\n\nfunc FuzzA(f *testing.F) {}\n\nfunc FuzzB(t *testing.F) {\n\tf.Add(1)\n}\n\nfunc FuzzHelper(n int) {}\n\n// func FuzzC(f *testing.F)\n\tfunc FuzzD(f *testing.F) {}\n")
	require.Equal(t, []string{"FuzzA", "FuzzB"}, got)
}

// A test that is left out of the race detector's run by a name that nobody has any more would be in it again.
func TestTestsOfProcessesExist(t *testing.T) {
	files, err := filepath.Glob("../../barnabas/*_test.go")
	require.NoError(t, err)
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(text)
	}
	for _, name := range ofProcesses() {
		require.Contains(t, all.String(), "func "+name+"(t *testing.T)")
	}
}

func TestEndedLate(t *testing.T) {
	require.True(t, endedLate(errors.New("--- FAIL: FuzzA (5.02s)\n    context deadline exceeded\nFAIL")))
	require.False(t, endedLate(errors.New("--- FAIL: FuzzA (1.02s)\n    context deadline exceeded\n    Failing input written to testdata")))
	require.False(t, endedLate(errors.New("--- FAIL: FuzzA (1.02s)\n    panic")))
}

func TestPickConcurrent(t *testing.T) {
	got := pickConcurrent("m/a fmt sync\nm/b fmt\n\nm/c strings testing sync/atomic\nm/cmd/dev/x sync\nm/cmd/barnabas/acceptance/x sync\nm/d golang.org/x/sync/errgroup\nm/e context\n")
	require.Equal(t, []string{"m/a", "m/c", "m/e"}, got)
}

func TestASecondChance(t *testing.T) {
	const test = "package m\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\n" +
		"func TestIt(t *testing.T) {\n\tif _, err := os.Stat(\"mark\"); err != nil {\n\t\t_ = os.WriteFile(\"mark\", nil, 0o600)\n\t\t%s\n\t}\n}\n\nfunc TestGood(t *testing.T) {}\n"
	ctx := context.Background()
	for name, c := range map[string]struct{ first, says string }{
		"a failure that doesn't come back": {first: `t.Fatal("once")`},
		"one that does":                    {first: `_ = os.Remove("mark"); t.Fatal("always")`, says: "exit status 1"},
		"a panic":                          {first: `panic("once")`, says: "not run again, because of: panic: once"},
		"a process that ends":              {first: `os.Exit(1)`, says: "not run again, because of: FAIL\texample.test/m"},
	} {
		t.Run(name, func(t *testing.T) {
			err := repository(t, map[string]string{"m_test.go": fmt.Sprintf(test, c.first)}).Test(ctx)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

func TestFailures(t *testing.T) {
	read := func(lines ...string) ([]failedTests, error) {
		f := &failures{out: io.Discard}
		for _, b := range []byte(strings.Join(lines, "\n") + "\n") {
			_, _ = f.Write([]byte{b})
		}
		return f.again()
	}
	got, err := read("ok  \ta\t1s", "--- FAIL: TestX (0.1s)", "    x_test.go:1: no", "    --- FAIL: TestX/sub (0.1s)", "--- FAIL: TestY (0.1s)", "FAIL", "FAIL\tb\t0.9s", "FAIL")
	require.NoError(t, err)
	require.Equal(t, []failedTests{{"b", []string{"TestX", "TestY"}}}, got)
	_, err = read("WARNING: DATA RACE", "--- FAIL: TestX (0.1s)", "FAIL", "FAIL\tb\t0.9s")
	require.ErrorContains(t, err, "DATA RACE")
	_, err = read("--- FAIL: A (0s)", "--- FAIL: B (0s)", "FAIL\tb\t1s", "--- FAIL: C (0s)", "--- FAIL: D (0s)", "FAIL\tc\t1s")
	require.ErrorContains(t, err, "4 tests failed")
	_, err = read("FAIL\tb [build failed]")
	require.ErrorContains(t, err, "build failed")
}
