package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

// Keys that the handler of these tests knows.
const (
	keyEcho     int16 = 3   // answers with its body
	keyWait     int16 = 1   // waits for the context to end or for the body's channel, then answers "waited"
	keyLater    int16 = 0   // a pending reply, completed by the test
	keySilent   int16 = 100 // no response
	keyClose    int16 = 101 // closes
	keyPanic    int16 = 102
	keyViews    int16 = 103 // answers with views, see views
	keySoon     int16 = 98  // answers with its body, soon; a body "later", "silent", "close" or "panic" is as the key of that name
	keySmall    int16 = 97  // answers with nothing, soon
	keyVersions int16 = 18
)

const (
	waitLimit = time.Minute
	waitStep  = time.Millisecond
)

type testHandler struct {
	t       testing.TB
	release chan struct{} // lets a wait end
	waiting chan struct{} // told when a wait has begun

	mu        sync.Mutex
	later     []laterReply
	abandoned int
	views     []storage.View
	requests  []Request
}

type laterReply struct {
	p    *Pending
	resp *Response
}

func (h *testHandler) Refuse(key, version int16) error {
	return fmt.Errorf("no request with key %d and version %d", key, version)
}

func (h *testHandler) Form(key, version int16) Form {
	switch {
	case key == keyVersions && version > 4:
		return Unread
	case version < 0 || version > 9 || key > 103 || key < 0:
		return Refused
	case key == keyVersions && version >= 3:
		return FlexiblePlain
	case key == 7:
		return NoClient
	case version >= 9:
		return Flexible
	}
	return Plain
}

func (h *testHandler) Serve(ctx context.Context, r *Request) Reply {
	h.mu.Lock()
	if len(h.requests) == 10_000 {
		h.requests = h.requests[:0]
	}
	h.requests = append(h.requests, Request{Key: r.Key, Version: r.Version, CorrelationID: r.CorrelationID, ClientID: r.ClientID, Body: bytes.Clone(r.Body)})
	h.mu.Unlock()
	key, kinds := r.Key, map[string]int16{"later": keyLater, "silent": keySilent, "close": keyClose, "panic": keyPanic}
	if other, ok := kinds[string(r.Body)]; ok && key == keySoon {
		key = other
	}
	switch key {
	case keySoon:
		resp := r.NewResponse()
		resp.B = append(resp.B, r.Body...)
		return RespondSoon(resp)
	case keySmall:
		return RespondSoon(r.NewResponse())
	case keySilent:
		return Silence()
	case keyClose:
		return Close(errors.New("asked for"))
	case keyPanic:
		panic("asked for")
	case keyLater:
		resp := r.NewResponse()
		resp.B = append(resp.B, r.Body...)
		p := NewPending(func() {
			h.mu.Lock()
			h.abandoned++
			h.mu.Unlock()
		})
		h.mu.Lock()
		h.later = append(h.later, laterReply{p, resp})
		h.mu.Unlock()
		return Later(p)
	case keyWait:
		r.Conn.Waiting()
		defer r.Conn.Resume()
		h.waiting <- struct{}{}
		select {
		case <-ctx.Done():
		case <-h.release:
		}
		resp := r.NewResponse()
		resp.B = append(resp.B, "waited"...)
		return Respond(resp)
	case keyViews:
		resp := r.NewResponse()
		h.mu.Lock()
		views := h.views
		h.mu.Unlock()
		for _, v := range views {
			resp.B = append(resp.B, '<')
			resp.AddView(v)
		}
		resp.B = append(resp.B, r.Body...)
		return Respond(resp)
	}
	resp := r.NewResponse()
	resp.B = append(resp.B, r.Body...)
	return Respond(resp)
}

func (h *testHandler) complete(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.later[i].p.Complete(Respond(h.later[i].resp))
}

// awaitLater waits until n pending replies were given.
func (h *testHandler) awaitLater(n int) {
	require.Eventually(h.t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.later) >= n
	}, time.Minute, time.Millisecond)
}

func start(t testing.TB, change func(*Options)) (*Server, *testHandler) {
	h := &testHandler{t: t, release: make(chan struct{}), waiting: make(chan struct{}, 1000)}
	o := Options{Handler: h, Listeners: []Listener{{Name: "PLAINTEXT", Address: "127.0.0.1:0"}}}
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Listen(t.Context()))
	require.NoError(t, s.Start())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
		require.Zero(t, s.Connections())
	})
	return s, h
}
