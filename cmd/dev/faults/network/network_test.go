package network

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends lines back.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

type end struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, addr string) *end {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return &end{t, c, bufio.NewReader(c)}
}

func (e *end) say(line string) {
	e.t.Helper()
	_, err := fmt.Fprintln(e, line)
	require.NoError(e.t, err)
}

func (e *end) hears(line string) {
	e.t.Helper()
	require.NoError(e.t, e.SetReadDeadline(time.Now().Add(30*time.Second)))
	got, err := e.in.ReadString('\n')
	require.NoError(e.t, err)
	require.Equal(e.t, line+"\n", got)
}

func (e *end) hearsNothing() {
	e.t.Helper()
	require.NoError(e.t, e.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := e.in.ReadByte()
	require.ErrorIs(e.t, err, os.ErrDeadlineExceeded)
}

// wire is a network with a gate from a to b, where b sends lines back.
func wire(t *testing.T) (*Network, *Gate) {
	t.Helper()
	n := New(nil)
	t.Cleanup(n.Close)
	g, err := n.Gate("a", "b", echo(t))
	require.NoError(t, err)
	return n, g
}

func TestCutAndHeal(t *testing.T) {
	for name, cut := range map[string]func(n *Network){
		"both ways": func(n *Network) { n.Cut("a", "b") },
		"there":     func(n *Network) { n.CutOneWay("a", "b") },
		"back":      func(n *Network) { n.CutOneWay("b", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			n, g := wire(t)
			c := dial(t, g.Addr())
			c.say("one")
			c.hears("one")
			cut(n)
			c.say("two")
			c.hearsNothing()
			late := dial(t, g.Addr()) // hangs, and isn't refused
			late.say("late")
			late.hearsNothing()
			n.Heal()
			c.hears("two")
			late.hears("late")
			c.say("three")
			c.hears("three")
		})
	}
}

func TestOthersAreNotCut(t *testing.T) {
	n, g := wire(t)
	n.Cut("a", "c")
	n.Cut("b", "c")
	c := dial(t, g.Addr())
	c.say("one")
	c.hears("one")
}

func TestDelay(t *testing.T) {
	n, g := wire(t)
	n.Delay("a", "b", 50*time.Millisecond)
	n.Delay("b", "a", 50*time.Millisecond)
	c := dial(t, g.Addr())
	begin := time.Now()
	c.say("one")
	c.hears("one")
	require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond)
}

func TestTheEndIsToldWhenTheWireIsWhole(t *testing.T) {
	n, g := wire(t)
	c := dial(t, g.Addr())
	c.say("one")
	c.hears("one")
	n.CutOneWay("b", "a")
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	c.hearsNothing()
	n.Heal()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err := c.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

func TestNobodyListens(t *testing.T) {
	n := New(nil)
	t.Cleanup(n.Close)
	g, err := n.Gate("a", "b", "127.0.0.1:1")
	require.NoError(t, err)
	c, err := net.Dial("tcp", g.Addr())
	if err == nil { // the reset may come so soon that dialing fails
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

func TestCloseEndsWhatIsCut(t *testing.T) {
	n, g := wire(t)
	c := dial(t, g.Addr())
	n.Cut("a", "b")
	c.say("one")
	dial(t, g.Addr())
	n.Close() // must not hang
}

func TestProcesses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c := dial(t, l.Addr().String())
	want := "me"
	if runtime.GOOS != "linux" {
		want = ""
	}
	owner := Processes(func() map[int]string { return map[int]string{os.Getpid(): "me"} })
	require.Equal(t, want, owner(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())))
	require.Empty(t, owner(netip.MustParseAddrPort("127.0.0.1:1"), addrPort(c.RemoteAddr())))
	nobody := Processes(func() map[int]string { return nil })
	require.Empty(t, nobody(addrPort(c.LocalAddr()), addrPort(c.RemoteAddr())))
}
