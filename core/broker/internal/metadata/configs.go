package metadata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
)

// ConfigOptions are what a Configs is made of.
type ConfigOptions struct {
	Metadata election.Metadata
	BrokerID int32
	Static   kafka.Values // what the broker was started with
	Codecs   []string     // that this broker has; nil has all
	// Partitioners are those that this broker has; nil has all.
	Partitioners []kafka.Partitioner
	Logger       *slog.Logger
	// Changed is called after the configuration of a topic may have become another one, or, with "", that of this broker and
	// with it of every topic. Calls come one after the other, from the goroutine that made or saw the change, and may say
	// what was said before. It must be quick, and call Layers, Topic and TopicConfig alone. What Start reads isn't told.
	Changed func(topic string)
}

// Configs keeps the configurations that were changed while brokers ran: topics' own, this broker's, and the default of all
// brokers. Whatever changes them, here or on another broker, is in force here when it has been seen. Its methods may be called
// from any goroutine.
type Configs struct {
	o       ConfigOptions
	current atomic.Pointer[configs]
	mu      sync.Mutex // held while a new value of current is made
	telling sync.Mutex // held over calls of Changed
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// configs is one moment's configurations. It never changes.
type configs struct {
	layers   kafka.Layers
	defaults kafka.TopicConfig // of a topic without settings of its own
	topics   map[string]topicConfig
}

type topicConfig struct {
	own   kafka.Values
	typed kafka.TopicConfig
}

// NewConfigs makes a Configs that knows the static properties alone.
func NewConfigs(o ConfigOptions) *Configs {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	c := &Configs{o: o}
	c.current.Store(c.derive(kafka.Layers{Static: o.Static, Codecs: o.Codecs, Partitioners: o.Partitioners}, nil))
	return c
}

// Start reads what is kept, and watches it from then on.
func (c *Configs) Start(ctx context.Context) error {
	w, err := c.o.Metadata.Watch(ctx, election.ConfigChanged)
	if err != nil {
		return fmt.Errorf("watching configurations: %w", err)
	}
	if err := c.reload(ctx); err != nil {
		w.Close()
		return fmt.Errorf("reading configurations: %w", err)
	}
	follow, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.done.Add(1)
	go c.follow(follow, w)
	return nil
}

// Stop ends the watch.
func (c *Configs) Stop(context.Context) error {
	if c.cancel != nil {
		c.cancel()
		c.done.Wait()
	}
	return nil
}

// Layers are the broker's properties as they hold now.
func (c *Configs) Layers() kafka.Layers { return c.current.Load().layers }

// Topic is what was set for a topic. It is shared: nobody changes it.
func (c *Configs) Topic(name string) kafka.Values { return c.current.Load().topics[name].own }

// TopicConfig is what holds for a topic.
func (c *Configs) TopicConfig(name string) kafka.TopicConfig {
	now := c.current.Load()
	if t, ok := now.topics[name]; ok {
		return t.typed
	}
	return now.defaults
}

// FetchTopicConfig is what holds for a topic, read anew: for a topic that appears, whose configuration may not have been
// seen yet. When it can't be read, what is known holds.
func (c *Configs) FetchTopicConfig(ctx context.Context, name string) kafka.TopicConfig {
	if err := c.refresh(ctx, TopicEntity(name)); err != nil {
		c.o.Logger.Warn("could not read the configuration of a topic", "topic", name, "error", err)
	}
	return c.TopicConfig(name)
}

// tell says that a configuration may have changed.
func (c *Configs) tell(e election.Entity) {
	c.telling.Lock()
	defer c.telling.Unlock()
	if e.Kind == election.TopicEntity {
		c.o.Changed(e.Name)
	} else if c.concerned(e) {
		c.o.Changed("")
	}
}

// concerned says whether a broker's configuration is this one's, or the default of all.
func (c *Configs) concerned(e election.Entity) bool {
	return e == BrokerEntity(kafka.AllBrokers, 0) || e == BrokerEntity(kafka.ThisBroker, c.o.BrokerID)
}

// TopicEntity names a topic's configuration.
func TopicEntity(name string) election.Entity {
	return election.Entity{Kind: election.TopicEntity, Name: name}
}

// BrokerEntity names a broker's configuration; with AllBrokers the default of all.
func BrokerEntity(target kafka.Target, id int32) election.Entity {
	if target == kafka.AllBrokers {
		return election.Entity{Kind: election.BrokerEntity}
	}
	return election.Entity{Kind: election.BrokerEntity, Name: strconv.Itoa(int(id))}
}

// attempts is how often a change is tried when others change the same configuration at the same time.
const attempts = 10

// Change changes the configuration of an entity: change gets what is set, and what holds for this broker, and returns what is
// to be set instead. It may be called several times, and its error is returned. The new configuration is kept under the
// controller epoch, and in force here, when Change returns nil.
func (c *Configs) Change(ctx context.Context, controllerEpoch int32, e election.Entity, change func(now kafka.Layers, set kafka.Values) (kafka.Values, error)) error {
	for range attempts {
		kept, err := c.o.Metadata.Configs(ctx, e)
		if err != nil {
			return err
		}
		next, err := change(c.Layers(), kept[0].Values)
		if err != nil {
			return err
		}
		if maps.Equal(next, kept[0].Values) {
			return nil
		}
		errs, err := c.o.Metadata.SetConfigs(ctx, controllerEpoch, []election.Config{{Entity: e, Values: next, Version: kept[0].Version}})
		if err == nil {
			err = errs[0]
		}
		if errors.Is(err, election.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		if err := c.refresh(ctx, e); err != nil {
			return err
		}
		c.tell(e)
		return nil
	}
	return fmt.Errorf("configuration of %q: %w too often", e.Name, election.ErrConflict)
}

// refresh reads one configuration anew and puts it in force.
func (c *Configs) refresh(ctx context.Context, e election.Entity) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, err := c.o.Metadata.Configs(ctx, e)
	if err != nil {
		return err
	}
	own := kafka.Values(kept[0].Values)
	now := c.current.Load()
	switch {
	case e.Kind == election.TopicEntity:
		if maps.Equal(own, now.topics[e.Name].own) {
			return nil
		}
		next := &configs{layers: now.layers, defaults: now.defaults, topics: maps.Clone(now.topics)}
		if next.topics == nil {
			next.topics = map[string]topicConfig{}
		}
		if delete(next.topics, e.Name); len(own) > 0 {
			next.topics[e.Name] = topicConfig{own, c.typed(now.layers, e.Name, own)}
		}
		c.current.Store(next)
	case c.concerned(e):
		layers := now.layers
		place := &layers.Dynamic
		if e.Name == "" {
			place = &layers.DynamicDefault
		}
		if maps.Equal(own, *place) {
			return nil
		}
		*place = own
		c.current.Store(c.derive(layers, c.ownOf(now)))
	}
	return nil
}

func (c *Configs) ownOf(now *configs) map[string]kafka.Values {
	own := make(map[string]kafka.Values, len(now.topics))
	for name, t := range now.topics {
		own[name] = t.own
	}
	return own
}

// derive gives what topics' own settings come to under a broker's properties.
func (c *Configs) derive(layers kafka.Layers, own map[string]kafka.Values) *configs {
	next := &configs{layers: layers, topics: make(map[string]topicConfig, len(own))}
	next.defaults = c.typed(layers, "", nil)
	for name, values := range own {
		next.topics[name] = topicConfig{values, c.typed(layers, name, values)}
	}
	return next
}

// typed gives what settings come to. What isn't valid in them, which only somebody else can have written, is as if unset.
func (c *Configs) typed(layers kafka.Layers, topic string, own kafka.Values) kafka.TopicConfig {
	t, err := layers.TopicConfig(own)
	if err != nil {
		c.o.Logger.Warn("settings of a topic that are not valid are left out", "topic", topic, "error", err)
	}
	return t
}

// reload reads everything anew.
func (c *Configs) reload(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, err := c.o.Metadata.Configs(ctx)
	if err != nil {
		return err
	}
	layers, own := kafka.Layers{Static: c.o.Static, Codecs: c.o.Codecs, Partitioners: c.o.Partitioners}, map[string]kafka.Values{}
	for _, k := range kept {
		switch {
		case k.Entity.Kind == election.TopicEntity:
			own[k.Entity.Name] = k.Values
		case k.Entity == BrokerEntity(kafka.AllBrokers, 0):
			layers.DynamicDefault = k.Values
		case k.Entity == BrokerEntity(kafka.ThisBroker, c.o.BrokerID):
			layers.Dynamic = k.Values
		}
	}
	c.current.Store(c.derive(layers, own))
	return nil
}

// follow puts in force what changes.
func (c *Configs) follow(ctx context.Context, w election.Watch) {
	defer c.done.Done()
	defer w.Close()
	var late []election.Change
	for {
		changes, err := c.next(ctx, w, len(late) > 0)
		if err != nil {
			return
		}
		late = c.see(ctx, late, changes)
	}
}

// seePause is how long is waited before a change that could not be read is read again.
const seePause = 200 * time.Millisecond

// next waits for changes, and for no longer than seePause when some are late.
func (c *Configs) next(ctx context.Context, w election.Watch, late bool) ([]election.Change, error) {
	if !late {
		return w.Next(ctx)
	}
	wait, cancel := context.WithTimeout(ctx, seePause)
	defer cancel()
	changes, err := w.Next(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return changes, err
}

// see puts changes in force, and those that are late as they could not be read before. It returns those that can't be read now either: they are to be
// tried until that is done, since nobody tells of the same change again, and hold up no others.
func (c *Configs) see(ctx context.Context, late, changes []election.Change) (still []election.Change) {
	for i, ch := range append(late, changes...) {
		err := c.take(ctx, ch)
		if err == nil || errors.Is(err, election.ErrClosed) || slices.Contains(still, ch) {
			continue
		}
		still = append(still, ch)
		if i >= len(late) && ctx.Err() == nil {
			c.o.Logger.Warn("could not read a configuration that changed, will try on", "kind", ch.Entity.Kind, "name", ch.Entity.Name, "error", err)
		}
	}
	return still
}

// take reads what changed, and tells.
func (c *Configs) take(ctx context.Context, ch election.Change) error {
	switch ch.Kind {
	case election.ConfigChanged:
		if err := c.refresh(ctx, ch.Entity); err != nil {
			return err
		}
		c.tell(ch.Entity)
	case election.EverythingChanged:
		if err := c.reload(ctx); err != nil {
			return err
		}
		c.tell(BrokerEntity(kafka.AllBrokers, 0))
	}
	return nil
}
