package wire

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRepliesKeepTheOrderOfRequests pipelines requests of all kinds and completes the pending ones in any order and at any
// time: all are answered, in the order of the requests.
func TestRepliesKeepTheOrderOfRequests(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := &testHandler{t: t, release: make(chan struct{}), waiting: make(chan struct{}, 1000)}
		s, err := New(Options{Handler: h, Listeners: []Listener{{Name: "PLAINTEXT", Address: "127.0.0.1:0"}}})
		require.NoError(rt, err)
		require.NoError(rt, s.Listen(t.Context()))
		require.NoError(rt, s.Start())
		p := dial(t, s)
		defer p.Close()

		var want []int32
		open, laters := []int{}, 0
		var frames []byte // to be sent at once
		complete := func() {
			i := rapid.IntRange(0, len(open)-1).Draw(rt, "which")
			h.awaitLater(open[i] + 1)
			h.complete(open[i])
			open = append(open[:i], open[i+1:]...)
		}
		n := rapid.IntRange(1, 40).Draw(rt, "requests")
		for corr := range int32(n) {
			key := rapid.SampledFrom([]int16{keyEcho, keyLater, keyLater, keySilent, keySoon, keySoon, keySoon}).Draw(rt, "kind")
			frames = append(frames, frameOf(key, 1, corr, fmt.Sprint(corr))...)
			if corr == int32(n)-1 || rapid.Bool().Draw(rt, "send") {
				p.write(frames)
				frames = nil
			}
			switch key {
			case keyLater:
				open = append(open, laters)
				laters++
				fallthrough
			case keyEcho, keySoon:
				want = append(want, corr)
			}
			if len(open) > 0 && frames == nil && rapid.Bool().Draw(rt, "complete one") {
				complete()
			}
		}
		for len(open) > 0 {
			complete()
		}
		for _, corr := range want {
			got, body := p.read()
			require.Equal(rt, corr, got)
			require.Equal(rt, fmt.Sprint(corr), body)
		}
		require.Eventually(rt, func() bool { // the silent ones at the end are handled, too
			h.mu.Lock()
			defer h.mu.Unlock()
			return len(h.requests) == n
		}, waitLimit, waitStep)
		require.NoError(rt, s.Stop(t.Context()))
		p.SetReadDeadline(time.Now().Add(waitLimit))
		p.expectClosed()
	})
}
