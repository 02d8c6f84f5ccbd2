package interop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// parallel is how many client programs run at a time: much of a group's life is waiting.
const parallel = 3

// Runner runs the suite.
type Runner struct {
	Env   *task.Env
	Tools *tools.Tools
	// Only names the clients to take part (with ToolsName for Kafka's tools); none means all.
	Only []string
}

// run is one run against one broker.
type run struct {
	Runner
	target *target.Target
	prefix string // of all topics and groups, different from run to run
	corpus string
	files  int

	mu      sync.Mutex
	results []probe.Result
}

// Run checks the broker with all chosen clients and stops it in the end, when it was started by target, to look at
// its files. The error says that the suite could not be run; failed checks are in the Report.
func (r Runner) Run(ctx context.Context, t *target.Target) (Report, error) {
	dir, cleanup, err := r.Env.TempDir("interop-")
	if err != nil {
		return Report{}, err
	}
	defer cleanup()
	u := &run{Runner: r, target: t, prefix: fmt.Sprintf("interop%d", time.Now().Unix()%1e6), corpus: filepath.Join(dir, "corpus.tsv")}
	files, err := writeCorpus(ctx, r.Env, u.corpus)
	if err != nil {
		return Report{}, err
	}
	u.files = len(files)
	clients, err := u.install(ctx)
	if err != nil {
		return Report{}, err
	}
	var kafka *kafkaTools
	if r.chosen(ToolsName) {
		if kafka, err = installKafkaTools(ctx, r.Env, r.Tools); err != nil {
			return Report{}, err
		}
	}
	if len(clients) == 0 && kafka == nil {
		return Report{}, fmt.Errorf("no such client: %s; there are %s", strings.Join(r.Only, ", "), strings.Join(Names(r.Env, r.Tools), ", "))
	}
	r.Env.Say("%s at %s: %d clients, %d texts", t.Name, t.Addr, len(clients), len(files))
	if err := u.all(ctx, clients, kafka); err != nil {
		return Report{}, err
	}
	slices.SortStableFunc(u.results, func(a, b probe.Result) int { return u.order(a.Client) - u.order(b.Client) })
	return Report{Target: t.Name, Results: u.results}, ctx.Err()
}

// Names are the names that Only may hold.
func Names(e *task.Env, t *tools.Tools) []string {
	var names []string
	for _, c := range Clients(e, t) {
		names = append(names, c.Name)
	}
	return append(names, ToolsName)
}

func (u *run) order(client string) int { return slices.Index(Names(u.Env, u.Tools), client) }

func (r Runner) chosen(name string) bool { return len(r.Only) == 0 || slices.Contains(r.Only, name) }

// Install installs all that Run, RunTwins, RunOwn and RunCluster need, so that none of them has to wait for the network.
func (r Runner) Install(ctx context.Context) error {
	for _, jars := range []func(context.Context, *tools.Tools) (peers.Java, error){peers.Kafka39Jars, peers.KafkaJars} {
		java, err := jars(ctx, r.Tools)
		if err != nil {
			return err
		}
		if _, err := compileKafkaTools(ctx, r.Env, r.Tools, java); err != nil {
			return err
		}
	}
	if _, err := r.install(ctx); err != nil {
		return err
	}
	_, err := r.frontPython(ctx)
	return err
}

func (r Runner) install(ctx context.Context) ([]installed, error) {
	var ready []installed
	for _, c := range Clients(r.Env, r.Tools) {
		if !r.chosen(c.Name) {
			continue
		}
		cmd, err := c.Install(ctx)
		if err != nil {
			return nil, fmt.Errorf("client %s: %w", c.Name, err)
		}
		ready = append(ready, installed{Client: c, command: cmd})
	}
	return ready, nil
}

// all runs everything: first each client for itself, then each on what the others wrote, then the broker's files.
func (u *run) all(ctx context.Context, clients []installed, kafka *kafkaTools) error {
	var alone errgroup.Group
	alone.SetLimit(parallel)
	if kafka != nil { // first, for it takes longest
		alone.Go(func() error {
			u.add(ToolsName, kafka.play(ctx, u.target.Addr, u.prefix+"-tools", u.corpus))
			return nil
		})
	}
	for _, c := range clients {
		alone.Go(func() error { u.add(c.Name, u.checks(ctx, c)); return nil })
		alone.Go(func() error {
			u.add(c.Name+" in a group", playGroup(ctx, c, u.target.Addr, u.prefix+"-"+c.Name))
			return nil
		})
	}
	_ = alone.Wait()

	written := u.written(clients)
	var across errgroup.Group
	across.SetLimit(parallel)
	for _, c := range clients {
		across.Go(func() error { u.add(c.Name+" on others' records", u.read(ctx, c, written)); return nil })
	}
	_ = across.Wait()

	if err := u.target.Stop(); err != nil {
		u.add("broker", []probe.Result{{Client: u.target.Name, Check: "stop", Detail: err.Error()}})
	}
	if kafka != nil && u.target.Data != "" {
		results, err := kafka.dump(ctx, u.target.Data, u.prefix+"-tools")
		if err != nil {
			return err
		}
		u.add("dump-log", results)
	}
	return nil
}

// add keeps results and tells how many were good.
func (u *run) add(what string, results []probe.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	bad := 0
	for _, r := range results {
		if !r.OK {
			bad++
			u.Env.Say("  FAILED %s: %s: %s", r.Client, r.Check, r.Detail)
		}
	}
	u.Env.Say("%s: %d of %d checks good", what, len(results)-bad, len(results))
	u.results = append(u.results, results...)
}

func (u *run) checks(ctx context.Context, c installed) []probe.Result {
	args := probe.Args{Role: probe.RoleChecks, Bootstrap: u.target.Addr, Prefix: u.prefix + "-" + c.Name, Corpus: u.corpus, Codecs: c.Codecs}
	return c.play(ctx, u.Env, args, expectedChecks(c.Client))
}

// expectedChecks are the names that a client has to report in RoleChecks.
func expectedChecks(c Client) []string {
	var names []string
	if !c.Quirks.NoAdmin {
		names = append(names, "create", "delete")
	}
	for _, codec := range c.Codecs {
		names = append(names, "produce "+codec, "consume from start "+codec)
	}
	return append(names, "consume from end", "consume by timestamp", "commit and resume")
}

// written are the topics that clients report to have filled.
func (u *run) written(clients []installed) []probe.Written {
	var topics []probe.Written
	for _, c := range clients {
		for _, codec := range c.Codecs {
			if slices.ContainsFunc(u.results, func(r probe.Result) bool { return r.OK && r.Client == c.Name && r.Check == "produce "+codec }) {
				topics = append(topics, probe.Written{Client: c.Name, Codec: codec, Topic: u.prefix + "-" + c.Name + "-" + codec})
			}
		}
	}
	return topics
}

func (u *run) read(ctx context.Context, c installed, written []probe.Written) []probe.Result {
	args := probe.Args{Role: probe.RoleRead, Bootstrap: u.target.Addr, Corpus: u.corpus}
	var expected []string
	for _, w := range written {
		if w.Client != c.Name && slices.Contains(c.Codecs, w.Codec) {
			args.Topics = append(args.Topics, w)
			expected = append(expected, "read "+w.Codec+" from "+w.Client)
		}
	}
	if len(expected) == 0 {
		return nil
	}
	return c.play(ctx, u.Env, args, expected)
}
