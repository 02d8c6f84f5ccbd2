package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// TwinsName is the name under which Barnabas' tools that are called as Kafka's take part: each command line is given to both.
const TwinsName = "kafka-names"

// twinStep is one command line. "@" in its arguments and input stands for the side, a letter that topics and groups have in their
// names, so that both sides do the same beside one another; "%DATA%" for the broker's files of the topic that Kafka's tools filled,
// without their endings.
type twinStep struct {
	tool  string // as Barnabas calls it
	args  []string
	input string
	sort  bool // the lines have no order
	quiet bool // what is printed differs by its words, and only the exit code counts
}

// twinClasses are the classes of Kafka's tools.
func twinClasses() map[string]string {
	return map[string]string{
		"kafka-topics": "TopicCommand", "kafka-configs": "ConfigCommand", "kafka-get-offsets": "GetOffsetShell", "kafka-dump-log": "DumpLogSegments",
		"kafka-console-producer": "ConsoleProducer", "kafka-console-consumer": "consumer.ConsoleConsumer", "kafka-consumer-groups": "consumer.group.ConsumerGroupCommand",
	}
}

// RunTwins gives each command line to Kafka's own tool and to Barnabas' of that name, against one broker, and compares what they
// print and exit with. The error says that it could not be done; what differs is in the Report.
func (r Runner) RunTwins(ctx context.Context, t *target.Target) (Report, error) {
	kafka, err := installKafkaTools(ctx, r.Env, r.Tools)
	if err != nil {
		return Report{}, err
	}
	bin, err := r.Tools.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return Report{}, err
	}
	dir, cleanup, err := r.Env.TempDir("twins-")
	if err != nil {
		return Report{}, err
	}
	defer cleanup()
	w := &twins{bootstrap: t.Addr, data: t.Data, prefix: fmt.Sprintf("twins%d", time.Now().Unix()%1e6), dir: dir, steps: twinSteps(t.Data != "")}
	script := filepath.Join(dir, "script.tsv")
	if err := os.WriteFile(script, []byte(w.script()), 0o600); err != nil {
		return Report{}, err
	}
	results := kafka.installed.play(ctx, r.Env, probe.Args{Role: "script", Bootstrap: t.Addr, Prefix: w.prefix, Corpus: script}, []string{"script"})
	version := ""
	for i := range results {
		results[i].Client, version = TwinsName, results[i].Version
	}
	for i, step := range w.steps {
		one := probe.Result{Client: TwinsName, Version: version, Check: w.title(step)}
		if err := w.compare(ctx, bin, i); err != nil {
			one.Detail = err.Error()
		} else {
			one.OK = true
		}
		results = append(results, one)
	}
	r.Env.Say("%s: %d command lines compared", TwinsName, len(w.steps))
	clear := task.Command{Args: []string{bin, "topic", "delete", "--bootstrap", t.Addr, w.prefix + kafkaSide + "-text", w.prefix + barnabasSide + "-text"}}
	return Report{Target: t.Name, Results: results}, errors.Join(ctx.Err(), r.Env.Run(ctx, clear))
}

// twins is one run.
type twins struct {
	bootstrap, data, prefix, dir string
	steps                        []twinStep
}

// The sides, as their topics and groups are named.
const (
	kafkaSide    = "k"
	barnabasSide = "b"
)

// fill puts the side, and what else is known now, into a text.
func (w *twins) fill(text, side string) string {
	return strings.NewReplacer("@", w.prefix+side, "%DATA%", filepath.Join(w.data, w.prefix+kafkaSide+"-text-0", strings.Repeat("0", 20))).Replace(text)
}

func (w *twins) argsOf(step twinStep, side string) []string {
	var args []string
	if step.tool != "kafka-dump-log" {
		args = append(args, "--bootstrap-server", w.bootstrap)
	}
	for _, a := range step.args {
		args = append(args, w.fill(a, side))
	}
	return args
}

// title names a step in the report.
func (w *twins) title(step twinStep) string {
	return step.tool + " " + strings.Join(step.args, " ")
}

// script is what the Java program reads.
func (w *twins) script() string {
	var b strings.Builder
	for i, step := range w.steps {
		args := strings.Join(w.argsOf(step, kafkaSide), "\x00") + "\x00"
		fmt.Fprintf(&b, "%d\t%s\t%s\t%s\n", i, twinClasses()[step.tool],
			base64.StdEncoding.EncodeToString([]byte(w.fill(step.input, kafkaSide))), base64.StdEncoding.EncodeToString([]byte(args)))
	}
	return b.String()
}

// compare runs Barnabas' side of a step, and says what is different.
func (w *twins) compare(ctx context.Context, bin string, i int) error {
	step := w.steps[i]
	want, err := os.ReadFile(filepath.Join(w.dir, strconv.Itoa(i)+".out"))
	if err != nil {
		return fmt.Errorf("Kafka's tool didn't come to it: %w", err)
	}
	wantCode, err := os.ReadFile(filepath.Join(w.dir, strconv.Itoa(i)+".code"))
	if err != nil {
		return err
	}
	link := filepath.Join(w.dir, step.tool+".sh") // as run-books call it
	if err := os.Symlink(bin, link); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, link, w.argsOf(step, barnabasSide)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(w.fill(step.input, barnabasSide)), &out, &complaints
	task.OwnGroup(cmd)
	code := 0
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() < 0 {
			return fmt.Errorf("%w: %s", err, complaints.String())
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != string(wantCode) {
		return fmt.Errorf("exits %d instead of %s: %s%s", code, wantCode, out.String(), complaints.String())
	}
	if step.quiet {
		return nil
	}
	if a, b := w.neutral(string(want), step.sort), w.neutral(out.String(), step.sort); a != b {
		return fmt.Errorf("prints\n%s\ninstead of\n%s", b, a)
	}
	return nil
}

// neutral takes out of what a tool prints what has to be different.
func (w *twins) neutral(text string, sorted bool) string {
	text = strings.NewReplacer(w.prefix+kafkaSide, "@", w.prefix+barnabasSide, "@").Replace(text)
	for _, blind := range []struct{ what, by string }{
		{`TopicId: \S+`, "TopicId: ID"},
		{`CreateTime: ?\d{13}`, "CreateTime: TIME"},
		{`CreateTime:\d{13}`, "CreateTime:TIME"},
		{`"commitTimestamp":\d{13}`, `"commitTimestamp":TIME`},
		{`crc: \d+`, "crc: CRC"},
		{`producerId: \d+`, "producerId: ID"},
		{`(\?|)(Timestamp:) \d{13}`, "$2 TIME"},
	} {
		text = regexp.MustCompile(blind.what).ReplaceAllString(text, blind.by)
	}
	if sorted {
		lines := strings.Split(text, "\n")
		text = strings.Join(sortedLines(lines), "\n")
	}
	return text
}
