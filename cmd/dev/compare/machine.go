package compare

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// Conditions are when, where and with what something was measured, in lines of Markdown.
func (c *Comparison) Conditions() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s, on %d cores (%s, %s), %s of memory, %s; %s, PGO %s; %s.\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"),
		runtime.NumCPU(), field("/proc/cpuinfo", "model name"), runtime.GOARCH, memory(), firstLine("uname", "-sr"), runtime.Version(), c.pgo(), firstLine("java", "-version"))
	fmt.Fprintf(&b, "Barnabas as of its tree beside Apache Kafka %s (KRaft, 1 GiB of heap), clusters beside Apache Kafka %s (ZooKeeper, %s of heap each).\n",
		peers.KafkaVersion, peers.Kafka39Version, clusterHeap)
	fmt.Fprintf(&b, "%d rounds of %s each, after a warm-up of %s; %s of memory used once before each.\n", c.Rounds, c.Duration, c.WarmUp, gib(c.Touch))
	return b.String()
}

// pgo says whether the build is guided by a profile.
func (c *Comparison) pgo() string {
	if _, err := os.Stat(c.Env.Path("cmd", "barnabas", "default.pgo")); err != nil {
		return "off"
	}
	return "on"
}

// field is the first value of that name in a file of "name : value" lines.
func field(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func memory() string {
	kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if err != nil {
		return "an unknown amount"
	}
	return gib(kib << 10)
}

func gib(n int64) string { return fmt.Sprintf("%.0f GiB", float64(n)/(1<<30)) }

// firstLine is the first line that a command prints.
func firstLine(name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "unknown"
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return string(line)
}
