package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

// TestChaos lets members campaign and write while their lines are cut, and looks whether two were ever controller at a time, whether
// writes of one controller came after those of its successor, and whether one that was acknowledged is lost.
func TestChaos(t *testing.T) { testChaos(t, false) }

// TestChaosWithExpiries ends sessions as well, before their time: then a controller can't know at once that it has a successor, and
// what it writes is all the more to be refused.
func TestChaosWithExpiries(t *testing.T) { testChaos(t, true) }

func testChaos(t *testing.T, expiries bool) {
	t.Parallel()
	const members, lasts = 3, 6 * time.Second
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	place := newCluster(t).o
	r := &chaos{apart: !expiries, entity: election.Entity{Kind: election.BrokerEntity, Name: "1"}, writes: map[int64]string{}}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var proxies []*proxy
	for id := range int32(members) {
		p := newProxy(t, shared.Connect())
		o := place
		o.Connect, o.SessionTimeout, o.ConnectionTimeout = p.addr()+place.Connect[len(shared.Connect()):], 2*time.Second, 2*time.Second
		c := begin(t, o, t.TempDir())
		proxies = append(proxies, p)
		wg.Go(func() { r.rule(ctx, c, id) })
		wg.Go(func() { r.live(ctx, c, id) })
	}
	for deadline := time.Now().Add(lasts); time.Now().Before(deadline); {
		p := proxies[random.IntN(members)]
		switch what := random.IntN(4); {
		case what == 0:
			p.drop()
		case what < 3 && expiries:
			p.expire()
		case what < 3:
			p.sever()
		}
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		if random.IntN(3) == 0 {
			p.heal()
		}
	}
	for _, p := range proxies {
		p.heal()
	}
	stop()
	wg.Wait()
	require.Empty(t, r.faults)
	require.NotEmpty(t, r.writes)

	// The last write is an acknowledged one, or one after it whose answer was lost; epochs rise with versions.
	at, last := slices.Sorted(func(yield func(int64) bool) {
		for version := range r.writes {
			if !yield(version) {
				return
			}
		}
	}), int32(0)
	for _, version := range at {
		var epoch int32
		var n int
		_, err := fmt.Sscanf(r.writes[version], "%d/%d", &epoch, &n)
		require.NoError(t, err)
		require.GreaterOrEqual(t, epoch, last, "a controller wrote after its successor")
		last = epoch
	}
	final := begin(t, place, "")
	got, err := final.Metadata().Configs(inTime(t), r.entity)
	require.NoError(t, err)
	require.GreaterOrEqual(t, got[0].Version, at[len(at)-1], "an acknowledged write is lost")
	t.Logf("%d writes under %d epochs, %d registrations", len(at), last, r.registrations)
}

type chaos struct {
	entity election.Entity
	apart  bool // terms must not overlap

	mu            sync.Mutex
	term          election.Term // the last that was won
	writes        map[int64]string
	registrations int
	faults        []string
}

func (r *chaos) fault(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, fmt.Sprintf(format, args...))
}

// rule campaigns, and writes for as long as a term lasts.
func (r *chaos) rule(ctx context.Context, c *coordination, id int32) {
	for ctx.Err() == nil {
		term, err := c.Election().Campaign(ctx, id)
		if err != nil {
			if ctx.Err() == nil {
				r.fault("campaign: %v", err)
			}
			return
		}
		r.mu.Lock()
		if r.apart && r.term != nil && isOpen(r.term.Lost()) && isOpen(term.Lost()) {
			r.faults = append(r.faults, fmt.Sprintf("epochs %d and %d at a time", r.term.Epoch(), term.Epoch()))
		}
		r.term = term
		r.mu.Unlock()
		for n := 0; ctx.Err() == nil && isOpen(term.Lost()); n++ {
			if err := r.write(ctx, c, term, fmt.Sprintf("%d/%d", term.Epoch(), n)); err != nil && ctx.Err() == nil &&
				!errors.Is(err, election.ErrUnavailable) && !errors.Is(err, election.ErrStaleController) {
				r.fault("write: %v", err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

func (r *chaos) write(ctx context.Context, c *coordination, term election.Term, value string) error {
	now, err := c.Metadata().Configs(ctx, r.entity)
	if err != nil {
		return err
	}
	errs, err := c.Metadata().SetConfigs(ctx, term.Epoch(), []election.Config{{Entity: r.entity, Values: map[string]string{"k": value}, Version: now[0].Version}})
	if err != nil {
		return err
	}
	if errs[0] != nil {
		return errs[0] // a conflict would be another controller's write, or this one's own whose answer was lost: there is none between
	}
	after, err := c.Metadata().Configs(ctx, r.entity)
	if err != nil {
		return err
	}
	if after[0].Values["k"] == value {
		r.mu.Lock()
		r.writes[after[0].Version] = value
		r.mu.Unlock()
	} else if isOpen(term.Lost()) {
		r.fault("%s was acknowledged, and %s is there", value, after[0].Values["k"])
	}
	return nil
}

// live keeps a broker registered.
func (r *chaos) live(ctx context.Context, c *coordination, id int32) {
	last := int64(0)
	for ctx.Err() == nil {
		reg, err := c.Membership().Register(ctx, testBroker(id, 9000+id))
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, election.ErrUnavailable):
			continue
		case err != nil:
			r.fault("register: %v", err)
			return
		case reg.Epoch() <= last:
			r.fault("broker epoch %d after %d", reg.Epoch(), last)
		}
		last = reg.Epoch()
		r.mu.Lock()
		r.registrations++
		r.mu.Unlock()
		select {
		case <-reg.Lost():
		case <-ctx.Done():
		}
	}
}
