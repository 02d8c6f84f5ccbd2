package zookeeper

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/offsets/offsetstest"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/zktest"
)

// server is the ZooKeeper of all tests here; each takes a chroot of its own.
var server *zktest.Ensemble // set once, before any test

var roots atomic.Int64

func TestMain(m *testing.M) {
	os.Exit(zktest.Main(leakFree{m}, func(e *zktest.Ensemble) { server = e }))
}

// leakFree runs the tests and looks for goroutines that are left.
type leakFree struct{ m *testing.M }

func (l leakFree) Run() int {
	code := l.m.Run()
	if err := goleak.Find(goleak.IgnoreTopFunction("os/exec.(*Cmd).Wait"), goleak.IgnoreAnyFunction("github.com/barnabas-mq/barnabas/membership/zookeeper/zktest.(*Server).launch.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func options() Options {
	o := defaults()
	o.Connect = fmt.Sprintf("%s/root%d/below", server.Connect(), roots.Add(1))
	o.SessionTimeout = 5 * time.Second
	return o
}

func TestSuite(t *testing.T) {
	offsetstest.Run(t, func(*testing.T) offsetstest.World {
		o := options()
		return offsetstest.World{Keeps: true, Store: func() offsets.Store { return New(o, offsets.Settings{}) }}
	})
}

func started(t *testing.T, o Options) *Store {
	t.Helper()
	s := New(o, offsets.Settings{})
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

// client is another program on the same nodes. It is given paths below the chroot.
type client struct {
	t    *testing.T
	conn *zk.Conn
	root string
}

func connect(t *testing.T, o Options) client {
	t.Helper()
	servers, root := o.split()
	conn, _, err := zk.Connect(servers, 5*time.Second, zk.WithLogInfo(false))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	return client{t, conn, root}
}

func (c client) get(path string) string {
	c.t.Helper()
	data, _, err := c.conn.Get(c.root + path)
	require.NoError(c.t, err, path)
	return string(data)
}

func (c client) set(path, data string) {
	c.t.Helper()
	whole := c.root + path
	for i := range whole {
		if i > 0 && whole[i] == '/' {
			_, err := c.conn.Create(whole[:i], nil, 0, zk.WorldACL(zk.PermAll))
			if err != nil {
				require.ErrorIs(c.t, err, zk.ErrNodeExists)
			}
		}
	}
	if _, err := c.conn.Create(c.root+path, []byte(data), 0, zk.WorldACL(zk.PermAll)); err != nil {
		_, err = c.conn.Set(c.root+path, []byte(data), -1)
		require.NoError(c.t, err, path)
	}
}

func (c client) has(path string) bool {
	c.t.Helper()
	there, _, err := c.conn.Exists(c.root + path)
	require.NoError(c.t, err)
	return there
}

func offset(group, topic string, partition int32, at int64) offsets.Entry {
	return offsets.Entry{Key: offsets.OffsetKey(group, topic, partition), Offset: &offsets.Offset{Offset: at, LeaderEpoch: 4, Metadata: "m", CommitTimestamp: 99, ExpireTimestamp: offsets.None}}
}

// load gives the entries that count.
func load(t *testing.T, s *Store, epoch int32) map[offsets.Key]offsets.Entry {
	t.Helper()
	got := map[offsets.Key]offsets.Entry{}
	require.NoError(t, s.Load(t.Context(), 0, epoch, func(e offsets.Event) error {
		if e.Producer == offsets.None {
			got[e.Entry.Key] = e.Entry
		}
		return nil
	}))
	return got
}

func store(t *testing.T, s *Store, epoch int32, entries ...offsets.Entry) {
	t.Helper()
	require.NoError(t, s.Write(t.Context(), 0, epoch, offsets.Batch{Timestamp: 1, Entries: entries}))
}

func TestOldReadersFindTheNumber(t *testing.T) {
	o := options()
	s, zk := started(t, o), connect(t, o)
	load(t, s, 1)
	store(t, s, 1, offset("my-group", "clicks", 3, 1234567890123), offset("odd/group%", "clicks", 0, 5))
	require.Equal(t, "1234567890123", zk.get("/consumers/my-group/offsets/clicks/3"))
	require.Equal(t, "5", zk.get("/consumers/odd%2Fgroup%25/offsets/clicks/0"))
	store(t, s, 1, offset("my-group", "clicks", 3, 7))
	require.Equal(t, "7", zk.get("/consumers/my-group/offsets/clicks/3"))
}

func TestWhatOldConsumersCommit(t *testing.T) {
	o := options()
	s, zk := started(t, o), connect(t, o)
	zk.set("/consumers/old/offsets/clicks/0", "41")
	zk.set("/consumers/old/offsets/clicks/1", "no number")
	zk.set("/consumers/old/offsets/clicks/first", "7")
	zk.set("/consumers/old/ids/old_host-1", "{}")
	zk.set("/consumers/50%/offsets/clicks/0", "1")
	zk.set("/consumers/empty/offsets", "")
	before := time.Now().Add(-time.Minute).UnixMilli()

	got := load(t, s, 1)
	require.Len(t, got, 1)
	first := got[offsets.OffsetKey("old", "clicks", 0)].Offset
	require.Greater(t, first.CommitTimestamp, before)
	first.CommitTimestamp = 0
	require.Equal(t, &offsets.Offset{Offset: 41, LeaderEpoch: offsets.None, ExpireTimestamp: offsets.None}, first)

	store(t, s, 1, offset("old", "clicks", 0, 50), offset("old", "clicks", 1, 9))
	require.Equal(t, "m", load(t, s, 2)[offsets.OffsetKey("old", "clicks", 0)].Offset.Metadata)
	zk.set("/consumers/old/offsets/clicks/0", "60\n")
	got = load(t, s, 3)
	require.Equal(t, int64(60), got[offsets.OffsetKey("old", "clicks", 0)].Offset.Offset)
	require.Empty(t, got[offsets.OffsetKey("old", "clicks", 0)].Offset.Metadata, "it belongs to another commit")
	require.Equal(t, int64(9), got[offsets.OffsetKey("old", "clicks", 1)].Offset.Offset)
	require.Equal(t, "7", zk.get("/consumers/old/offsets/clicks/first"))
}

func TestNothingIsLeftOfWhatIsRemoved(t *testing.T) {
	o := options()
	s, zk := started(t, o), connect(t, o)
	load(t, s, 1)
	store(t, s, 1, offset("g", "a", 0, 1), offset("g", "a", 1, 1), offset("g", "b", 0, 1), offset("h", "a", 0, 1))
	zk.set("/consumers/h/ids/x", "")
	store(t, s, 1, offsets.Entry{Key: offsets.OffsetKey("g", "a", 0)}, offsets.Entry{Key: offsets.OffsetKey("g", "b", 0)})
	require.Eventually(t, func() bool { return !zk.has("/consumers/g/offsets/b") }, time.Minute, 10*time.Millisecond)
	require.True(t, zk.has("/consumers/g/offsets/a/1"))
	store(t, s, 1, offsets.Entry{Key: offsets.OffsetKey("g", "a", 1)}, offsets.Entry{Key: offsets.OffsetKey("h", "a", 0)})
	require.Eventually(t, func() bool { return !zk.has("/consumers/g") && !zk.has("/consumers/h/offsets") }, time.Minute, 10*time.Millisecond)
	require.True(t, zk.has("/consumers/h/ids/x"), "another's")
	require.Eventually(t, func() bool { return !zk.has("/barnabas/offsets/details/g") }, time.Minute, 10*time.Millisecond)
	store(t, s, 1, offset("g", "a", 0, 2))
	require.Len(t, load(t, s, 2), 1)
}

func TestOthersRemoveNodesMeanwhile(t *testing.T) {
	o := options()
	s, zk := started(t, o), connect(t, o)
	load(t, s, 1)
	store(t, s, 1, offset("g", "a", 0, 1))
	for _, p := range []string{"/a/0", "/a", ""} {
		require.NoError(t, zk.conn.Delete(zk.root+"/consumers/g/offsets"+p, -1))
	}
	zk.set("/consumers/g/offsets/b/7", "3")
	store(t, s, 1, offset("g", "a", 0, 2), offset("g", "b", 7, 4), offsets.Entry{Key: offsets.OffsetKey("g", "c", 1)})
	require.Equal(t, "2", zk.get("/consumers/g/offsets/a/0"))
	require.Equal(t, "4", zk.get("/consumers/g/offsets/b/7"))
}

// TestAFormerOwnerCannotWrite has two brokers on one ZooKeeper.
func TestAFormerOwnerCannotWrite(t *testing.T) {
	o := options()
	a, b := started(t, o), started(t, o)
	load(t, a, 5)
	store(t, a, 5, offset("g", "t", 0, 1))
	require.Equal(t, int64(1), load(t, b, 6)[offsets.OffsetKey("g", "t", 0)].Offset.Offset)
	err := a.Write(t.Context(), 0, 5, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, 2)}})
	require.ErrorIs(t, err, offsets.ErrNotOwner)
	store(t, b, 6, offset("g", "t", 0, 3))
	err = a.Load(t.Context(), 0, 5+1-1, func(offsets.Event) error { return nil })
	require.ErrorIs(t, err, offsets.ErrNotOwner, "an older epoch takes it back")
	c := started(t, o)
	err = c.Load(t.Context(), 0, 4, func(offsets.Event) error { return nil })
	require.ErrorIs(t, err, offsets.ErrNotOwner)
	require.ErrorContains(t, err, "/barnabas/offsets is owned under epoch 6, after 4")
	require.Equal(t, int64(3), load(t, c, 6)[offsets.OffsetKey("g", "t", 0)].Offset.Offset, "the same controller, started again")
}

func TestABatchThatIsTooLarge(t *testing.T) {
	o := options()
	o.MaxBatch = 64 << 10
	s := started(t, o)
	load(t, s, 1)
	var many []offsets.Entry
	for i := range int32(1000) {
		many = append(many, offset("g", "topic", i, 1))
	}
	err := s.Write(t.Context(), 0, 1, offsets.Batch{Entries: many})
	require.ErrorIs(t, err, offsets.ErrTooLarge)
	store(t, s, 1, many[:50]...)
	require.Len(t, load(t, s, 2), 50, "part of a refused batch is stored")
}

func TestAsLargeAsZooKeeperTakes(t *testing.T) {
	s := started(t, options())
	load(t, s, 1)
	var many []offsets.Entry
	for i := range int32(2800) {
		many = append(many, offset("a-group-with-a-name", "a-topic-with-a-name", i, 1))
	}
	store(t, s, 1, many...)
	require.Len(t, load(t, s, 2), 2800)
}

// TestTogether has many callers at once: all are stored, in fewer transactions than batches.
func TestTogether(t *testing.T) {
	o := options()
	s, zk := started(t, o), connect(t, o)
	load(t, s, 1)
	_, before, err := zk.conn.Get(zk.root + fencePath)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range int32(200) {
		wg.Go(func() {
			if err := s.Write(context.Background(), 0, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", i, int64(i))}}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	_, after, err := zk.conn.Get(zk.root + fencePath)
	require.NoError(t, err)
	require.Less(t, after.Version-before.Version, int32(150))
	require.Len(t, load(t, s, 2), 200)
}

// TestZooKeeperGoesAndComesBack kills the server under load: what was acknowledged is there, and writes go on.
func TestZooKeeperGoesAndComesBack(t *testing.T) {
	own := zktest.New(t, 1)
	o := options()
	o.Connect = own.Connect()
	s := started(t, o)
	load(t, s, 1)
	var acked, next atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			at := next.Add(1)
			try, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
			if s.Write(try, 0, 1, offsets.Batch{Entries: []offsets.Entry{offset("g", "t", 0, at)}}) == nil {
				acked.Store(at)
			}
			stop()
		}
	})
	more := func() {
		was := acked.Load()
		require.Eventually(t, func() bool { return acked.Load() > was+20 }, time.Minute, 10*time.Millisecond)
	}
	for range 2 {
		more()
		require.NoError(t, own.Servers()[0].Kill())
		was := acked.Load()
		try, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		err := s.Write(try, 0, 1, offsets.Batch{Entries: []offsets.Entry{offset("h", "t", 0, 1)}})
		stop()
		require.ErrorIs(t, err, offsets.ErrTimedOut)
		require.LessOrEqual(t, acked.Load(), was+1)
		require.NoError(t, own.Servers()[0].Start(context.Background()))
		more()
	}
	cancel()
	wg.Wait()
	got := load(t, s, 2)[offsets.OffsetKey("g", "t", 0)].Offset.Offset
	require.GreaterOrEqual(t, got, acked.Load(), "an acknowledged commit is lost, or an older one came later")
	require.LessOrEqual(t, got, next.Load())
}

func TestNobodyThere(t *testing.T) {
	o := defaults()
	o.Connect = "127.0.0.1:1"
	s := started(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := s.Prepare(ctx)
	require.ErrorIs(t, err, offsets.ErrUnavailable)
	require.ErrorIs(t, s.Load(ctx, 0, 1, func(offsets.Event) error { return nil }), context.DeadlineExceeded)
}

func TestRubbishIsNamed(t *testing.T) {
	for path, want := range map[string]error{
		"/barnabas/offsets/groups/g":        offsets.ErrCorrupt,
		"/barnabas/offsets/details/g/t/0":   offsets.ErrCorrupt,
		"/barnabas/offsets/pending/7/x":     offsets.ErrCorrupt,
		"/barnabas/offsets/pending/seven/x": offsets.ErrCorrupt,
		"/barnabas/offsets":                 offsets.ErrCorrupt,
	} {
		o := options()
		s, zk := started(t, o), connect(t, o)
		zk.set("/consumers/g/offsets/t/0", "1")
		zk.set(path, "x")
		err := s.Load(t.Context(), 0, 1, func(offsets.Event) error { return nil })
		require.ErrorIs(t, err, want, path)
	}
	o := options()
	s, zk := started(t, o), connect(t, o)
	zk.set("/barnabas/offsets", `{"version":2}`)
	require.ErrorIs(t, s.Load(t.Context(), 0, 1, func(offsets.Event) error { return nil }), offsets.ErrUnsupported)
}

func TestOptions(t *testing.T) {
	f := NewFactory()
	require.Equal(t, "zookeeper", f.Name())
	s, err := f.New(config.Empty("offsets.zookeeper"), offsets.Settings{})
	require.NoError(t, err)
	require.Empty(t, s.Topic())
	for _, bad := range []string{"connect: ''", "connect: 'a,,b'", "connect: 'a/b/'", "session_timeout: 10ms", "max_batch: 2MiB", "max_batch: 1KiB"} {
		section, err := config.Parse("x.yaml", []byte(bad))
		require.NoError(t, err)
		require.Error(t, f.Check(section), bad)
	}
}

func TestEscape(t *testing.T) {
	for name, want := range map[string]string{"": "%", ".": "%2E", "..": "%2E%2E", "...": "...", "a/b": "a%2Fb", "100%": "100%25", "é": "é",
		"\xff": "%FF", "\x00": "%00", "\u0085": "%C2%85", "\U0001F600": "%F0%9F%98%80", "a.b-c_d:1": "a.b-c_d:1"} {
		require.Equal(t, want, escape(name))
	}
	for _, foreign := range []string{"50%", "%2f", "%41", "%2", "a%", "%%"} {
		_, ok := unescape(foreign)
		require.False(t, ok, foreign)
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		node := escape(name)
		require.NotContains(t, node, "/")
		back, ok := unescape(node)
		require.True(t, ok)
		require.Equal(t, name, back)
	})
}

func FuzzDecode(f *testing.F) {
	it, err := newItem(offset("g", "t", 0, 1))
	if err != nil {
		f.Fatal(err)
	}
	data, err := it.encodePending()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, "a%2Fb")
	f.Add(fence{Epoch: 1, Owner: "x"}.encode(), "%")
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if it, entry, err := decodePending(data); err == nil {
			again, err := it.encodePending()
			require.NoError(t, err)
			_, same, err := decodePending(again)
			require.NoError(t, err)
			require.Equal(t, entry.Key, same.Key)
		}
		_, _ = decodeFence(data)
		if plain, ok := unescape(name); ok && !strings.Contains(name, "/") {
			require.Equal(t, name, escape(plain))
		}
	})
}
