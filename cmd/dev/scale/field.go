package scale

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// field is where one scenario is played.
type field struct {
	Options
	scenario string
	broker   string // the storage, or the coordination
	bin      string
	dir      string
	report   *Report
	env      *task.Env
	opener   target.Opener
}

// say tells how it goes.
func (f *field) say(format string, args ...any) {
	f.env.Say("%-11s %-10s %s", f.scenario, f.broker, fmt.Sprintf(format, args...))
}

// atMost notes a figure with its bound.
func (f *field) atMost(bound float64, value float64, name string, args ...any) {
	f.note(Figure{Value: value, Bound: bound, Name: fmt.Sprintf(name, args...)})
}

// atLeast notes a figure that is better the larger it is.
func (f *field) atLeast(bound float64, value float64, name string, args ...any) {
	f.note(Figure{Value: value, Bound: bound, AtLeast: true, Name: fmt.Sprintf(name, args...)})
}

func (f *field) note(x Figure) {
	x.Scenario, x.Broker = f.scenario, f.broker
	f.report.add(x)
	mark := ""
	if !x.Met() {
		mark = "   MISSED"
	}
	f.say("%-70s %10.4g%s", x.Name, x.Value, mark)
}

// node is a broker that a scenario may end and start again over the same files.
type node struct {
	*peers.Peer
	f       *field
	options target.Options
	admin   string // HOST:PORT of the admin server
}

// start starts a broker with properties over those that all have: deleted files go at once, and groups don't wait for members.
func (f *field) start(ctx context.Context, properties map[string]string) (*node, error) {
	ports, err := peers.FreePorts(2)
	if err != nil {
		return nil, err
	}
	at := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	n := &node{f: f, admin: at(ports[1])}
	p := map[string]string{"log.segment.delete.delay.ms": "500", "offsets.topic.num.partitions": "50"}
	for k, v := range properties {
		p[k] = v
	}
	n.options = target.Options{Dir: filepath.Join(f.dir, "broker"), Addr: at(ports[0]), Storage: f.broker, Properties: p,
		Sections: fmt.Sprintf("admin:\n  listen: %q\n", n.admin)}
	_, err = n.again(ctx)
	return n, err
}

// again starts the broker that has ended, and says how long it took until a client had its first answer.
func (n *node) again(ctx context.Context) (time.Duration, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan time.Time, 1)
	begin := time.Now()
	go func() { // ends with waiting
		if bench.Await(waiting, n.options.Addr) == nil {
			answered <- time.Now()
		}
	}()
	var err error
	if n.Peer, err = target.StartBarnabas(ctx, n.f.bin, n.options); err != nil {
		return 0, err
	}
	select {
	case at := <-answered:
		return at.Sub(begin), nil
	case <-ctx.Done():
		n.Kill()
		return 0, ctx.Err()
	}
}

// client is a client of the broker; its owner closes it.
func (n *node) client(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(n.Addr), kgo.RetryTimeout(time.Minute), kgo.ClientID("scale")}, options...)...)
}

// pause waits, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await looks until something is so, for as long as it may take. What it looked like last is in the error.
func await(ctx context.Context, within time.Duration, what string, is func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		ok, err := is()
		if err != nil || ok {
			return err
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			return fmt.Errorf("%s: not so within %s", what, within)
		}
	}
}
