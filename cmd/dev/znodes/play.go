package znodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// How long a step may take until its nodes are at rest, and how long they must stay the same to be so.
const (
	stepTimeout = 90 * time.Second
	restTime    = 2 * time.Second
)

// player plays the script on a cluster of three brokers.
type player struct {
	cluster *target.Cluster
	client  *kgo.Client
	admin   *kadm.Client
	nodes   *reader
	say     func(format string, args ...any)
}

// Play plays the script on a fresh cluster of three brokers, of which broker 1 was started first, and returns what it wrote.
func Play(ctx context.Context, c *target.Cluster, of string, say func(format string, args ...any)) (Recording, error) {
	nodes, err := open(c.ZooKeeper)
	if err != nil {
		return Recording{}, err
	}
	defer nodes.close()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.Addrs(), ",")...), kgo.RetryTimeout(30*time.Second), kgo.MetadataMinAge(50*time.Millisecond))
	if err != nil {
		return Recording{}, err
	}
	defer client.Close()
	p := &player{cluster: c, client: client, admin: kadm.NewClient(client), nodes: nodes, say: say}
	r := Recording{Of: of}
	for _, s := range script() {
		say("znodes of %s: %s", of, s.name)
		step, cancel := context.WithTimeout(ctx, stepTimeout)
		nodes, err := p.play(step, s)
		cancel()
		if err != nil {
			return r, fmt.Errorf("step %q: %w", s.name, err)
		}
		r.Steps = append(r.Steps, Step{Name: s.name, Nodes: nodes})
	}
	return r, nil
}

// play does one step and reads the nodes when they are at rest.
func (p *player) play(ctx context.Context, s step) (Tree, error) {
	if err := s.do(ctx, p); err != nil {
		return nil, err
	}
	return p.atRest(ctx, s.until)
}

// atRest waits until the nodes stay the same and until, when there is one, is content with them.
func (p *player) atRest(ctx context.Context, until func(Tree) error) (Tree, error) {
	var last Tree
	var since time.Time
	var wrong error
	for {
		now, err := p.read(ctx)
		if err != nil {
			return nil, errors.Join(err, wrong)
		}
		if !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if wrong = nil; until != nil {
			wrong = until(now)
		}
		if wrong == nil && time.Since(since) >= restTime {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("the nodes don't come to rest: %w", ctx.Err()), wrong)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (p *player) read(ctx context.Context) (Tree, error) {
	raw := map[string]rawNode{}
	if err := p.nodes.read(ctx, "", raw); err != nil {
		return nil, err
	}
	ports := map[string]string{}
	for _, m := range p.cluster.Members {
		_, port, err := net.SplitHostPort(m.Addr)
		if err != nil {
			return nil, err
		}
		ports[port] = fmt.Sprintf("<port of %d>", m.ID)
	}
	return tree(raw, namesOf(raw, ports)), nil
}

// write creates a node, as old tools do.
func (p *player) write(path, data string) error {
	_, err := p.nodes.conn.Create(p.nodes.root+path, []byte(data), 0, zk.WorldACL(zk.PermAll))
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}
