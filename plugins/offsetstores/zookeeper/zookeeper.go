package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are the options of the plug-in.
type Options struct {
	Connect        string          `yaml:"connect" doc:"ZooKeeper's servers, HOST:PORT,HOST:PORT,…, and maybe a /chroot: where the old consumers look"`
	SessionTimeout time.Duration   `yaml:"session_timeout" doc:"how long ZooKeeper waits for signs of life"`
	MaxBatch       config.ByteSize `yaml:"max_batch" doc:"the largest transaction: below jute.maxbuffer of the servers. An offset takes some 300 bytes"`
}

func defaults() Options {
	return Options{Connect: "127.0.0.1:2181", SessionTimeout: 18 * time.Second, MaxBatch: 1_000_000}
}

// largestBatch is what the client's buffer holds, with something to spare.
const largestBatch = 1_400_000

// Validate checks the options.
func (o Options) Validate() error {
	var errs []error
	servers, chroot := o.split()
	for _, s := range servers {
		if s == "" {
			errs = append(errs, fmt.Errorf("connect: want HOST:PORT,HOST:PORT/CHROOT, not %q", o.Connect))
			break
		}
	}
	if chroot != "" && (strings.HasSuffix(chroot, "/") || strings.Contains(chroot, "//")) {
		errs = append(errs, fmt.Errorf("connect: the chroot %q is no path", chroot))
	}
	if o.SessionTimeout < time.Second {
		errs = append(errs, fmt.Errorf("session_timeout: want at least 1s, not %s", o.SessionTimeout))
	}
	if o.MaxBatch < 64<<10 || o.MaxBatch > largestBatch {
		errs = append(errs, fmt.Errorf("max_batch: want 64KiB to %d bytes, not %s", largestBatch, o.MaxBatch))
	}
	return errors.Join(errs...)
}

// split takes the servers and the chroot, "" or "/…", apart.
func (o Options) split() (servers []string, chroot string) {
	list := o.Connect
	if i := strings.IndexByte(list, '/'); i >= 0 {
		list, chroot = list[:i], list[i:]
	}
	if chroot == "/" {
		chroot = ""
	}
	return strings.Split(list, ","), chroot
}

// NewFactory makes the store from the YAML file.
func NewFactory() offsets.Factory {
	return plugin.NewFactory("zookeeper", "in ZooKeeper, under /consumers as Kafka's first consumers did",
		defaults, func(o Options, s offsets.Settings) (offsets.Store, error) { return New(o, s), nil })
}

// Store is an [offsets.Store].
type Store struct {
	options Options
	servers []string
	chroot  string
	logger  *slog.Logger
	owners  offsets.Owners

	prepared atomic.Bool
	writes   chan *write

	mu     sync.Mutex
	conn   *zk.Conn      // nil when it isn't started
	closed chan struct{} // closed by Stop
	done   chan struct{} // closed when the writer has ended

	shardMu sync.Mutex
	shard   *shard // of the load that succeeded last, nil before
}

var _ offsets.Store = (*Store)(nil)

// New makes the store. The options are valid.
func New(o Options, s offsets.Settings) *Store {
	st := &Store{options: o, logger: s.Logger}
	st.servers, st.chroot = o.split()
	if st.logger == nil {
		st.logger = slog.New(slog.DiscardHandler)
	}
	st.owners.Close()
	return st
}

// Start begins to connect. It doesn't wait for ZooKeeper.
func (s *Store) Start(context.Context) error {
	conn, _, err := zk.Connect(s.servers, s.options.SessionTimeout,
		zk.WithLogger(clientLog{s.logger}), zk.WithLogInfo(false), zk.WithEventCallback(func(zk.Event) {}))
	if err != nil {
		return fmt.Errorf("connect to ZooKeeper at %s: %w", s.options.Connect, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.closed, s.done = conn, make(chan struct{}), make(chan struct{})
	s.writes = make(chan *write)
	s.owners.Open()
	go func() { // ends with Stop
		defer close(s.done)
		s.writer(s.closed)
	}()
	return nil
}

// clientLog gives what the client library says to the store's logger.
type clientLog struct{ to *slog.Logger }

// Printf implements the library's logger.
func (l clientLog) Printf(format string, args ...any) {
	l.to.Debug("zookeeper client: " + fmt.Sprintf(format, args...))
}

// Stop ends all ownership and the connection.
func (s *Store) Stop(ctx context.Context) error {
	s.owners.Close()
	s.mu.Lock()
	conn, closed, done := s.conn, s.closed, s.done
	s.conn = nil
	s.mu.Unlock()
	if conn == nil {
		return nil
	}
	close(closed)
	conn.Close()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Topic is "": there is no topic.
func (*Store) Topic() string { return "" }

// Shard is 0: there is one shard.
func (*Store) Shard(string) (int32, error) { return 0, nil }

// Prepare makes the nodes that everything is below.
func (s *Store) Prepare(ctx context.Context) error {
	if s.prepared.Load() {
		return nil
	}
	var paths []string
	for i := range s.chroot {
		if i > 0 && s.chroot[i] == '/' {
			paths = append(paths, s.chroot[:i])
		}
	}
	if s.chroot != "" {
		paths = append(paths, s.chroot)
	}
	for _, p := range []string{consumersPath, ownPath, fencePath, detailsPath, groupsPath, pendingPath} {
		paths = append(paths, s.chroot+p)
	}
	for _, p := range paths {
		_, err := retry(ctx, s, func(c *zk.Conn) (string, error) { return c.Create(p, nil, 0, zk.WorldACL(zk.PermAll)) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("zookeeper: create %s: %w", p, err)
		}
	}
	s.prepared.Store(true)
	return nil
}

// Unload implements the contract.
func (s *Store) Unload(shard, epoch int32) { s.owners.Drop(shard, epoch) }

// connection is the client and what is closed when the store stops.
func (s *Store) connection() (*zk.Conn, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return nil, nil, offsets.ErrClosed
	}
	return s.conn, s.closed, nil
}

// once does something with the connection, and waits no longer than ctx. The library has no contexts: what was asked for may
// still happen after ctx has ended, and its goroutine ends with the connection.
func once[T any](ctx context.Context, s *Store, do func(*zk.Conn) (T, error)) (T, error) {
	var none T
	conn, closed, err := s.connection()
	if err != nil {
		return none, err
	}
	type result struct {
		value T
		err   error
	}
	answer := make(chan result, 1)
	go func() { // ends with the answer, or with the connection
		value, err := do(conn)
		answer <- result{value, err}
	}()
	select {
	case r := <-answer:
		return r.value, r.err
	case <-closed:
		return none, offsets.ErrClosed
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// lost says whether an error leaves open what happened: the connection broke before the answer came.
func lost(err error) bool {
	for _, e := range []error{zk.ErrConnectionClosed, zk.ErrNoServer, zk.ErrSessionExpired, zk.ErrSessionMoved, zk.ErrClosing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// retryPause is how long is waited before the next attempt when a connection broke.
const retryPause = 100 * time.Millisecond

// retry does something that may be done twice until there is an answer or ctx ends.
func retry[T any](ctx context.Context, s *Store, do func(*zk.Conn) (T, error)) (T, error) {
	for {
		value, err := once(ctx, s, do)
		if err != nil && lost(err) {
			if wait(ctx, s) == nil {
				continue
			}
			return value, fmt.Errorf("%w: %w", offsets.ErrUnavailable, errors.Join(ctx.Err(), err))
		}
		if err != nil && ctx.Err() != nil {
			return value, fmt.Errorf("%w: %w", offsets.ErrUnavailable, err)
		}
		return value, err
	}
}

// wait waits a moment.
func wait(ctx context.Context, s *Store) error {
	_, closed, err := s.connection()
	if err != nil {
		return err
	}
	select {
	case <-time.After(retryPause):
		return nil
	case <-closed:
		return offsets.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}
