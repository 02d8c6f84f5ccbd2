package zookeeper

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
)

// points keep watches on places in the tree. ZooKeeper's watches tell one change and are gone; one loop sets each anew before
// anybody is told, so that who reads after being told sees the change, or is told again. When the connection or the session was
// lost meanwhile, everything is looked at again.
//
// Points belong to groups: a group is opened, and closed, as a whole. Only the loop calls what a group gives it.
type points struct {
	log     *slog.Logger
	session func() *session // the current one; nil when there is none
	signal  chan struct{}   // capacity 1
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu     sync.Mutex
	groups map[*group]bool
	byPath map[string][]*point
	events map[string]bool // paths of which something was told
	anew   bool            // the connection was lost meanwhile
	on     *session        // the session that watches are set in
}

// group is what one interest needs. refreshed, when not nil, is called after everything was looked at again.
type group struct {
	refreshed func()
	ready     chan struct{} // closed when all its points were watched at once
	isReady   bool          // guarded by points.mu
	closed    bool          // likewise
	points    map[string]*point
}

// point is a node that is watched, or whose list of children is.
type point struct {
	group    *group
	path     string
	children bool
	set      bool // a watch is set
	changed  bool // something was told of it that its group hasn't been told
	// seen is called by the loop each time a watch was set: at first, and when something changed or may have.
	seen func(ctx context.Context, now sight)
}

// sight is what was found when a watch was set.
type sight struct {
	exists   bool
	stat     zk.Stat
	children []string
	changed  bool // something was told of it since the last time
}

func newPoints(log *slog.Logger, current func() *session) *points {
	return &points{log: log, session: current, signal: make(chan struct{}, 1),
		groups: map[*group]bool{}, byPath: map[string][]*point{}, events: map[string]bool{}}
}

func (p *points) start() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	p.done.Go(func() { p.loop(ctx) })
}

func (p *points) stop() {
	p.cancel()
	p.done.Wait()
}

func (p *points) wake() {
	select {
	case p.signal <- struct{}{}:
	default:
	}
}

// told takes note that something happened at a path. It is called from the library's goroutine.
func (p *points) told(path string) {
	p.mu.Lock()
	p.events[path] = true
	p.mu.Unlock()
	p.wake()
}

// lost takes note that there was no connection for a while, or that there is another session.
func (p *points) lost() {
	p.mu.Lock()
	p.anew = true
	p.mu.Unlock()
	p.wake()
}

// newGroup makes a group without points.
func newGroup() *group { return &group{ready: make(chan struct{}), points: map[string]*point{}} }

// open begins to watch a group's points.
func (p *points) open(g *group) {
	p.mu.Lock()
	p.groups[g] = true
	p.mu.Unlock()
	p.wake()
}

// close ends that. Its functions may be called once more, from the loop.
func (p *points) close(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.closed {
		return
	}
	g.closed = true
	delete(p.groups, g)
	for _, pt := range g.points {
		p.forget(pt)
	}
}

// add adds a point to a group, unless it has one there.
func (p *points) add(g *group, path string, children, changed bool, seen func(ctx context.Context, now sight)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if g.points[path] != nil || g.closed {
		return
	}
	pt := &point{group: g, path: path, children: children, changed: changed, seen: seen}
	g.points[path] = pt
	p.byPath[path] = append(p.byPath[path], pt)
}

// remove takes a point out of a group.
func (p *points) remove(g *group, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pt := g.points[path]; pt != nil {
		delete(g.points, path)
		p.forget(pt)
	}
}

func (p *points) forget(pt *point) {
	rest := slices.DeleteFunc(p.byPath[pt.path], func(o *point) bool { return o == pt })
	if p.byPath[pt.path] = rest; len(rest) == 0 {
		delete(p.byPath, pt.path)
	}
}

// loop is the goroutine that sets watches.
func (p *points) loop(ctx context.Context) {
	var owed []func() // refreshed, of groups that were looked at again
	for {
		for p.pass(ctx, &owed) {
		}
		select {
		case <-p.signal:
		case <-ctx.Done():
			return
		}
	}
}

// pass sets the watches that are to be set, and says whether there may be more to do at once.
func (p *points) pass(ctx context.Context, owed *[]func()) (more bool) {
	s := p.session()
	if s == nil || ctx.Err() != nil {
		return false
	}
	todo := p.take(s, owed)
	if len(todo) == 0 {
		return p.settle(owed)
	}
	sights, errs := make([]sight, len(todo)), make([]error, len(todo))
	each(len(todo), func(i int) { sights[i], errs[i] = todo[i].look(ctx, s) })
	whole := true
	for i, pt := range todo {
		if err := errs[i]; err != nil {
			if whole && ctx.Err() == nil {
				p.log.Warn("could not watch a node; it is tried again when there is another connection", "path", pt.path, "error", err)
			}
			whole = false // when there is a connection again, or another session, this is woken
			continue
		}
		p.mu.Lock()
		sights[i].changed, pt.changed, pt.set = pt.changed, false, true
		closed := pt.group.closed || pt.group.points[pt.path] != pt
		p.mu.Unlock()
		if !closed {
			pt.seen(ctx, sights[i])
		}
	}
	return whole
}

// take lists the points whose watch is to be set, after what was told since the last time.
func (p *points) take(s *session, owed *[]func()) (todo []*point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.on != s || p.anew {
		for g := range p.groups {
			for _, pt := range g.points {
				// Lists, and what nobody looks at on being told "everything", are looked at again; a node's watch is kept by
				// the library through a lost connection.
				if p.on != s || pt.children || g.refreshed == nil {
					pt.set = false
				}
			}
			if g.refreshed != nil && g.isReady {
				*owed = append(*owed, g.refreshed)
			}
		}
		p.on, p.anew = s, false
	}
	for path := range p.events {
		for _, pt := range p.byPath[path] {
			pt.set, pt.changed = false, true
		}
	}
	clear(p.events)
	for g := range p.groups {
		for _, pt := range g.points {
			if !pt.set {
				todo = append(todo, pt)
			}
		}
	}
	return todo
}

// settle tells the groups that are watched as a whole, when nothing happened meanwhile.
func (p *points) settle(owed *[]func()) (more bool) {
	p.mu.Lock()
	more = len(p.events) > 0 || p.anew
	for g := range p.groups {
		for _, pt := range g.points {
			more = more || !pt.set
		}
	}
	if more {
		p.mu.Unlock()
		return true
	}
	for g := range p.groups {
		if !g.isReady {
			g.isReady = true
			close(g.ready)
		}
	}
	p.mu.Unlock()
	for _, tell := range *owed {
		tell()
	}
	*owed = nil
	return false
}

// look sets the watch and says what is there.
func (pt *point) look(ctx context.Context, s *session) (sight, error) {
	return call(ctx, s, func(c *zk.Conn) (now sight, err error) {
		if !pt.children {
			exists, stat, _, err := c.ExistsW(s.path(pt.path))
			if exists && stat != nil {
				now.stat = *stat
			}
			now.exists = exists
			return now, err
		}
		names, stat, _, err := c.ChildrenW(s.path(pt.path))
		if err == zk.ErrNoNode { // somebody took it away: when it comes back, so do its children
			_, _, _, err = c.ExistsW(s.path(pt.path))
			return now, err
		}
		if err == nil {
			now.exists, now.children, now.stat = true, names, *stat
		}
		return now, err
	})
}

// await waits until a group is watched as a whole.
func (g *group) await(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-g.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return election.ErrClosed
	}
}

// inFlight is how many requests are on their way to ZooKeeper at a time, of those that belong together.
const inFlight = 64

// each does something for 0 to n-1, many at a time.
func each(n int, do func(i int)) { atMost(inFlight, n, do) }

// atMost is each with a limit on how many at a time.
func atMost(limit, n int, do func(i int)) {
	if n == 1 {
		do(0)
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, limit) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	wg.Wait()
}
