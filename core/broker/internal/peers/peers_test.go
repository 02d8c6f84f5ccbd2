package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/broker/internal/metadata"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// fake is a broker that answers as its test says.
type fake struct {
	t      *testing.T
	id     int32
	server *wire.Server
	addr   string

	mu     sync.Mutex
	answer func(ctx context.Context, req kmsg.Request) kmsg.Response // nil closes the connection
	max    map[int16]int16                                           // highest versions that it says it speaks
	seen   []kmsg.Request
}

// startFake starts one; addr is where, "" for any port.
func startFake(t *testing.T, id int32, addr string, answer func(ctx context.Context, req kmsg.Request) kmsg.Response) *fake {
	f := &fake{t: t, id: id, answer: answer, max: map[int16]int16{}}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	var err error
	f.server, err = wire.New(wire.Options{Handler: f, Listeners: []wire.Listener{{Name: "IN", Address: addr}}})
	require.NoError(t, err)
	require.NoError(t, f.server.Listen(t.Context()))
	require.NoError(t, f.server.Start())
	f.addr = f.server.Addr("IN").String()
	t.Cleanup(f.stop)
	return f
}

func (f *fake) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(f.t, f.server.Stop(ctx))
}

func (f *fake) Refuse(key, version int16) error {
	return fmt.Errorf("no request with key %d and version %d", key, version)
}

func (f *fake) Form(key, version int16) wire.Form {
	req := kmsg.RequestForKey(key)
	if req == nil {
		return wire.Refused
	}
	req.SetVersion(version)
	switch {
	case req.IsFlexible():
		return wire.Flexible
	default:
		return wire.Plain
	}
}

func (f *fake) Serve(ctx context.Context, w *wire.Request) wire.Reply {
	req := kmsg.RequestForKey(w.Key)
	req.SetVersion(w.Version)
	if err := wire.ReadBody(req, w.Body); err != nil {
		return wire.Close(err)
	}
	f.mu.Lock()
	var resp kmsg.Response
	if w.Key == kmsg.ApiVersions.Int16() {
		versions := kmsg.NewPtrApiVersionsResponse()
		for key, max := range f.max {
			versions.ApiKeys = append(versions.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: key, MaxVersion: max})
		}
		f.mu.Unlock()
		resp = versions
	} else {
		f.seen = append(f.seen, req)
		answer := f.answer
		f.mu.Unlock()
		w.Conn.Waiting()
		resp = answer(ctx, req)
		w.Conn.Resume()
	}
	if resp == nil {
		return wire.Close(errors.New("as the test wants"))
	}
	resp.SetVersion(w.Version)
	out := w.NewResponse()
	out.B = resp.AppendTo(out.B)
	return wire.Respond(out)
}

func (f *fake) requests() []kmsg.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]kmsg.Request(nil), f.seen...)
}

// accept answers anything without an error.
func accept(_ context.Context, req kmsg.Request) kmsg.Response { return req.ResponseKind() }

// cluster is what one broker, number 9, knows.
type cluster struct {
	t     *testing.T
	cache *metadata.Cache
	peers *Peers
	epoch int32
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, cache: metadata.NewCache(func() int64 { return -1 })}
	c.peers = New(Options{BrokerID: 9, Listener: "IN", Cluster: c.cache})
	return c
}

// live is an UpdateMetadata that lists brokers with their addresses.
func live(controller, epoch int32, addrs map[int32]string) *kmsg.UpdateMetadataRequest {
	req := kmsg.NewPtrUpdateMetadataRequest()
	req.Version, req.ControllerID, req.ControllerEpoch, req.BrokerEpoch = 8, controller, epoch, -1
	for id, addr := range addrs {
		host, port, _ := net.SplitHostPort(addr)
		n, _ := strconv.Atoi(port)
		b := kmsg.NewUpdateMetadataRequestLiveBroker()
		b.ID = id
		for _, name := range []string{"OUT", "IN"} {
			e := kmsg.NewUpdateMetadataRequestLiveBrokerEndpoint()
			e.ListenerName, e.Host, e.Port = name, host, int32(n)
			if name == "OUT" {
				e.Host, e.Port = "nowhere.invalid", 1
			}
			b.Endpoints = append(b.Endpoints, e)
		}
		req.LiveBrokers = append(req.LiveBrokers, b)
	}
	return req
}

// tell says who lives, and who is controller.
func (c *cluster) tell(controller int32, addrs map[int32]string) {
	c.epoch++
	require.Zero(c.t, c.cache.Update(live(controller, c.epoch, addrs)).ErrorCode)
}

func TestAddr(t *testing.T) {
	c := newCluster(t)
	_, err := c.peers.Addr(1)
	require.ErrorIs(t, err, ErrUnknownBroker)
	c.tell(-1, map[int32]string{1: "[::1]:1000"})
	addr, err := c.peers.Addr(1)
	require.NoError(t, err)
	require.Equal(t, "[::1]:1000", addr, "of the listener that brokers use")
	_, err = c.peers.Dial(t.Context(), 2)
	require.ErrorIs(t, err, ErrUnknownBroker)
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		v    kafka.ProtocolVersion
		want Versions
	}{
		{kafka.Protocol(2, 8, 1), Versions{5, 7, 3, 12, 6, 4, 1, 0}},
		{kafka.Protocol(3, 0, 1), Versions{5, 7, 3, 12, 7, 4, 1, 0}},
		{kafka.Protocol(3, 1, 0), Versions{5, 7, 3, 13, 7, 4, 1, 0}},
		{kafka.Protocol(3, 2, 0), Versions{6, 7, 3, 13, 7, 4, 1, 0}},
		{kafka.Protocol(3, 3, 3), Versions{6, 7, 3, 13, 7, 4, 1, 0}},
		{kafka.Protocol(3, 4, 0), Versions{7, 8, 4, 13, 7, 4, 1, 0}},
		{kafka.Protocol(3, 5, 0), Versions{7, 8, 4, 14, 8, 4, 1, 0}},
		{kafka.Protocol(3, 5, 2), Versions{7, 8, 4, 15, 8, 4, 1, 0}},
		{kafka.Protocol(3, 7, 3), Versions{7, 8, 4, 15, 8, 4, 1, 4}},
		{kafka.Protocol(3, 7, 4), Versions{7, 8, 4, 16, 8, 4, 1, 4}},
		{kafka.Protocol(3, 8, 0), Versions{7, 8, 4, 16, 8, 4, 1, 5}},
		{kafka.Protocol(3, 9, 0), Versions{7, 8, 4, 17, 9, 4, 1, 5}},
	} {
		require.Equal(t, tt.want, VersionsOf(tt.v), "%d", tt.v)
	}
}

func alter() *kmsg.AlterPartitionRequest {
	req := kmsg.NewPtrAlterPartitionRequest()
	req.Version, req.BrokerID = 3, 9
	return req
}

// TestChannel follows the controller from broker to broker.
func TestChannel(t *testing.T) {
	c := newCluster(t)
	ch := NewChannel(ChannelOptions{Peers: c.peers})
	defer ch.Close()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := ch.Do(short, alter())
	require.ErrorIs(t, err, context.DeadlineExceeded, "nobody is controller")

	code := func(code int16) func(context.Context, kmsg.Request) kmsg.Response {
		return func(_ context.Context, req kmsg.Request) kmsg.Response {
			resp := req.ResponseKind().(*kmsg.AlterPartitionResponse)
			resp.ErrorCode = code
			return resp
		}
	}
	one := startFake(t, 1, "", code(kerr.NotController.Code))
	two := startFake(t, 2, "", code(0))
	one.max[56], two.max[56] = 3, 1
	addrs := map[int32]string{1: one.addr, 2: two.addr}
	c.tell(1, addrs)
	go func() {
		for len(one.requests()) < 2 { // it is asked again while it is said to be controller
			time.Sleep(time.Millisecond)
		}
		c.tell(2, addrs)
	}()
	resp, err := ch.Do(t.Context(), alter())
	require.NoError(t, err)
	require.Zero(t, resp.(*kmsg.AlterPartitionResponse).ErrorCode)
	require.Equal(t, int16(1), two.requests()[0].GetVersion(), "the highest that both speak")
	require.Equal(t, int16(3), one.requests()[0].GetVersion())

	req := kmsg.NewPtrControlledShutdownRequest()
	_, err = ch.Do(t.Context(), req)
	require.ErrorIs(t, err, ErrUnsupportedVersion)
}

// TestChannelGivesUpAFrozenController has a request under way to a controller that doesn't answer when another is elected.
func TestChannelGivesUpAFrozenController(t *testing.T) {
	c := newCluster(t)
	frozen := startFake(t, 1, "", func(ctx context.Context, req kmsg.Request) kmsg.Response {
		<-ctx.Done()
		return nil
	})
	next := startFake(t, 2, "", accept)
	frozen.max[56], next.max[56] = 3, 3
	addrs := map[int32]string{1: frozen.addr, 2: next.addr}
	c.tell(1, addrs)
	ch := NewChannel(ChannelOptions{Peers: c.peers})
	defer ch.Close()
	go func() {
		for len(frozen.requests()) < 1 {
			time.Sleep(time.Millisecond)
		}
		c.tell(2, addrs)
	}()
	_, err := ch.Do(t.Context(), alter())
	require.NoError(t, err)
}

// TestChannelHere answers by function call while this broker is controller.
func TestChannelHere(t *testing.T) {
	c := newCluster(t)
	c.tell(9, nil)
	calls := 0
	ch := NewChannel(ChannelOptions{Peers: c.peers, Local: func(_ context.Context, req kmsg.Request) (kmsg.Response, error) {
		if calls++; calls == 1 {
			return nil, kerr.NotController // not yet
		}
		return req.ResponseKind(), nil
	}})
	_, err := ch.Do(t.Context(), alter())
	require.NoError(t, err)
	require.NoError(t, ch.Close())
	require.NoError(t, ch.Close())
	_, err = ch.Do(t.Context(), alter())
	require.ErrorIs(t, err, wire.ErrClientClosed)
}

// TestChannelCloseEndsRequests closes under a request.
func TestChannelCloseEndsRequests(t *testing.T) {
	c := newCluster(t)
	ch := NewChannel(ChannelOptions{Peers: c.peers})
	done := make(chan error, 1)
	go func() {
		_, err := ch.Do(context.Background(), alter())
		done <- err
	}()
	require.NoError(t, ch.Close())
	require.ErrorIs(t, <-done, wire.ErrClientClosed)
}

// TestAsker keeps connections, and makes new ones where a broker moved or restarted.
func TestAsker(t *testing.T) {
	c := newCluster(t)
	one := startFake(t, 1, "", accept)
	c.tell(1, map[int32]string{1: one.addr})
	a := NewAsker(c.peers)
	defer a.Close()
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = 1
	for range 3 {
		_, err := a.Do(t.Context(), 1, req)
		require.NoError(t, err)
	}
	require.Equal(t, 1, one.server.Connections())
	one.stop()
	again := startFake(t, 1, one.addr, accept)
	_, err := a.Do(t.Context(), 1, req)
	require.NoError(t, err, "the broker restarted, and the connection that was kept is closed")
	moved := startFake(t, 1, "", accept)
	c.tell(1, map[int32]string{1: moved.addr})
	_, err = a.Do(t.Context(), 1, req)
	require.NoError(t, err)
	require.Len(t, moved.requests(), 1)
	require.Len(t, again.requests(), 1)
	_, err = a.Do(t.Context(), 2, req)
	require.ErrorIs(t, err, ErrUnknownBroker)
	moved.stop()
	_, err = a.Do(t.Context(), 1, req)
	require.Error(t, err)
	require.NoError(t, a.Close())
	_, err = a.Do(t.Context(), 1, req)
	require.ErrorIs(t, err, wire.ErrClientClosed)
}
