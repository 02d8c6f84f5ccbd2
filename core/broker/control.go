package broker

import (
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/api"
	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
)

// control takes the controller's word, whether that is another broker or this one.
type control struct {
	b *Broker

	mu    sync.Mutex
	epoch int32         // the highest that a controller had
	told  chan struct{} // closed, and replaced, when something was told
}

var _ api.Control = (*control)(nil)

func newControl(b *Broker) *control { return &control{b: b, told: make(chan struct{})} }

// stale says whether a controller has a successor that this broker has heard of. The rooms check that too; but a controller
// that has told one of them something is to be known to all.
func (c *control) stale(controllerEpoch int32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if controllerEpoch < c.epoch {
		return true
	}
	c.epoch = controllerEpoch
	return false
}

// tell wakes who waits for news.
func (c *control) tell() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.told)
	c.told = make(chan struct{})
}

// news gives what is closed when something is told from now on.
func (c *control) news() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// UpdateMetadata takes in what the cluster looks like. What groups committed for a topic that is gone goes, too, so that a new
// topic of that name isn't read from where the old one was left.
func (c *control) UpdateMetadata(req *kmsg.UpdateMetadataRequest) *kmsg.UpdateMetadataResponse {
	if c.stale(req.ControllerEpoch) {
		resp := req.ResponseKind().(*kmsg.UpdateMetadataResponse)
		resp.ErrorCode = kerr.StaleControllerEpoch.Code
		return resp
	}
	defer c.tell()
	before := c.b.cache.Snapshot()
	resp := c.b.cache.Update(req)
	after := c.b.cache.Snapshot()
	c.b.noteCluster(before, after)
	for _, name := range after.Gone(before) {
		c.b.groups.TopicDeleted(name)
	}
	c.b.coordinateGroups()
	sameID := func(a, b metadata.Broker) bool { return a.ID == b.ID }
	if !slices.EqualFunc(before.Brokers(), after.Brokers(), sameID) {
		c.b.partitions.CheckISR()
	}
	return resp
}

// LeaderAndISR makes this broker leader or follower of its replicas.
func (c *control) LeaderAndISR(req *kmsg.LeaderAndISRRequest) *kmsg.LeaderAndISRResponse {
	if c.stale(req.ControllerEpoch) {
		resp := req.ResponseKind().(*kmsg.LeaderAndISRResponse)
		resp.ErrorCode = kerr.StaleControllerEpoch.Code
		return resp
	}
	defer c.tell()
	return c.b.partitions.ApplyLeaderAndISR(req)
}

// StopReplica takes replicas out of service.
func (c *control) StopReplica(req *kmsg.StopReplicaRequest) *kmsg.StopReplicaResponse {
	if c.stale(req.ControllerEpoch) {
		resp := req.ResponseKind().(*kmsg.StopReplicaResponse)
		resp.ErrorCode = kerr.StaleControllerEpoch.Code
		return resp
	}
	defer c.tell()
	return c.b.partitions.StopReplicas(req)
}

// own answers what the controller on this broker has to say to this broker.
func (c *control) own(req kmsg.Request) kmsg.Response {
	switch req := req.(type) {
	case *kmsg.UpdateMetadataRequest:
		return c.UpdateMetadata(req)
	case *kmsg.LeaderAndISRRequest:
		return c.LeaderAndISR(req)
	case *kmsg.StopReplicaRequest:
		return c.StopReplica(req)
	}
	return nil
}
