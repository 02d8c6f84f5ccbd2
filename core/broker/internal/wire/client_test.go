package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// broker answers ApiVersions and Metadata requests, and DeleteTopics when release is closed.
type broker struct{ release chan struct{} }

func (b *broker) Refuse(key, version int16) error {
	return fmt.Errorf("no request with key %d and version %d", key, version)
}

func (b *broker) Form(key, version int16) Form {
	req := kmsg.RequestForKey(key)
	if req == nil {
		return Refused
	}
	req.SetVersion(version)
	switch {
	case key == int16(kmsg.ControlledShutdown) && version == 0:
		return NoClient
	case key == int16(kmsg.ApiVersions) && version >= 3:
		return FlexiblePlain
	case req.IsFlexible():
		return Flexible
	}
	return Plain
}

func (b *broker) Serve(ctx context.Context, r *Request) Reply {
	req := kmsg.RequestForKey(r.Key)
	req.SetVersion(r.Version)
	if err := req.ReadFrom(r.Body); err != nil {
		return Close(err)
	}
	resp := req.ResponseKind()
	resp.SetVersion(r.Version)
	switch resp := resp.(type) {
	case *kmsg.MetadataResponse:
		for _, t := range req.(*kmsg.MetadataRequest).Topics {
			out := kmsg.NewMetadataResponseTopic()
			out.Topic = t.Topic
			resp.Topics = append(resp.Topics, out)
		}
	case *kmsg.ControlledShutdownResponse:
		resp.ErrorCode = 41
	case *kmsg.DeleteTopicsResponse:
		select {
		case <-b.release:
		case <-ctx.Done():
		}
	}
	out := r.NewResponse()
	out.B = resp.AppendTo(out.B)
	return Respond(out)
}

func dialBroker(t *testing.T) (*Client, *broker) {
	b := &broker{release: make(chan struct{})}
	s, _ := start(t, func(o *Options) { o.Handler = b })
	c, err := Dial(t.Context(), s.Addr("PLAINTEXT").String(), ClientOptions{ClientID: "broker-1"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c, b
}

func metadataFor(version int16, topic string) *kmsg.MetadataRequest {
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.Topics = version, []kmsg.MetadataRequestTopic{{Topic: &topic}}
	return req
}

func TestClient(t *testing.T) {
	c, _ := dialBroker(t)
	for _, topic := range []string{"a", strings.Repeat("b", 30_000), ""} {
		for _, version := range []int16{1, 9, 12} {
			resp, err := c.Do(t.Context(), metadataFor(version, topic))
			require.NoError(t, err)
			require.Equal(t, topic, *resp.(*kmsg.MetadataResponse).Topics[0].Topic)
		}
	}
	for _, version := range []int16{0, 3} {
		req := kmsg.NewPtrApiVersionsRequest()
		req.Version = version
		_, err := c.Do(t.Context(), req)
		require.NoError(t, err)
	}
	for _, version := range []int16{0, 1, 3} {
		req := kmsg.NewPtrControlledShutdownRequest()
		req.Version = version
		resp, err := c.Do(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, int16(41), resp.(*kmsg.ControlledShutdownResponse).ErrorCode)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if _, err := c.Do(t.Context(), metadataFor(9, "shared")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestClientGivesUp(t *testing.T) {
	c, b := dialBroker(t)
	defer close(b.release)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	_, err := c.Do(ctx, kmsg.NewPtrDeleteTopicsRequest())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = c.Do(t.Context(), metadataFor(1, "x"))
	require.ErrorIs(t, err, ErrClientClosed)
}

func TestClientOfAClosedContextSendsNothing(t *testing.T) {
	c, _ := dialBroker(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.Do(ctx, metadataFor(1, "x"))
	require.ErrorIs(t, err, context.Canceled)
	_, err = c.Do(t.Context(), metadataFor(1, "x"))
	require.NoError(t, err, "the connection is as good as before")
}

func TestClientRefusesBadResponses(t *testing.T) {
	for name, answer := range map[string]func(request []byte) []byte{
		"nothing":                func([]byte) []byte { return nil },
		"another correlation":    func([]byte) []byte { return []byte{0, 0, 0, 8, 9, 9, 9, 9, 0, 0, 0, 0} },
		"too large":              func([]byte) []byte { return []byte{0x7f, 0, 0, 0} },
		"no correlation":         func([]byte) []byte { return []byte{0, 0, 0, 1, 0} },
		"a body that ends early": func(r []byte) []byte { return append([]byte{0, 0, 0, 6}, append(r[8:12:12], 0, 0)...) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				var size [4]byte
				io.ReadFull(nc, size[:])
				b := make([]byte, binary.BigEndian.Uint32(size[:]))
				io.ReadFull(nc, b)
				nc.Write(answer(append(size[:], b...)))
			}()
			c, err := Dial(t.Context(), l.Addr().String(), ClientOptions{})
			require.NoError(t, err)
			_, err = c.Do(t.Context(), metadataFor(1, "x"))
			require.Error(t, err)
			_, err = c.Do(t.Context(), metadataFor(1, "x"))
			require.ErrorIs(t, err, ErrClientClosed)
			<-done
		})
	}
	_, err := Dial(t.Context(), "127.0.0.1:1", ClientOptions{})
	require.Error(t, err)
}
