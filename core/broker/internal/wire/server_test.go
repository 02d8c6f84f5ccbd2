package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/storage"
)

type peer struct {
	t testing.TB
	net.Conn
}

func dial(t testing.TB, s *Server) *peer {
	c, err := net.Dial("tcp", s.Addr("PLAINTEXT").String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	return &peer{t, c}
}

func frameOf(key, version int16, corr int32, body string) []byte {
	b := []byte{0, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(corr))
	b = append(b, 0, 1, 'x')
	if version >= 9 {
		b = append(b, 0)
	}
	b = append(b, body...)
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

func (p *peer) write(b []byte) {
	p.t.Helper()
	_, err := p.Write(b)
	require.NoError(p.t, err)
}

// read returns the correlation id and the rest of the next response.
func (p *peer) read() (int32, string) {
	p.t.Helper()
	var size [4]byte
	_, err := io.ReadFull(p, size[:])
	require.NoError(p.t, err)
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(p, b)
	require.NoError(p.t, err)
	return int32(binary.BigEndian.Uint32(b)), string(b[4:])
}

func (p *peer) expect(corr int32, body string) {
	p.t.Helper()
	c, b := p.read()
	require.Equal(p.t, corr, c)
	require.Equal(p.t, body, b)
}

func (p *peer) expectClosed() {
	p.t.Helper()
	n, err := p.Read(make([]byte, 1))
	require.Zero(p.t, n, "bytes where the connection should have ended")
	require.False(p.t, errors.Is(err, os.ErrDeadlineExceeded), "still open")
}

func TestOneRequestAfterAnother(t *testing.T) {
	s, _ := start(t, nil)
	p := dial(t, s)
	for i, body := range []string{"", "a", strings.Repeat("b", readAhead), strings.Repeat("c", 1<<20), "d"} {
		p.write(frameOf(keyEcho, 1, int32(i), body))
		p.expect(int32(i), body)
	}
	p.write(frameOf(keyEcho, 9, 7, "flexible"))
	p.expect(7, "\x00flexible")
}

func TestHeaders(t *testing.T) {
	s, h := start(t, nil)
	for _, tc := range []struct {
		name, frame string // hexadecimal, without the size
		closed      bool
		response    string
		clientID    string
	}{
		{name: "client id", frame: "0003 0001 00000005 0002 6162 ff", response: "00000005 ff", clientID: "ab"},
		{name: "empty client id", frame: "0003 0001 00000005 0000 ff", response: "00000005 ff"},
		{name: "null client id", frame: "0003 0001 00000005 ffff ff", response: "00000005 ff"},
		{name: "client id of length -2", frame: "0003 0001 00000005 fffe ff", response: "00000005 ff"},
		{name: "client id that is no UTF-8", frame: "0003 0001 00000005 0003 fffe80 ff", response: "00000005 ff", clientID: "\xff\xfe\x80"},
		{name: "client id longer than the frame", frame: "0003 0001 00000005 7fff 61", closed: true},
		{name: "flexible", frame: "0003 0009 00000005 0001 61 00 ff", response: "00000005 00 ff", clientID: "a"},
		{name: "flexible with tags", frame: "0003 0009 00000005 0001 61 02 6302aabb 0500 ff", response: "00000005 00 ff", clientID: "a"},
		{name: "tag longer than the frame", frame: "0003 0009 00000005 0001 61 01 6309aabb", closed: true},
		{name: "tags without end", frame: "0003 0009 00000005 0001 61 ffffffff0f", closed: true},
		{name: "tag count that never ends", frame: "0003 0009 00000005 0001 61 ffffffffffffffffff", closed: true},
		{name: "no client id field", frame: "0003 0001 00000005", closed: true},
		{name: "no correlation id", frame: "0003 0001", closed: true},
		{name: "two bytes", frame: "0003", closed: true},
		{name: "version 0 header", frame: "0007 0000 00000005 ff", response: "00000005 ff"},
		{name: "flexible request, plain response", frame: "0012 0003 00000005 0001 61 00 ff", response: "00000005 ff", clientID: "a"},
		{name: "version beyond: nothing is read", frame: "0012 0063 00000007 7fff", response: "00000007"},
		{name: "unknown key", frame: "01f4 0000 00000005 0001 61", closed: true},
		{name: "negative key", frame: "ffff 0000 00000005 0001 61", closed: true},
		{name: "unknown version", frame: "0003 000a 00000005 0001 61", closed: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := dial(t, s)
			payload, err := hex.DecodeString(strings.ReplaceAll(tc.frame, " ", ""))
			require.NoError(t, err)
			p.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))), payload...))
			if tc.closed {
				p.expectClosed()
				return
			}
			corr, rest := p.read()
			want, err := hex.DecodeString(strings.ReplaceAll(tc.response, " ", ""))
			require.NoError(t, err)
			require.Equal(t, want, append(binary.BigEndian.AppendUint32(nil, uint32(corr)), rest...))
			h.mu.Lock()
			require.Equal(t, tc.clientID, h.requests[len(h.requests)-1].ClientID)
			h.mu.Unlock()
			p.write(frameOf(keyEcho, 1, 8, "usable"))
			p.expect(8, "usable")
		})
	}
}

func TestBadSizes(t *testing.T) {
	s, _ := start(t, nil)
	healthy := dial(t, s)
	for _, prefix := range []string{"47455420", "7fffffff", "ffffffff", "80000000", "00000000", "06400001"} {
		t.Run(prefix, func(t *testing.T) {
			p := dial(t, s)
			b, err := hex.DecodeString(prefix)
			require.NoError(t, err)
			p.write(append(b, "garbage"...))
			p.expectClosed()
			healthy.write(frameOf(keyEcho, 1, 1, "well"))
			healthy.expect(1, "well")
		})
	}
}

func TestMemoryGrowsWithBytesReceived(t *testing.T) {
	s, _ := start(t, nil)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := heap()
	const n = 400
	for i := range n {
		p := dial(t, s)
		switch i % 4 {
		case 0: // three bytes of a size
			p.write([]byte{0x06, 0x40, 0x00})
		case 1: // a promise of 100 MiB
			p.write([]byte{0x06, 0x40, 0x00, 0x00})
		case 2: // the same, and a byte of it
			p.write([]byte{0x06, 0x40, 0x00, 0x00, 0x00})
		}
	}
	require.Eventually(t, func() bool { return s.Connections() == n }, time.Minute, time.Millisecond)
	time.Sleep(50 * time.Millisecond)
	perConn := (int64(heap()) - int64(before)) / n
	t.Logf("%d bytes per connection, the client's end included", perConn)
	require.Less(t, perConn, int64(24<<10))
	p := dial(t, s)
	p.write(frameOf(keyEcho, 1, 1, "well"))
	p.expect(1, "well")
}

func TestByteByByte(t *testing.T) {
	s, _ := start(t, nil)
	p := dial(t, s)
	for _, b := range frameOf(keyEcho, 1, 1, "slow") {
		p.write([]byte{b})
		time.Sleep(time.Millisecond)
	}
	p.expect(1, "slow")
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	s, h := start(t, nil)
	p := dial(t, s)
	// 1 and 3 are pending, 2 and 4 are ready at once; 5 waits.
	p.write(bytes.Join([][]byte{frameOf(keyLater, 1, 1, "one"), frameOf(keyEcho, 1, 2, "two"), frameOf(keyLater, 1, 3, "three"),
		frameOf(keySilent, 1, 33, ""), frameOf(keyEcho, 1, 4, "four"), frameOf(keyWait, 1, 5, "")}, nil))
	<-h.waiting // so all before it were handled, none answered
	p.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	_, err := p.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "an answer overtook the first request's")
	p.SetReadDeadline(time.Now().Add(time.Minute))
	h.complete(1) // the later one first
	h.complete(0)
	p.expect(1, "one")
	p.expect(2, "two")
	p.expect(3, "three")
	p.expect(4, "four")
	close(h.release)
	p.expect(5, "waited")
	p.write(frameOf(keyEcho, 1, 6, "and on"))
	p.expect(6, "and on")
}

func TestManyPendingRepliesAreBounded(t *testing.T) {
	s, h := start(t, nil)
	p := dial(t, s)
	var all []byte
	const n = 3 * maxPending
	for i := range n {
		all = append(all, frameOf(keyLater, 1, int32(i), "x")...)
	}
	p.write(all)
	h.awaitLater(maxPending)
	time.Sleep(20 * time.Millisecond)
	h.mu.Lock()
	require.LessOrEqual(t, len(h.later), maxPending+2)
	h.mu.Unlock()
	for i := range n {
		h.awaitLater(i + 1)
		h.complete(i)
		p.expect(int32(i), "x")
	}
}

func TestCloseFlushesWhatWasAskedBefore(t *testing.T) {
	s, h := start(t, nil)
	p := dial(t, s)
	p.write(append(frameOf(keyLater, 1, 1, "one"), append(frameOf(keyClose, 1, 2, ""), frameOf(keyEcho, 1, 3, "")...)...))
	h.awaitLater(1)
	h.complete(0)
	p.expect(1, "one")
	p.expectClosed()
}

func TestPanicClosesOneConnection(t *testing.T) {
	s, _ := start(t, nil)
	other, p := dial(t, s), dial(t, s)
	p.write(frameOf(keyPanic, 1, 1, ""))
	p.expectClosed()
	other.write(frameOf(keyEcho, 1, 1, "well"))
	other.expect(1, "well")
}

func TestPendingIsAbandonedWhenTheClientGoes(t *testing.T) {
	s, h := start(t, nil)
	p := dial(t, s)
	p.write(append(frameOf(keyLater, 1, 1, "one"), frameOf(keyLater, 1, 2, "two")...))
	h.awaitLater(2)
	p.Close()
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.abandoned == 2
	}, time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { return s.Connections() == 0 }, time.Minute, time.Millisecond)
	h.complete(0) // late, and harmless
	h.complete(1)
}

func TestAWaitingHandlerNoticesThatTheClientIsGone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("a stream cannot be looked at there")
		return
	}
	s, h := start(t, nil)
	for range 2 { // the second time the timer is used again
		p := dial(t, s)
		p.write(frameOf(keyWait, 1, 1, ""))
		<-h.waiting
		time.Sleep(watchAfter + 100*time.Millisecond)
		require.Equal(t, 1, s.Connections())
		p.Close()
		require.Eventually(t, func() bool { return s.Connections() == 0 }, time.Minute, time.Millisecond)
	}
}

func TestAWaitThatIsWatchedGoesOnAfterwards(t *testing.T) {
	s, h := start(t, nil)
	p := dial(t, s)
	for i := range 2 {
		p.write(frameOf(keyWait, 1, 1, ""))
		<-h.waiting
		time.Sleep(watchAfter + 100*time.Millisecond)
		if i == 1 { // what the client sends meanwhile is not lost
			p.write(frameOf(keyEcho, 1, 2, "pipelined"))
			time.Sleep(20 * time.Millisecond)
		}
		h.release <- struct{}{}
		p.expect(1, "waited")
	}
	p.expect(2, "pipelined")
	p.write(frameOf(keyEcho, 1, 3, "more"))
	p.expect(3, "more")
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	s, h := start(t, func(o *Options) { o.MaxIdle = 200 * time.Millisecond })
	silent, half, busy, waits := dial(t, s), dial(t, s), dial(t, s), dial(t, s)
	half.write([]byte{0, 0, 1})
	waits.write(frameOf(keyWait, 1, 1, ""))
	<-h.waiting
	for i := range 12 {
		busy.write(frameOf(keyEcho, 1, int32(i), "x"))
		busy.expect(int32(i), "x")
		time.Sleep(50 * time.Millisecond)
	}
	silent.expectClosed()
	half.expectClosed()
	close(h.release)
	waits.expect(1, "waited")
}

func TestAStuckReaderIsClosed(t *testing.T) {
	s, h := start(t, func(o *Options) { o.MaxIdle = 200 * time.Millisecond })
	v := newView(32<<20, false)
	h.mu.Lock()
	h.views = []storage.View{v}
	h.mu.Unlock()
	p := dial(t, s)
	p.write(frameOf(keyViews, 1, 1, ""))
	require.Eventually(t, func() bool { return v.released.Load() == 1 }, time.Minute, 5*time.Millisecond)
	require.Eventually(t, func() bool { return s.Connections() == 0 }, time.Minute, time.Millisecond)
}

func TestLimits(t *testing.T) {
	t.Run("per address", func(t *testing.T) {
		s, _ := start(t, func(o *Options) { o.MaxConnectionsPerIP = 2 })
		a, b := dial(t, s), dial(t, s)
		a.write(frameOf(keyEcho, 1, 1, "a"))
		a.expect(1, "a")
		b.write(frameOf(keyEcho, 1, 1, "b"))
		b.expect(1, "b")
		dial(t, s).expectClosed()
		a.Close()
		require.Eventually(t, func() bool { return s.Connections() == 1 }, time.Minute, time.Millisecond)
		c := dial(t, s)
		c.write(frameOf(keyEcho, 1, 1, "c"))
		c.expect(1, "c")
	})
	t.Run("exception", func(t *testing.T) {
		s, _ := start(t, func(o *Options) { o.PerIP = map[string]int{"127.0.0.1": 0} })
		dial(t, s).expectClosed()
	})
	t.Run("changed while it runs", func(t *testing.T) {
		s, _ := start(t, func(*Options) {})
		a := dial(t, s)
		a.write(frameOf(keyEcho, 1, 1, "a"))
		a.expect(1, "a")
		s.SetLimits(Limits{MaxConnectionsPerIP: 1})
		dial(t, s).expectClosed()
		a.write(frameOf(keyEcho, 1, 2, "a"))
		a.expect(2, "a")
		s.SetLimits(Limits{})
		b := dial(t, s)
		b.write(frameOf(keyEcho, 1, 1, "b"))
		b.expect(1, "b")
	})
	t.Run("in all, one idle", func(t *testing.T) {
		s, h := start(t, func(o *Options) { o.MaxConnections = 2 })
		idle, waits := dial(t, s), dial(t, s)
		idle.write(frameOf(keyEcho, 1, 1, "a"))
		idle.expect(1, "a")
		waits.write(frameOf(keyWait, 1, 1, ""))
		<-h.waiting
		c := dial(t, s)
		c.write(frameOf(keyEcho, 1, 1, "c"))
		c.expect(1, "c")
		idle.expectClosed()
		close(h.release)
		waits.expect(1, "waited")
	})
	t.Run("in all, none idle", func(t *testing.T) {
		s, h := start(t, func(o *Options) { o.MaxConnections = 1 })
		waits := dial(t, s)
		waits.write(frameOf(keyWait, 1, 1, ""))
		<-h.waiting
		dial(t, s).expectClosed()
		close(h.release)
		waits.expect(1, "waited")
	})
}

// However many connections come, and though nobody limits them, some files can still be opened.
func TestConnectionsLeaveFilesToOthers(t *testing.T) {
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	next := int(f.Fd())
	require.NoError(t, f.Close())
	s, h := start(t, func(o *Options) { o.MaxDescriptor = next + 20 })
	waits := dial(t, s)
	waits.write(frameOf(keyWait, 1, 1, ""))
	<-h.waiting
	for range 40 {
		c := dial(t, s)
		c.write(frameOf(keyEcho, 1, 1, "c"))
		_, _ = c.Read(make([]byte, 100)) // an answer, or the end
	}
	f, err = os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.LessOrEqual(t, int(f.Fd()), next+70, "40 are the clients' ends")
	require.LessOrEqual(t, s.Connections(), 22)
	close(h.release)
	waits.expect(1, "waited")
}

func TestStopDrains(t *testing.T) {
	s, h := start(t, nil)
	idle, waits, later := dial(t, s), dial(t, s), dial(t, s)
	idle.write(frameOf(keyEcho, 1, 1, "x"))
	idle.expect(1, "x")
	waits.write(frameOf(keyWait, 1, 1, ""))
	<-h.waiting
	later.write(frameOf(keyLater, 1, 1, "later"))
	h.awaitLater(1)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	idle.expectClosed()
	waits.expect(1, "waited")
	waits.expectClosed()
	_, err := net.Dial("tcp", s.Addr("PLAINTEXT").String())
	require.Error(t, err)
	select {
	case <-stopped:
		t.Fatal("stopped before the last answer")
	default:
	}
	h.complete(0)
	later.expect(1, "later")
	later.expectClosed()
	require.NoError(t, <-stopped)
}

func TestStopGivesUpWithItsContext(t *testing.T) {
	s, h := start(t, nil)
	p := dial(t, s)
	p.write(frameOf(keyLater, 1, 1, "later"))
	h.awaitLater(1)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Stop(ctx), context.DeadlineExceeded)
	p.expectClosed()
}

func TestLifeCycle(t *testing.T) {
	h := &testHandler{t: t}
	_, err := New(Options{Handler: h})
	require.Error(t, err)
	_, err = New(Options{Listeners: []Listener{{}}})
	require.Error(t, err)

	s, err := New(Options{Handler: h, Listeners: []Listener{{Name: "A", Address: "127.0.0.1:0"}, {Name: "B", Address: "256.0.0.1:1"}}})
	require.NoError(t, err)
	require.Error(t, s.Start())
	require.ErrorContains(t, s.Listen(t.Context()), "listener B")
	require.Nil(t, s.Addr("A"), "an address stays bound after a failed Listen")
	require.NoError(t, s.Stop(t.Context()))
	require.NoError(t, s.Stop(t.Context()))
	require.Error(t, s.Listen(t.Context()))

	s, err = New(Options{Handler: h, Listeners: []Listener{{Name: "A", Address: "127.0.0.1:0"}}})
	require.NoError(t, err)
	require.NoError(t, s.Listen(t.Context()))
	require.NotNil(t, s.Addr("A"))
	require.NoError(t, s.Stop(t.Context()), "bound and never started")
}
