package placement

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/partitioner"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// byLength places a key by its length, unless it is to answer something else.
type byLength struct {
	err    error
	answer []int32
	calls  int
	hang   bool
}

func (*byLength) Start(context.Context) error { return nil }
func (*byLength) Stop(context.Context) error  { return nil }
func (*byLength) Keyed() bool                 { return true }
func (*byLength) EmptyIsKey() bool            { return false }

func (p *byLength) Partition(ctx context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	p.calls++
	if p.hang {
		<-ctx.Done()
		return dst, ctx.Err()
	}
	if p.err != nil || p.answer != nil {
		return append(dst, p.answer...), p.err
	}
	for _, r := range b.Records {
		dst = append(dst, int32(len(r.Key))%b.Partitions)
	}
	return dst, nil
}

// written is a log that may be read while it is written.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func checks(t *testing.T, p partitioner.Partitioner, interval time.Duration) (*Checks, *written) {
	set, err := partitioner.NewSet(partitioner.Named{Name: "length", Partitioner: p})
	require.NoError(t, err)
	out := &written{}
	c := New(Options{Partitioners: set, Interval: interval, AnswerWithin: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(out, nil)), Partitions: func(topic string) int32 {
		return map[string]int32{"t": 3}[topic]
	}})
	t.Cleanup(func() { require.NoError(t, c.Stop(context.Background())) })
	return c, out
}

func keys(words ...string) [][]byte {
	list := make([][]byte, len(words))
	for i, w := range words {
		if w != "-" {
			list[i] = []byte(w)
		}
	}
	return list
}

func TestOff(t *testing.T) {
	c, _ := checks(t, &byLength{}, 0)
	for _, check := range []string{"", "off", "something"} {
		require.Nil(t, c.Topic("t", "length", check))
	}
	require.Nil(t, c.Topic("t", "", Reject))
}

func TestCount(t *testing.T) {
	p := &byLength{}
	c, _ := checks(t, p, 0)
	topic := c.Topic("t", "length", Count)
	for _, client := range []log.Client{{Name: "a", Version: "1"}, {Name: "a", Version: "2"}, {}} {
		check := topic.Check(1, client)
		refused, err := check.Refuse(keys("x", "xx", "-", "", "xxxx", "xxx"))
		require.NoError(t, err)
		require.Empty(t, refused)
		if client.Version != "2" { // that one was a duplicate, or failed
			check.Appended()
		}
	}
	check := topic.Check(1, log.Client{Name: "b"})
	_, err := check.Refuse(keys("-", ""))
	require.NoError(t, err)
	check.Appended()
	require.Equal(t, 3, p.calls, "one call for a batch, none for one without keys")
	require.Equal(t, []Counted{
		{Source: Source{"t", "a", "1"}, Appended: 2},
		{Source: Source{"t", "unknown", ""}, Appended: 2},
	}, c.Counts())
}

func TestReject(t *testing.T) {
	c, _ := checks(t, &byLength{}, 0)
	check := c.Topic("t", "length", Reject).Check(1, log.Client{Name: "a", Version: "1"})
	refused, err := check.Refuse(keys("x", "xx", "-", "", "xxxx", "xxx"))
	require.NoError(t, err)
	require.Equal(t, []int32{1, 5}, refused)
	require.Equal(t, []Counted{{Source: Source{"t", "a", "1"}, Refused: 2}}, c.Counts())
}

// TestNoAnswer: where the partitioner can't say, rejecting topics take nothing, and counting ones all.
func TestNoAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		p                  *byLength
		topic, partitioner string
		err                error
	}{
		"it fails":             {&byLength{err: errors.New("boom")}, "t", "length", nil},
		"it is away":           {&byLength{err: partitioner.ErrUnavailable}, "t", "length", partitioner.ErrUnavailable},
		"it isn't there":       {&byLength{}, "t", "gone", partitioner.ErrUnavailable},
		"the topic is new":     {&byLength{}, "new", "length", partitioner.ErrUnavailable},
		"it answers too few":   {&byLength{answer: []int32{1}}, "t", "length", partitioner.ErrInvalid},
		"it answers below 0":   {&byLength{answer: []int32{1, -1}}, "t", "length", partitioner.ErrInvalid},
		"it answers past them": {&byLength{answer: []int32{1, 3}}, "t", "length", partitioner.ErrInvalid},
		"it hangs":             {&byLength{hang: true}, "t", "length", context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := checks(t, tt.p, 0)
			_, err := c.Topic(tt.topic, tt.partitioner, Reject).Check(1, log.Client{}).Refuse(keys("x", "-", "xx"))
			require.Error(t, err)
			if tt.err != nil {
				require.ErrorIs(t, err, tt.err)
			}
			require.Empty(t, c.Counts())
			check := c.Topic(tt.topic, tt.partitioner, Count).Check(1, log.Client{})
			refused, err := check.Refuse(keys("x", "-", "xx"))
			require.NoError(t, err)
			require.Empty(t, refused)
			check.Appended()
			require.Equal(t, []Counted{{Source: Source{tt.topic, "unknown", ""}, Unchecked: 2}}, c.Counts())
		})
	}
}

// TestTells wants one line for each source and interval, and the rest at the end.
func TestTells(t *testing.T) {
	c, out := checks(t, &byLength{}, time.Millisecond)
	reject := c.Topic("t", "length", Reject)
	put := func(client string) {
		_, err := reject.Check(0, log.Client{Name: client, Version: "1"}).Refuse(keys("x", "x"))
		require.NoError(t, err)
	}
	put("a")
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "client=a version=1 appended=0 refused=2") }, time.Minute, time.Millisecond)
	require.NotContains(t, out.String(), "client=b")

	c, out = checks(t, &byLength{}, time.Hour)
	reject = c.Topic("t", "length", Reject)
	put("a")
	put("a")
	put("b")
	require.Empty(t, out.String(), "before the interval is over")
	require.NoError(t, c.Stop(context.Background()))
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "client=a version=1 appended=0 refused=4")
	put("b") // late: no timer is left behind
	require.NoError(t, c.Stop(context.Background()))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
}

// TestManyClients bounds what names without end take.
func TestManyClients(t *testing.T) {
	c, _ := checks(t, &byLength{}, time.Hour)
	reject := c.Topic("t", "length", Reject)
	for i := range 3000 {
		_, err := reject.Check(0, log.Client{Name: fmt.Sprintf("c%04d", i)}).Refuse(keys("x"))
		require.NoError(t, err)
	}
	counts, sum := c.Counts(), int64(0)
	require.Len(t, counts, maxCounts+1)
	for _, one := range counts {
		sum += one.Refused
	}
	require.EqualValues(t, 3000, sum)
}

func BenchmarkCheck(b *testing.B) {
	set, err := partitioner.NewSet(partitioner.Named{Name: "length", Partitioner: &byLength{}})
	require.NoError(b, err)
	c := New(Options{Partitioners: set, Partitions: func(string) int32 { return 3 }})
	topic := c.Topic("t", "length", Count)
	all := make([][]byte, 500)
	for i := range all {
		all[i] = []byte("xxxx")
	}
	b.ReportAllocs()
	for b.Loop() {
		check := topic.Check(1, log.Client{})
		_, _ = check.Refuse(all)
		check.Appended()
	}
}
