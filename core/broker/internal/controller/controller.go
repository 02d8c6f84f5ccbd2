package controller

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/election"
)

// Pusher brings control requests to brokers.
type Pusher interface {
	// Push sends a request to a broker, or sees that it is sent, in the order of the calls for one broker. It returns the
	// answer, or nil when that comes later through Controller.Deliver. It is called from the controller's loop, and doesn't
	// wait for another machine.
	Push(broker int32, epoch int64, req kmsg.Request) kmsg.Response
	// Drop forgets what was pushed and isn't sent or answered yet, because the term that it belongs to is over.
	Drop()
}

// Options are what a controller is made of.
type Options struct {
	Rules Rules
	// Rebalance is the time between two checks whether leadership is balanced: leader.imbalance.check.interval.seconds. 0 or
	// less: there are none (auto.leader.rebalance.enable).
	Rebalance  time.Duration
	Election   election.Election
	Membership election.Membership
	Metadata   election.Metadata
	Requests   election.Requests
	Pusher     Pusher
	// Journal remembers why partitions have the leaders and in-sync sets that they have; nil for none.
	Journal *journal.Journal
	Logger  *slog.Logger
}

// Controller campaigns, and while it is elected runs a Machine. Its methods may be called from any goroutine.
type Controller struct {
	o      Options
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu     sync.Mutex
	active bool // there is a term, and a machine that was loaded
	ready  chan struct{}
	box    []letter // what waits for the loop
	signal chan struct{}
}

// letter is an event on its way to the loop. done, when not nil, gets the outcome once: nil when nothing is left to do.
type letter struct {
	event Event
	done  chan<- error
}

// New makes a controller. Nothing happens before Start.
func New(o Options) *Controller {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Controller{o: o, ready: make(chan struct{}), signal: make(chan struct{}, 1)}
}

// Start begins to campaign, in the background. The broker is registered by then.
func (c *Controller) Start(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.done.Add(1)
	go c.campaign(ctx)
	return nil
}

// Stop resigns and ends the loop. Commands that wait get ErrNotController.
func (c *Controller) Stop(context.Context) error {
	if c.cancel != nil {
		c.cancel()
		c.done.Wait()
	}
	return nil
}

// Active says whether this broker is controller, and has taken over.
func (c *Controller) Active() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.active
}

// Ready is closed when this broker has taken over as controller for the first time.
func (c *Controller) Ready() <-chan struct{} { return c.ready }

// Do has a command carried out, and waits until nothing is left to do about it here: written, and told to this broker.
// ErrNotController when this broker isn't controller or stops being it meanwhile. When ctx ends first, Do returns its error
// and the command goes on; then, as after any error, its results must not be looked at.
func (c *Controller) Do(ctx context.Context, command Event) error {
	done := make(chan error, 1)
	if !c.post(letter{command, done}, true) {
		return ErrNotController
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ConfigChanged says that Rules.Unclean may answer otherwise than before, for a topic or, with "", for any.
func (c *Controller) ConfigChanged(topic string) { c.post(letter{ConfigChanged{topic}, nil}, true) }

// Deliver brings a broker's answer to a push, from a pusher that doesn't answer at once.
func (c *Controller) Deliver(d Delivered) { c.post(letter{d, nil}, true) }

func (c *Controller) post(l letter, onlyActive bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if onlyActive && !c.active {
		return false
	}
	c.box = append(c.box, l)
	select {
	case c.signal <- struct{}{}:
	default:
	}
	return true
}

// take empties the box.
func (c *Controller) take() []letter {
	c.mu.Lock()
	defer c.mu.Unlock()
	letters := c.box
	c.box = nil
	return letters
}

// activate says whether commands are taken. Those that wait when they aren't any more are refused.
func (c *Controller) activate(active bool) {
	c.mu.Lock()
	c.active = active
	if active {
		select {
		case <-c.ready:
		default:
			close(c.ready)
		}
	}
	c.mu.Unlock()
	if !active {
		refuseAll(c.take(), ErrNotController)
	}
}

func refuseAll(letters []letter, err error) {
	for _, l := range letters {
		if l.done != nil {
			l.done <- err
		}
	}
}

// retryPause is how long the loop waits before it tries again what the coordination couldn't do.
const retryPause = 500 * time.Millisecond

// firstRebalance is how long after it took over a controller sees for the first time whether leadership is balanced, as in Kafka,
// unless it does so more often than that.
const firstRebalance = 5 * time.Second

func pause(ctx context.Context) {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// campaign is the loop's goroutine.
func (c *Controller) campaign(ctx context.Context) {
	defer c.done.Done()
	for ctx.Err() == nil {
		term, err := c.o.Election.Campaign(ctx, c.o.Rules.BrokerID)
		if err != nil {
			if ctx.Err() == nil {
				c.o.Logger.Warn("could not campaign for controller", "error", err)
				pause(ctx)
			}
			continue
		}
		c.o.Logger.Info("elected controller", "broker", c.o.Rules.BrokerID, "epoch", term.Epoch())
		for ctx.Err() == nil {
			err := c.serve(ctx, term)
			if over(term) || errors.Is(err, election.ErrStaleController) || errors.Is(err, election.ErrClosed) {
				break
			}
			if ctx.Err() == nil {
				c.o.Logger.Error("the controller starts over, because the coordination failed", "error", err)
				pause(ctx)
			}
		}
		resign, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		if err := term.Resign(resign); err != nil && !errors.Is(err, election.ErrClosed) {
			c.o.Logger.Warn("could not resign as controller", "error", err)
		}
		cancel()
		c.o.Logger.Info("not controller any more", "broker", c.o.Rules.BrokerID, "epoch", term.Epoch())
	}
}

func over(t election.Term) bool {
	select {
	case <-t.Lost():
		return true
	default:
		return false
	}
}

// serve takes over and runs the machine until the term is over, ctx ends, or the coordination fails.
func (c *Controller) serve(ctx context.Context, term election.Term) error {
	ctx, cancel := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer cancel()
	defer c.o.Pusher.Drop()
	defer c.activate(false)

	// Watches begin before anything is read: what changes in between is reported.
	topicChanges := func(ctx context.Context) (election.Watch, error) {
		return c.o.Metadata.Watch(ctx, election.TopicChanged)
	}
	for _, begin := range []func(context.Context) (election.Watch, error){c.o.Membership.Watch, topicChanges, c.o.Requests.Watch} {
		w, err := begin(ctx)
		if err != nil {
			return err
		}
		watchers.Add(1)
		go func() {
			defer watchers.Done()
			c.follow(ctx, w)
		}()
	}
	s := NewSession(c.o, term)
	if err := s.Begin(ctx); err != nil {
		return err
	}
	c.activate(true)
	rebalance := time.NewTimer(min(firstRebalance, c.o.Rebalance))
	defer rebalance.Stop()
	if c.o.Rebalance <= 0 {
		rebalance.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-term.Lost():
			return election.ErrStaleController
		case <-rebalance.C:
			if err := s.Handle(ctx, Rebalance{}); err != nil {
				return err
			}
			rebalance.Reset(c.o.Rebalance)
			continue
		case <-c.signal:
		}
		letters := c.take()
		for i, l := range letters {
			err := s.deal(ctx, l.event)
			if l.done != nil {
				l.done <- err
			}
			if err != nil {
				refuseAll(letters[i+1:], ErrNotController)
				return err
			}
		}
	}
}

// changesSeen is a letter of follow: the loop reads what changed when it gets to it, so that it never acts on what
// is older than its own writes.
type changesSeen struct{ changes []election.Change }

func (changesSeen) event() {}

// follow posts the changes of a watch to the loop.
func (c *Controller) follow(ctx context.Context, w election.Watch) {
	defer w.Close()
	for {
		changes, err := w.Next(ctx)
		if err != nil {
			return
		}
		c.post(letter{changesSeen{changes}, nil}, false)
	}
}
