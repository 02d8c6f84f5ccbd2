package sticky_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
	"github.com/barnabas-mq/barnabas/plugins/partitioners/sticky"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return sticky.New(sticky.DefaultOptions()) })
}

// TestSuiteOfFullBatches has every record fill a batch.
func TestSuiteOfFullBatches(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner { return sticky.New(sticky.Options{BatchBytes: 1}) })
}

// TestAsJava compares the changes from partition to partition that are made with those that Java's UniformStickyPartitioner
// makes (see `dev partitions`): which ones are possible isn't random, though which one is made is.
func TestAsJava(t *testing.T) {
	data, err := os.ReadFile("testdata/client.tsv")
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")[1:]
	type cluster struct{ partitions, available string }
	want := map[cluster]map[int32]string{}
	for _, line := range lines {
		f := strings.Split(line, "\t")
		c := cluster{f[0], f[1]}
		from, err := strconv.Atoi(f[2])
		require.NoError(t, err)
		if want[c] == nil {
			want[c] = map[int32]string{}
		}
		want[c][int32(from)] = f[3]
	}
	for c, moves := range want {
		n, err := strconv.Atoi(c.partitions)
		require.NoError(t, err)
		b := &partitioner.Batch{Topic: "t", Partitions: int32(n), Records: []partitioner.Record{{Key: []byte("the same")}}}
		for _, word := range strings.Split(c.available, ",") {
			if p, err := strconv.Atoi(word); err == nil {
				b.Available = append(b.Available, int32(p))
			}
		}
		seen := map[int32][]int32{}
		for range 300 {
			p := sticky.New(sticky.Options{BatchBytes: 1}) // each record fills its batch
			last := int32(-1)
			for range 10 {
				got, err := p.Partition(context.Background(), nil, b)
				require.NoError(t, err)
				if !slices.Contains(seen[last], got[0]) {
					seen[last] = append(seen[last], got[0])
				}
				last = got[0]
			}
		}
		got := map[int32]string{}
		for from, to := range seen {
			slices.Sort(to)
			words := make([]string, len(to))
			for i, p := range to {
				words[i] = fmt.Sprint(p)
			}
			got[from] = strings.Join(words, ",")
		}
		require.Equal(t, moves, got, "%v", c)
	}
}

// TestSticks wants a batch at one partition, over calls, and the next at another; each topic has its own.
func TestSticks(t *testing.T) {
	p := sticky.New(sticky.Options{BatchBytes: 1000})
	record := partitioner.Record{Key: make([]byte, 9), Value: make([]byte, 80), Headers: []partitioner.Header{{Key: "12345", Value: make([]byte, 5)}}}
	b := &partitioner.Batch{Topic: "t", Partitions: 3, Available: []int32{0, 1, 2}, Records: []partitioner.Record{record}}
	var got []int32
	for i := range 25 {
		if i == 5 {
			b.Records = append(b.Records, record)
			_, err := p.Partition(context.Background(), nil, &partitioner.Batch{Topic: "another", Partitions: 9, Records: b.Records})
			require.NoError(t, err)
		}
		var err error
		got, err = p.Partition(context.Background(), got, b)
		require.NoError(t, err)
	}
	require.Len(t, got, 45)
	for i := range got {
		if i%10 > 0 {
			require.Equal(t, got[i-1], got[i], "record %d", i)
		} else if i > 0 {
			require.NotEqual(t, got[i-1], got[i], "record %d", i)
		}
	}
}

// TestLeavesWhatIsGone moves on when the partition has no leader, or is none any more.
func TestLeavesWhatIsGone(t *testing.T) {
	p := sticky.New(sticky.DefaultOptions())
	at := func(partitions int32, available ...int32) int32 {
		got, err := p.Partition(context.Background(), nil, &partitioner.Batch{Topic: "t", Partitions: partitions, Available: available, Records: make([]partitioner.Record, 1)})
		require.NoError(t, err)
		return got[0]
	}
	require.EqualValues(t, 7, at(8, 7))
	require.EqualValues(t, 7, at(8), "it may well have a leader")
	require.EqualValues(t, 3, at(8, 3))
	require.EqualValues(t, 3, at(8, 3, 7))
	require.EqualValues(t, 0, at(1), "of fewer partitions")
}

// TestManyTopics doesn't keep what it knows of topics without end.
func TestManyTopics(t *testing.T) {
	p := sticky.New(sticky.DefaultOptions())
	for i := range 25_000 {
		_, err := p.Partition(context.Background(), nil, &partitioner.Batch{Topic: fmt.Sprint(i), Partitions: 1, Records: make([]partitioner.Record, 1)})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, p.Topics(), 10_000)
}

func TestOptions(t *testing.T) {
	for text, fault := range map[string]string{"batch_bytes: 1MiB": "", "batch_bytes: 0": "at least 1 byte", "batch: 1": "batch_bytes"} {
		section, err := config.Parse("x.yaml", []byte(text))
		require.NoError(t, err)
		if err = sticky.NewFactory().Check(section); fault == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, fault)
		}
	}
}

func BenchmarkPartition(b *testing.B) {
	p := sticky.New(sticky.DefaultOptions())
	batch := &partitioner.Batch{Topic: "t", Partitions: 12, Records: make([]partitioner.Record, 500)}
	for i := range batch.Records {
		batch.Records[i].Value = make([]byte, 100)
	}
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = p.Partition(context.Background(), dst[:0], batch)
	}
}
