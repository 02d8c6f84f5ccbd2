package plugincheck_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/plugins/sdk/plugincheck"
)

var faulty string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "plugincheck-test")
	if err != nil {
		panic(err)
	}
	faulty = filepath.Join(dir, "faulty")
	if out, err := exec.Command("go", "build", "-o", faulty, "../../remote/faulty").CombinedOutput(); err != nil {
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

func options(mode string) plugincheck.Options {
	return plugincheck.Options{Command: faulty, Args: []string{mode}, StartTimeout: 10 * time.Second, CallTimeout: 5 * time.Second}
}

// TestGoodPass wants plug-ins without fault to pass in each role, and one without our SDK too.
func TestGoodPass(t *testing.T) {
	store := options("store")
	store.Config = "file: $DIR/journal"
	for name, o := range map[string]plugincheck.Options{"partitioner": options("good"), "codec": options("codec"), "store": store} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plugincheck.Test(t, o)
		})
	}
}

// TestOnly makes the checks that are asked for, and those that all others need.
func TestOnly(t *testing.T) {
	t.Parallel()
	o := options("good")
	for only, want := range map[string]int{"clause 1.3": 4, "takes its options": 3} {
		o.Only = only
		r := plugincheck.Run(t.Context(), o, nil)
		require.Zero(t, r.Failed())
		require.Len(t, r.Checks, want)
		require.Empty(t, r.Costs)
	}
	o.Only = "claws"
	r := plugincheck.Run(t.Context(), o, nil)
	require.Equal(t, "F", r.Grade())
	require.ErrorContains(t, r.Checks[len(r.Checks)-1].Err, `no check's name has "claws" in it`)
}

// TestFaultyFail wants each fault found, for the reason that was planted.
func TestFaultyFail(t *testing.T) {
	for _, tt := range []struct {
		mode, check, reason string
	}{
		{"hello", "starts and says what it is", `no handshake: "hello"`},
		{"exit", "starts and says what it is", "cannot open the map of regions"},
		{"silent", "starts and says what it is", "within 2s"},
		{"version", "starts and says what it is", "another version of the protocol"},
		{"netrpc", "starts and says what it is", "netrpc"},
		{"cookie", "starts and says what it is", "something else"},
		{"raw-plain", "starts and says what it is", "connection broke"},
		{"raw-role", "takes its options", "another role"},
		{"nocookie", "runs for a host only", "without BARNABAS_PLUGIN"},
		{"raw-open", "refuses strangers", "whoever connects"},
		{"raw-lax", "refuses options that it doesn't have", "without a word"},
		{"start", "takes its options", "the database is away"},
		{"negative", "answers a call", "partition -1"},
		{"past", "answers a call", "partition 12 for record"},
		{"few", "answers a call", "9 partitions for 10 records"},
		{"many", "answers a call", "11 partitions for 10 records"},
		{"huge", "answers a call", "too large"},
		{"hang", "answers a call", "no answer within 1s"},
		{"slow", "answers a call", "no answer within 1s"},
		{"crash", "answers a call", "connection broke"},
		{"raw-garbage", "answers a call", "bad answer"},
		{"raw-stream-mixed", "answers a call", "bad answer: to call 0 instead of 1"},
		{"raw-stream-ends", "answers a call", "it ended the stream"},
		{"flood", "doesn't shout", "lines of log"},
		{"raw-brittle", "gets over nonsense", "the process ended"},
		{"deaf", "ends when it is told", "hadn't ended"},
		{"wander", "clause 1.2 equal keys meet", "record"},
		{"seed", "clause 1.2 another instance agrees", "record"},
		{"dodge", "clause 1.2 availability doesn't move a key", "record"},
		{"anywhere", "clause 1.3 records without a key go where a leader is", "record"},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			o := options(tt.mode)
			switch tt.mode {
			case "silent":
				o.StartTimeout = 2 * time.Second
			case "hang", "slow":
				o.CallTimeout = time.Second
			case "raw-role":
				o.Role, tt.check, tt.reason = "partitioner", "starts and says what it is", "it is no partitioner"
			}
			o.Only = tt.check
			ctx, found := context.WithCancel(t.Context())
			defer found()
			r := plugincheck.Run(ctx, o, func(c plugincheck.Check) {
				if c.Name == tt.check {
					found() // the rest is of no interest
				}
			})
			require.Equal(t, "F", r.Grade())
			var report strings.Builder
			require.NoError(t, r.Write(&report))
			for _, c := range r.Checks {
				if c.Name == tt.check {
					require.ErrorContains(t, c.Err, tt.reason, report.String())
					return
				}
			}
			t.Fatalf("there was no check %q:\n%s", tt.check, report.String())
		})
	}
}
