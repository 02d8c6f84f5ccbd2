package remote_test

import (
	"bytes"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/plugins/remote"
)

// faulty is the executable that the tests start.
var faulty string

func TestMain(m *testing.M) {
	if command := os.Getenv(hostVariable); command != "" {
		actAsHost(command)
	}
	dir, err := os.MkdirTemp("", "remote-test")
	if err != nil {
		panic(err)
	}
	faulty = filepath.Join(dir, "faulty")
	if out, err := exec.Command("go", "build", "-o", faulty, "./faulty").CombinedOutput(); err != nil {
		panic(string(out))
	}
	_ = flag.Set("test.parallel", "8") // they wait more than they work
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			code = 1
		}
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// options are those of a test's plug-in with a fault.
func options(mode string) remote.Options {
	o := remote.Defaults()
	o.Command, o.Args = faulty, []string{mode}
	o.StartTimeout, o.CallTimeout = 20*time.Second, 10*time.Second
	return o
}

func section(t testing.TB, text string) config.Section {
	t.Helper()
	root, err := config.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	sub, _ := root.Sub("config")
	return sub
}

// logs collects what is logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
