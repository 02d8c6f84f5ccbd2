package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

// instanceKey names a consumer instance.
type instanceKey struct{ group, name string }

// instances are the consumer instances of a gateway. They live in its memory: one that is lost, because it was left
// alone for too long or the gateway ended, is created again by its owner, and goes on from what was committed.
type instances struct {
	g *Gateway

	mu     sync.Mutex
	known  map[instanceKey]*instance
	closed bool
	ending sync.WaitGroup // one for each that expired and is being closed
}

func newInstances(g *Gateway) *instances {
	return &instances{g: g, known: map[instanceKey]*instance{}}
}

// create makes an instance that is subscribed to nothing.
func (t *instances) create(group string, config instanceConfig) (*instance, error) {
	if config.name == "" {
		config.name = "rest-consumer-" + uuid.NewString()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	key := instanceKey{group, config.name}
	switch {
	case t.closed:
		return nil, fail(codeKafkaRetriable, "The gateway is stopping.")
	case t.known[key] != nil:
		return nil, fail(codeInstanceExists, "Consumer with specified consumer ID already exists in the specified consumer group.")
	case len(t.known) >= t.g.options.MaxConsumers:
		return nil, fail(http.StatusTooManyRequests, "There are %d consumer instances already, which is the limit.", len(t.known))
	}
	i := newInstance(t.g, group, config)
	i.expiry = time.AfterFunc(t.g.options.ConsumerTimeout, func() { t.expire(key, i) })
	t.known[key] = i
	return i, nil
}

// use finds an instance, and keeps it for the caller alone until done is called. It waits for requests before it.
func (t *instances) use(ctx context.Context, group, name string) (i *instance, done func(), err error) {
	t.mu.Lock()
	i = t.known[instanceKey{group, name}]
	if i != nil {
		i.users++
		i.expiry.Stop()
	}
	t.mu.Unlock()
	if i == nil {
		return nil, nil, noInstance()
	}
	release := func() {
		t.mu.Lock()
		if i.users--; i.users == 0 && t.known[i.key()] == i {
			i.expiry.Reset(t.g.options.ConsumerTimeout)
		}
		t.mu.Unlock()
	}
	select {
	case i.turn <- struct{}{}:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	case <-i.ended.Done():
		release()
		return nil, nil, noInstance()
	}
	if i.ended.Err() != nil {
		<-i.turn
		release()
		return nil, nil, noInstance()
	}
	return i, func() { <-i.turn; release() }, nil
}

// remove takes an instance away and closes it, ending what waits on it.
func (t *instances) remove(group, name string) error {
	t.mu.Lock()
	key := instanceKey{group, name}
	i := t.known[key]
	if i != nil {
		delete(t.known, key)
		i.expiry.Stop()
	}
	t.mu.Unlock()
	if i == nil {
		return noInstance()
	}
	i.end()
	return nil
}

// expire removes an instance that nobody has used for long.
func (t *instances) expire(key instanceKey, i *instance) {
	t.mu.Lock()
	if t.closed || i.users > 0 || t.known[key] != i {
		t.mu.Unlock()
		return
	}
	delete(t.known, key)
	t.ending.Add(1)
	t.mu.Unlock()
	defer t.ending.Done()
	t.g.log.Info("a consumer instance was left alone and is closed", "group", key.group, "instance", key.name)
	i.end()
}

// stop closes all instances.
func (t *instances) stop() {
	t.mu.Lock()
	t.closed = true
	all := t.known
	t.known = map[instanceKey]*instance{}
	t.mu.Unlock()
	var each sync.WaitGroup
	for _, i := range all {
		i.expiry.Stop()
		each.Go(i.end)
	}
	each.Wait()
	t.ending.Wait()
}
