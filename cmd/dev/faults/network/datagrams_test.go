package network

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// socket is a UDP socket that is closed at the end.
func socket(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func at(c *net.UDPConn) netip.AddrPort { return c.LocalAddr().(*net.UDPAddr).AddrPort() }

func TestDatagrams(t *testing.T) {
	n := New(func(_, _ netip.AddrPort) string { return "a" })
	t.Cleanup(n.Close)
	a, b, stranger := socket(t), socket(t), socket(t)
	g, err := n.GateBoth("b", at(b).String(), func(from netip.AddrPort) string {
		if from == at(a) {
			return "a"
		}
		return ""
	})
	require.NoError(t, err)
	to := netip.MustParseAddrPort(g.Addr())
	say := func(from *net.UDPConn, what string) {
		_, err := from.WriteToUDPAddrPort([]byte(what), to)
		require.NoError(t, err)
	}
	hears := func(what string) {
		t.Helper()
		require.NoError(t, b.SetReadDeadline(time.Now().Add(time.Minute)))
		buf := make([]byte, 100)
		n, err := b.Read(buf)
		require.NoError(t, err)
		require.Equal(t, what, string(buf[:n]))
	}
	say(a, "one")
	hears("one")
	n.CutOneWay("b", "a")
	say(a, "two")
	hears("two")
	n.CutOneWay("a", "b")
	say(a, "lost")
	say(stranger, "from a stranger") // behind it, so it would have come by now
	hears("from a stranger")
	n.Heal()
	n.Delay("a", "b", 100*time.Millisecond)
	begin := time.Now()
	say(a, "late")
	hears("late")
	require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond)
	n.Delay("a", "b", time.Hour)
	say(a, "never")
	n.Close() // must not hang
}

func TestBothAtOnePort(t *testing.T) {
	n := New(func(_, _ netip.AddrPort) string { return "a" })
	t.Cleanup(n.Close)
	g, err := n.GateBoth("b", echo(t), func(netip.AddrPort) string { return "a" })
	require.NoError(t, err)
	c := dial(t, g.Addr())
	c.say("one")
	c.hears("one")
	n.Cut("a", "b")
	c.say("two")
	c.hearsNothing()
	_, err = n.GateBoth("b", "nowhere", nil)
	require.Error(t, err)
}
