package inplace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
)

// Side is one of those who take turns.
type Side struct {
	Name  string
	Start func(ctx context.Context) (*peers.Peer, error) // on the address and the directory of the script
}

// Script is what is played.
type Script struct {
	Addr     string
	Data     string // the log directory
	Kafka    Side   // on its ZooKeeper
	Barnabas Side   // on the same ZooKeeper
	// Alone is Barnabas without that ZooKeeper, and Move takes what was agreed on there with it. It is the end of the script.
	Alone Side
	Move  func(ctx context.Context) error
	// Verify reads the directory while no broker runs, and says what is wrong with it.
	Verify func(ctx context.Context) error
	Say    func(format string, args ...any)
}

// player is a script under way.
type player struct {
	Script
	clients *clients
	before  view // what was read at the end of the last turn
	played  int
}

// Play plays the script.
func Play(ctx context.Context, s Script) error {
	c, err := newClients(s.Addr)
	if err != nil {
		return err
	}
	defer c.close()
	p := &player{Script: s, clients: c}
	for _, turn := range []struct {
		side Side
		do   func(ctx context.Context) error
		end  func(*peers.Peer) error
	}{
		{s.Kafka, p.first, (*peers.Peer).Stop},
		{s.Barnabas, p.nextAndDelete, (*peers.Peer).Stop},
		{s.Kafka, p.next, kill},
		{s.Barnabas, p.next, kill},
		{s.Kafka, p.nextAndDelete, (*peers.Peer).Stop},
	} {
		if err := p.turn(ctx, turn.side, turn.do, turn.end); err != nil {
			return err
		}
	}
	if err := s.Move(ctx); err != nil {
		return fmt.Errorf("move away from ZooKeeper: %w", err)
	}
	return p.turn(ctx, s.Alone, p.next, (*peers.Peer).Stop)
}

func kill(p *peers.Peer) error {
	p.Kill()
	return nil
}

// turn has one side open the directory, compares what is there with what was, and goes on from there.
func (p *player) turn(ctx context.Context, side Side, do func(context.Context) error, end func(*peers.Peer) error) error {
	p.played++
	fail := func(what string, err error) error {
		return fmt.Errorf("turn %d, %s: %s: %w", p.played, side.Name, what, err)
	}
	p.Say("turn %d: %s starts", p.played, side.Name)
	broker, err := side.Start(ctx)
	if err != nil {
		return fail("start", err)
	}
	defer broker.Kill()
	p.Say("turn %d: %s serves", p.played, side.Name)
	told := func(what string, err error) error {
		return fmt.Errorf("%w\nits output ends:\n%s", fail(what, err), broker.Output())
	}
	if p.played > 1 {
		if err := p.same(ctx); err != nil {
			return told("what the last one left", err)
		}
	}
	if err := do(ctx); err != nil {
		return told("go on", err)
	}
	if p.before, err = look(ctx, p.Addr); err != nil {
		return told("look at the end", err)
	}
	if err := end(broker); err != nil {
		return fail("stop", err)
	}
	if err := p.Verify(ctx); err != nil {
		return fail("log verify", err)
	}
	return nil
}

// same compares what is read now with what was read before. A broker that has just started may not know all of it yet.
func (p *player) same(ctx context.Context) error {
	var diffs []string
	err := until(ctx, func() (bool, error) {
		diffs = p.compare(ctx)
		return len(diffs) == 0, nil
	})
	if err != nil && len(diffs) > 0 {
		return errors.New(strings.Join(diffs, "\n"))
	}
	return err
}

// compare lists how what is read now differs from what was read before; that it can't be read is a difference, too.
func (p *player) compare(ctx context.Context) []string {
	now, err := look(ctx, p.Addr)
	if err != nil {
		return []string{err.Error()}
	}
	return differences(p.before, now)
}

// until asks again and again, for a minute.
func until(ctx context.Context, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// first makes topics, and everything that a directory can have in it.
func (p *player) first(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := topics(ctx, kadm.NewClient(client)); err != nil {
		return err
	}
	if err := p.clients.begin(ctx, "committed"); err != nil {
		return err
	}
	if err := p.clients.end(ctx, kgo.TryCommit); err != nil {
		return err
	}
	if err := p.clients.begin(ctx, "aborted"); err != nil {
		return err
	}
	if err := p.clients.end(ctx, kgo.TryAbort); err != nil {
		return err
	}
	if err := p.clients.codecs(ctx); err != nil {
		return err
	}
	if err := p.goOn(ctx); err != nil {
		return err
	}
	return p.deleteSome(ctx)
}

// next ends what the last one left open, and goes on.
func (p *player) next(ctx context.Context) error {
	if err := p.clients.end(ctx, kgo.TryCommit); err != nil {
		return err
	}
	return p.goOn(ctx)
}

// nextAndDelete is next for a broker that is going to stop in order: where logs begin is written down once a minute, and when it stops, so
// that one that is killed may know of records again that were deleted.
func (p *player) nextAndDelete(ctx context.Context) error {
	if err := p.next(ctx); err != nil {
		return err
	}
	return p.deleteSome(ctx)
}

// goOn writes more of everything, has the compacted topic compacted, and leaves a transaction open.
func (p *player) goOn(ctx context.Context) error {
	if err := p.clients.produce(ctx, fmt.Sprintf("turn-%d", p.played), 300); err != nil {
		return err
	}
	if err := p.clients.consume(ctx, 100); err != nil {
		return err
	}
	if err := p.compacted(ctx); err != nil {
		return err
	}
	return p.clients.begin(ctx, fmt.Sprintf("left open by turn %d", p.played))
}

// deleteSome moves the start of a partition, which is kept in a file of its own.
func (p *player) deleteSome(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(p.Addr))
	if err != nil {
		return err
	}
	defer client.Close()
	offsets := kadm.Offsets{}
	offsets.AddOffset(plainTopic, 2, int64(p.played), -1)
	deleted, err := kadm.NewClient(client).DeleteRecords(ctx, offsets)
	if err != nil {
		return fmt.Errorf("delete records: %w", err)
	}
	return deleted.Error()
}

// compacted waits until the cleaner has been over what this turn wrote, but for the active segment. How much is left shows in the size of
// the files: everything else that clients see is the same before and after.
func (p *player) compacted(ctx context.Context) error {
	const enough = 24 << 10 // twenty keys, two segments that may not be cleaned yet, and what indexes reserve is not counted
	var size int64
	err := until(ctx, func() (bool, error) {
		files, err := filepath.Glob(filepath.Join(p.Data, partition(compactedTopic, 0), "*.log"))
		if err != nil {
			return false, err
		}
		size = 0
		for _, file := range files {
			if info, err := os.Stat(file); err == nil { // else it has just been cleaned away
				size += info.Size()
			}
		}
		return size < enough, nil
	})
	if err != nil {
		return fmt.Errorf("the compacted topic still has %d bytes: %w", size, err)
	}
	return nil
}
