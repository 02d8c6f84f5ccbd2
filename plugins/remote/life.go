package remote

import (
	"context"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// Life is one life of a plug-in that nobody watches: what runs is what was launched, and when it ends it has ended. It is for
// tools that look at plug-ins; brokers use [NewPartitioner], [NewCodec] and [NewStore].
type Life struct{ session *session }

// Launch starts an executable, shakes hands and gives it its options for a role. Whoever launches calls End.
func Launch(ctx context.Context, role string, o Options, log *slog.Logger) (*Life, error) {
	h := newHost(role, o, log)
	s, err := h.launch(ctx)
	if err != nil {
		return nil, h.wrap(err)
	}
	return &Life{s}, nil
}

// Connect is Launch without the options: the plug-in has said what it is, and nothing was asked of it.
func Connect(ctx context.Context, o Options, log *slog.Logger) (*Life, error) {
	h := newHost("", o, log)
	s, err := h.open(ctx, false)
	if err != nil {
		return nil, h.wrap(err)
	}
	return &Life{s}, nil
}

// Info is what the plug-in said of itself.
func (l *Life) Info() *pluginv1.InfoResponse { return l.session.info }

// Configured is what it said when it took its options.
func (l *Life) Configured() *pluginv1.ConfigureResponse { return l.session.configured }

// Conn is the connection to it.
func (l *Life) Conn() *grpc.ClientConn { return l.session.conn }

// Addr is where it listens.
func (l *Life) Addr() net.Addr {
	if c := l.session.client.ReattachConfig(); c != nil {
		return c.Addr
	}
	return nil
}

// PID is its process.
func (l *Life) PID() int { return l.session.process.pid() }

// Exited is closed when the process has ended.
func (l *Life) Exited() <-chan struct{} { return l.session.process.exited }

// End tells the plug-in to end, waits so long, kills it if need be, and says whether that wasn't needed.
func (l *Life) End(grace time.Duration) (byItself bool) {
	p := l.session.process
	_ = p.stdin.Close()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.exited:
		byItself = true
	case <-timer.C:
	}
	l.session.close(0)
	return byItself
}
