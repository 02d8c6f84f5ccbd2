package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// portable is a coordination whose state can be moved.
type portable interface {
	election.Coordination
	election.Portable
}

// place is one broker's coordination, not started, and its log directories.
type place struct {
	file         string
	c            *composition
	coordination portable
	dirs         []string  // those that exist, absolute
	metas        []dirMeta // what they say, where they say something
}

type dirMeta struct {
	log.Meta
	dir string
}

func (p *place) String() string { return fmt.Sprintf("%s (%s)", p.file, describe(p.c.election)) }

// lockedDirs are log directories that no broker can open meanwhile.
type lockedDirs struct{ dirs map[string]*log.Dir }

func (l *lockedDirs) unlock() {
	for _, d := range l.dirs {
		d.Close()
	}
}

// lock takes a directory, unless it is taken here already.
func (l *lockedDirs) lock(path string) (*log.Dir, error) {
	if d := l.dirs[path]; d != nil {
		return d, nil
	}
	d, err := log.OpenDir(path, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if l.dirs == nil {
		l.dirs = map[string]*log.Dir{}
	}
	l.dirs[path] = d
	return d, nil
}

// openPlace composes a configuration and makes its coordination. With lock, its broker must be stopped, and can't be started until
// the directories are unlocked.
func (a *app) openPlace(from source, dirs *lockedDirs, lock bool) (*place, error) {
	c, err := a.load(from)
	if err != nil {
		return nil, err
	}
	a.warn(c)
	p := &place{file: c.file, c: c}
	if p.file == "" {
		p.file = "the default configuration"
	}
	paths := absolute(c.broker.LogDirs)
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		p.dirs = append(p.dirs, path)
		if !lock {
			continue
		}
		d, err := dirs.lock(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		if m, ok := d.Meta(); ok {
			p.metas = append(p.metas, dirMeta{m, path})
		}
	}
	made, err := c.election.New(election.Settings{Settings: plugin.Settings{Logger: slog.New(slog.DiscardHandler)}, DataDir: paths[0], Properties: c.layers.Static})
	if err != nil {
		return nil, wrong(fmt.Errorf("%s: %w", p.file, err))
	}
	coordination, ok := made.(portable)
	if !ok {
		return nil, fmt.Errorf("%s: the state of %s can't be moved", p.file, c.election.Name())
	}
	p.coordination = coordination
	return p, nil
}

// explain says what to do about an error of the coordination.
func (p *place) explain(err error) error {
	hint := ""
	switch {
	case errors.Is(err, election.ErrInUse):
		hint = ": stop all brokers first"
	case errors.Is(err, election.ErrNotEmpty):
		hint = ": if that is an earlier state of the same cluster, --replace takes its place"
	case errors.Is(err, election.ErrUnfinished):
		hint = ": do that again"
	}
	return fmt.Errorf("%s: %w%s", p.file, err, hint)
}

// takeOut exports what a coordination keeps, together with further members of it.
func (a *app) takeOut(ctx context.Context, p *place, with []string, dirs *lockedDirs, o election.ExportOptions) (election.Export, error) {
	shared, ok := p.coordination.(election.Shared)
	explain := func(e election.Export, err error) (election.Export, error) {
		if err == nil {
			return e, nil
		}
		if err = p.explain(err); ok && !o.Living && errors.Is(err, election.ErrUnavailable) {
			err = fmt.Errorf("%w: --with names the files of their brokers", err)
		}
		return e, err
	}
	if len(with) == 0 {
		return explain(p.coordination.Export(ctx, o))
	}
	if !ok {
		return election.Export{}, wrong(fmt.Errorf("--with: %s keeps its state in one place", p.c.election.Name()))
	}
	var others []election.Coordination
	for _, file := range with {
		other, err := a.openPlace(source{file: file}, dirs, true)
		if err != nil {
			return election.Export{}, err
		}
		others = append(others, other.coordination)
	}
	return explain(shared.ExportAmong(ctx, others, o))
}

// putIn imports a dump, after it was looked at together with the broker's directories, and prints what was done.
func (a *app) putIn(ctx context.Context, p *place, d *election.Dump, how importing, origin string, omitted []string) error {
	if err := p.matches(d); err != nil {
		return err
	}
	if n := p.leaderless(d); n > 0 && !how.force {
		return fmt.Errorf("%s: %d of %s would have no leader: with %s there is one broker, and it has no replica of them that is in sync; --force goes on all the same",
			p.file, n, counted(d.Partitions(), "partition"), p.c.election.Name())
	}
	if !how.dryRun && len(p.dirs) == 0 {
		if err := os.MkdirAll(absolute(p.c.broker.LogDirs)[0], 0o755); err != nil { // which a coordination may keep its file in
			return err
		}
	}
	progress, done := a.portion("import")
	err := p.coordination.Import(ctx, *d, election.ImportOptions{Replace: how.replace, DryRun: how.dryRun, Progress: progress})
	done()
	if err != nil {
		return p.explain(err)
	}
	rows := append([][2]string{{"from", origin}, {"to", p.String()}}, dumpRows(d)...)
	rows = append(rows, omittedRows(omitted)...)
	strays := p.strays(d)
	if len(strays) > 0 {
		rows = append(rows, [2]string{"logs of unknown topics", fmt.Sprintf("%d, which nobody will serve: %s", len(strays), abridged(strays))})
	}
	if how.dryRun {
		rows = append(rows, [2]string{"done", "nothing: --dry-run"})
	}
	return printRows(a.out, rows)
}

// abridged lists the first of many.
func abridged(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " …"
	}
	return strings.Join(names, ", ")
}

// matches sees that the broker's directories are of the cluster that a dump is of: otherwise it would not start on it.
func (p *place) matches(d *election.Dump) error {
	for _, m := range p.metas {
		if m.ClusterID != "" && m.ClusterID != d.ClusterID {
			return fmt.Errorf("%s: the broker's log directories are of cluster %s (%s), and this is the state of cluster %s",
				p.file, m.ClusterID, m.dir, d.ClusterID)
		}
	}
	return nil
}

// leaderless is how many partitions could have no leader, where the broker will be alone.
func (p *place) leaderless(d *election.Dump) (n int) {
	if _, alone := p.coordination.(election.Solitary); !alone {
		return 0
	}
	return p.outOfSync(d)
}

// strays lists logs in the broker's directories that are of topics which a dump doesn't know.
func (p *place) strays(d *election.Dump) (names []string) {
	known := map[string]bool{}
	for i := range d.Topics {
		known[d.Topics[i].Name] = true
	}
	for _, dir := range p.dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // its broker will complain
		}
		for _, e := range entries {
			at := strings.LastIndexByte(e.Name(), '-')
			if at < 1 || !e.IsDir() || known[e.Name()[:at]] {
				continue
			}
			if _, err := strconv.ParseUint(e.Name()[at+1:], 10, 31); err == nil {
				names = append(names, filepath.Join(dir, e.Name()))
			}
		}
	}
	return names
}

// dumpRows describes a dump for people.
func dumpRows(d *election.Dump) [][2]string {
	deleting, moving := 0, 0
	for i := range d.Topics {
		if d.Topics[i].Deleting {
			deleting++
		}
		for _, p := range d.Topics[i].Partitions {
			if len(p.Adding)+len(p.Removing) > 0 {
				moving++
			}
		}
	}
	topics := fmt.Sprintf("%s, %s", counted(len(d.Topics), "topic"), counted(d.Partitions(), "partition"))
	if deleting > 0 {
		topics += fmt.Sprintf("; being deleted: %s", counted(deleting, "topic"))
	}
	if moving > 0 {
		topics += fmt.Sprintf("; being moved: %s", counted(moving, "partition"))
	}
	return [][2]string{
		{"cluster", d.ClusterID},
		{"topics", topics},
		{"configurations", strconv.Itoa(len(d.Configs))},
		{"epochs so far", fmt.Sprintf("controller %d, brokers %d", d.ControllerEpoch, d.BrokerEpoch)},
		{"ids so far", fmt.Sprintf("producers below %d, generated for brokers: %s", d.NextProducerID, generated(d.LastBrokerID))},
	}
}

func generated(last int32) string {
	if last == 0 {
		return "none"
	}
	return "up to " + strconv.Itoa(int(last))
}

func omittedRows(omitted []string) (rows [][2]string) {
	for _, what := range omitted {
		rows = append(rows, [2]string{"left behind", what})
	}
	return rows
}

// portion shows how far long work is, as told: as a bar on a terminal, else as a line now and then. done takes the bar away.
func (a *app) portion(what string) (tell func(done, total int), done func()) {
	var bar *progressbar.ProgressBar
	var mu sync.Mutex
	told := time.Now()
	tell = func(done, total int) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case a.terminal():
			if bar == nil {
				bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(a.err), progressbar.OptionSetWidth(30),
					progressbar.OptionClearOnFinish(), progressbar.OptionShowCount(), progressbar.OptionSetDescription(what))
			}
			_ = bar.Set(done)
		case time.Since(told) >= tellEvery:
			told = time.Now()
			fmt.Fprintf(a.err, "%s: %d of %d are done\n", what, done, total)
		}
	}
	return tell, func() {
		mu.Lock()
		defer mu.Unlock()
		if bar != nil {
			_ = bar.Clear()
		}
	}
}
