package zktest

import (
	"context"
	"flag"
	"os"
	"path/filepath"
)

// TB is what New needs of a *testing.T.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	TempDir() string
}

// New starts servers for a test. They end with it.
func New(t TB, servers int) *Ensemble {
	t.Helper()
	e, err := Start(context.Background(), Options{Dir: filepath.Join(t.TempDir(), "zookeeper"), Servers: servers})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Fatalf("%v", err)
		}
	})
	return e
}

// Main starts one server for all tests of a package, gives it to use, runs the tests, and ends it; what it returns is for
// os.Exit. Tests that share a server each take a root of their own on it.
//
//	func TestMain(m *testing.M) { os.Exit(zktest.Main(m, func(e *zktest.Ensemble) { shared = e })) }
//
// Functions that are fuzzed have none. A fuzzer's workers are processes that it kills as it likes; a server that outlives one holds the
// worker's pipes, and the fuzzer would wait for their end for ever.
func Main(m interface{ Run() int }, use func(e *Ensemble)) int {
	if fuzzing() {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "zookeeper-*")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	e, err := Start(context.Background(), Options{Dir: dir})
	if err != nil {
		return fail(err)
	}
	use(e)
	code := m.Run()
	if err := e.Stop(); err != nil {
		return fail(err)
	}
	return code
}

func fuzzing() bool {
	flag.Parse() // which is done by Run otherwise
	f := flag.Lookup("test.fuzz")
	return f != nil && f.Value.String() != ""
}

func fail(err error) int {
	_, _ = os.Stderr.WriteString(err.Error() + "\n")
	return 1
}
