package interop

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// ToolsName is the name under which Kafka's command-line tools take part.
const ToolsName = "kafka-tools"

// toolChecks are the checks that java/tools reports, in its order; each runs the tool of that name.
func toolChecks() []string {
	return []string{
		"broker-api-versions", "topics create", "topics list and describe", "topics alter", "configs of a topic", "configs of the broker",
		"console producer and consumer", "producer-perf-test", "consumer-perf-test", "get-offsets", "consumer-groups describe",
		"consumer-groups reset-offsets", "consumer-groups delete", "verifiable producer and consumer", "delete-records", "log-dirs", "topics delete",
	}
}

// dumpChecks are the checks made over the broker's files.
func dumpChecks() []string {
	return []string{"dump-log --deep-iteration", "dump-log --print-data-log", "dump-log --verify-index-only", "dump-log --index-sanity-check", "dump-log --offsets-decoder"}
}

// kafkaTools runs Kafka's own tools inside one JVM a round.
type kafkaTools struct {
	installed
	runEnv *task.Env
}

func installKafkaTools(ctx context.Context, e *task.Env, t *tools.Tools) (*kafkaTools, error) {
	java, err := peers.KafkaJars(ctx, t)
	if err != nil {
		return nil, err
	}
	return compileKafkaTools(ctx, e, t, java)
}

// compileKafkaTools compiles the program that runs them against the jars of one release.
func compileKafkaTools(ctx context.Context, e *task.Env, t *tools.Tools, java peers.Java) (*kafkaTools, error) {
	sources, err := installer{env: e}.javaSources("tools")
	if err != nil {
		return nil, err
	}
	classes, err := t.Javac(ctx, "kafka-tools", java.Lib, sources...)
	if err != nil {
		return nil, err
	}
	args := java.Command("384M", "ERROR", []string{classes}, "tools.Main")
	args = slices.Insert(args, 1, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
	return &kafkaTools{installed{Client: Client{Name: ToolsName}, command: command{args: args}}, e}, nil
}

// play runs every tool that talks to the broker.
func (k *kafkaTools) play(ctx context.Context, bootstrap, prefix, corpus string) []probe.Result {
	args := probe.Args{Role: probe.RoleChecks, Bootstrap: bootstrap, Prefix: prefix, Corpus: corpus}
	return k.installed.play(ctx, k.runEnv, args, toolChecks())
}

// dump runs dump-log over every segment below data; prefix is the one that play had. The broker must not be running: what counts is what it leaves.
func (k *kafkaTools) dump(ctx context.Context, data, prefix string) ([]probe.Result, error) {
	list, cleanup, err := segmentList(data)
	if err != nil {
		return nil, err
	}
	defer cleanup()
	args := probe.Args{Role: "dump", Bootstrap: "none", Prefix: prefix, Corpus: list}
	return k.installed.play(ctx, k.runEnv, args, dumpChecks()), nil
}

// segmentList writes the paths of all log and index files below data into a file, one a line.
func segmentList(data string) (string, func(), error) {
	var paths []string
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && slices.Contains([]string{".log", ".index", ".timeindex"}, filepath.Ext(path)) && isSegment(path) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return "", nil, err
	}
	f, err := os.CreateTemp("", "segments-")
	if err != nil {
		return "", nil, err
	}
	cleanup := func() { _ = os.Remove(f.Name()) }
	if _, err := f.WriteString(strings.Join(paths, "\n") + "\n"); err != nil {
		cleanup()
		return "", nil, err
	}
	return f.Name(), cleanup, f.Close()
}

// isSegment tells the files of a partition from others with the same ending: twenty digits, in a folder topic-partition
// that is not Kafka's own metadata log, which holds other records.
func isSegment(path string) bool {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	return len(base) == 20 && strings.Trim(base, "0123456789") == "" && !strings.HasPrefix(filepath.Base(filepath.Dir(path)), "__cluster_metadata")
}
