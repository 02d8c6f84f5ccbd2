package peers

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// pushes is a pusher whose deliveries are kept.
type pushes struct {
	*Pusher
	mu        sync.Mutex
	delivered []int64 // the broker epochs
	own       int
}

func newPushes(t *testing.T, v kafka.ProtocolVersion) *pushes {
	p := &pushes{}
	p.Pusher = NewPusher(PusherOptions{Peers: newCluster(t).peers, Versions: VersionsOf(v),
		Own: func(req kmsg.Request) kmsg.Response { p.own++; return req.ResponseKind() },
		Deliver: func(_ int32, epoch int64, _ kmsg.Request, _ kmsg.Response) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.delivered = append(p.delivered, epoch)
		}})
	t.Cleanup(p.Close)
	return p
}

func (p *pushes) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.delivered)
}

func stopReplica(n int32) *kmsg.StopReplicaRequest {
	req := kmsg.NewPtrStopReplicaRequest()
	req.ControllerEpoch = n
	return req
}

// TestPusherOrder sends to each broker in order, and brings answers.
func TestPusherOrder(t *testing.T) {
	p := newPushes(t, kafka.Protocol(3, 2, 0))
	f := startFake(t, 1, "", accept)
	require.NotNil(t, p.Push(9, 1, live(9, 1, map[int32]string{1: f.addr, 9: "127.0.0.1:1"})), "this broker answers at once")
	require.Equal(t, 1, p.own)
	const n = 100
	for i := range int32(n) {
		require.Nil(t, p.Push(1, 7, stopReplica(i)))
	}
	require.Nil(t, p.Push(1, 7, live(9, 1, map[int32]string{1: f.addr})))
	require.Nil(t, p.Push(1, 7, kmsg.NewPtrLeaderAndISRRequest()))
	require.Eventually(t, func() bool { return p.count() == n+2 }, patience, time.Millisecond)
	seen := f.requests()
	for i := range int32(n) {
		require.Equal(t, i, seen[i].(*kmsg.StopReplicaRequest).ControllerEpoch)
		require.Equal(t, int16(3), seen[i].GetVersion())
	}
	require.Equal(t, int16(7), seen[n].GetVersion(), "UpdateMetadata of protocol 3.2")
	require.Equal(t, int16(6), seen[n+1].GetVersion(), "LeaderAndIsr of protocol 3.2")
	require.Equal(t, 1, f.server.Connections())
}

// TestPusherTriesAgain has a broker that restarts at the same address, and one that hangs up: nothing is lost, order stays.
func TestPusherTriesAgain(t *testing.T) {
	p := newPushes(t, kafka.Protocol(3, 9, 0))
	calls := 0
	f := startFake(t, 1, "", func(_ context.Context, req kmsg.Request) kmsg.Response {
		if calls++; calls == 1 {
			return nil
		}
		return req.ResponseKind()
	})
	p.Push(1, 7, live(9, 1, map[int32]string{1: f.addr}))
	require.Eventually(t, func() bool { return p.count() == 1 }, patience, time.Millisecond)
	require.Len(t, f.requests(), 2, "sent again after the connection was closed")
	f.stop()
	p.Push(1, 7, stopReplica(1))
	p.Push(1, 7, stopReplica(2))
	again := startFake(t, 1, f.addr, accept)
	require.Eventually(t, func() bool { return p.count() == 3 }, patience, time.Millisecond)
	require.Equal(t, int32(1), again.requests()[0].(*kmsg.StopReplicaRequest).ControllerEpoch)
	require.Equal(t, int32(2), again.requests()[1].(*kmsg.StopReplicaRequest).ControllerEpoch)
}

// TestPusherForgets gives up what is for an earlier registration, for a broker that is gone, and for a term that is over.
func TestPusherForgets(t *testing.T) {
	p := newPushes(t, kafka.Protocol(3, 9, 0))
	dead := startFake(t, 1, "", accept)
	dead.stop()
	alive := map[int32]string{1: dead.addr, 9: "127.0.0.1:1"}
	left := func() int {
		p.Pusher.mu.Lock()
		defer p.Pusher.mu.Unlock()
		return len(p.queues)
	}
	p.Push(9, 1, live(9, 1, alive))
	p.Push(1, 7, stopReplica(1))
	require.Equal(t, 1, left())
	p.Push(9, 1, live(9, 1, map[int32]string{9: "127.0.0.1:1"}))
	require.Zero(t, left(), "the broker is gone")

	p.Push(9, 1, live(9, 1, alive))
	p.Push(1, 7, stopReplica(1))
	p.Push(1, 8, stopReplica(2))
	p.Push(1, 7, stopReplica(3))
	back := startFake(t, 1, dead.addr, accept)
	require.Eventually(t, func() bool { return p.count() == 1 }, patience, time.Millisecond)
	require.Equal(t, []int64{8}, p.delivered, "only what is for the last registration")
	require.Len(t, back.requests(), 1)

	back.stop()
	p.Push(1, 8, stopReplica(4))
	p.Drop()
	require.Zero(t, left())
	p.Push(1, 8, stopReplica(5))
	last := startFake(t, 1, dead.addr, accept)
	require.Eventually(t, func() bool { return p.count() == 2 }, patience, time.Millisecond)
	require.Equal(t, int32(5), last.requests()[0].(*kmsg.StopReplicaRequest).ControllerEpoch, "what the next term says")
	p.Close()
	require.Nil(t, p.Push(1, 8, stopReplica(6)))
	require.Zero(t, left())
}

// TestPusherGivesUpOnASilentBroker tells a broker again that takes a request and doesn't answer.
func TestPusherGivesUpOnASilentBroker(t *testing.T) {
	first := make(chan struct{}, 1)
	f := startFake(t, 1, "", func(ctx context.Context, req kmsg.Request) kmsg.Response {
		select {
		case first <- struct{}{}:
			<-ctx.Done()
			return nil
		default:
			return req.ResponseKind()
		}
	})
	p := newPushes(t, kafka.Protocol(3, 9, 0))
	p.o.RequestTimeout = 20 * time.Millisecond
	p.Push(1, 7, live(9, 1, map[int32]string{1: f.addr}))
	require.Eventually(t, func() bool { return p.count() >= 1 }, patience, time.Millisecond)
}
