package remote

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLines(t *testing.T) {
	var b bytes.Buffer
	o := &output{to: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))}
	l := &lines{to: o}
	for _, piece := range []string{"half", " a line\r\n\n", `{"@message":"m","@level":"error","@timestamp":3,"b":1,"a":[2]}` + "\n", `{"@message":1}` + "\n{\n", strings.Repeat("x", longestLogged+3) + "\n"} {
		n, err := l.Write([]byte(piece))
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.Equal(t, "level=INFO msg=\"half a line\"\nlevel=ERROR msg=m a=[2] b=1\nlevel=INFO msg=\"{\\\"@message\\\":1}\"\nlevel=INFO msg={\nlevel=INFO msg="+
		strings.Repeat("x", longestLogged)+"\nlevel=INFO msg=xxx\n", b.String())
	require.Equal(t, "xxx", o.lastWords())
}

func TestLimiter(t *testing.T) {
	var l limiter
	now := time.Unix(1000, 0)
	passed := 0
	for range 1000 {
		if ok, _ := l.allow(now); ok {
			passed++
		}
	}
	require.Equal(t, logBurst, passed)
	ok, dropped := l.allow(now.Add(time.Second))
	require.True(t, ok)
	require.Equal(t, 1000-logBurst, dropped)
}
