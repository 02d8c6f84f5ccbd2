package compare

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/record"
)

func TestFiguresAgainstTargets(t *testing.T) {
	sendfile := Target{Limit: 0.9, Against: rawSendfile, AtLeast: true}
	for _, x := range []struct {
		name   string
		f      Figure
		result string
	}{
		{"at the limit", Figure{Target: atMost(0.5), Ours: []float64{1}, Theirs: []float64{2}}, "pass"},
		{"above it", Figure{Target: atMost(0.5), Ours: []float64{1.01}, Theirs: []float64{2}}, "MISSED"},
		{"the median counts", Figure{Target: atMost(0.5), Ours: []float64{9, 1, 1}, Theirs: []float64{2, 2, 2}}, "pass"},
		{"round by round", Figure{Target: atMost(0.5), Ours: []float64{1, 2, 3}, Theirs: []float64{4, 3, 2}}, "MISSED"},
		{"worse than Kafka", Figure{Target: atMost(0.5), Ours: []float64{3}, Theirs: []float64{2}}, "MISSED: we lose here"},
		{"good enough, and worse", Figure{Target: atMost(1.05), Ours: []float64{1.04}, Theirs: []float64{1}}, "pass, but we lose here"},
		{"nothing to be held against", Figure{Target: atMost(0.5), Ours: []float64{1}}, "MISSED"},
		{"Kafka needs nothing", Figure{Target: atMost(0.5), Ours: []float64{0}, Theirs: []float64{0}}, "MISSED"},
		{"we need nothing", Figure{Target: atMost(0.5), Ours: []float64{0}, Theirs: []float64{1}}, "pass"},
		{"absolute", Figure{Target: Target{Limit: 30}, Ours: []float64{30}}, "pass"},
		{"absolute, above", Figure{Target: Target{Limit: 30}, Ours: []float64{31}, Theirs: []float64{300}}, "MISSED"},
		{"without a target", Figure{Ours: []float64{30}, Theirs: []float64{300}}, ""},
		{"without a target, and worse", Figure{Ours: []float64{300}, Theirs: []float64{30}}, "we lose here"},
		{"nothing measured", Figure{Target: Target{Limit: 30}}, "MISSED"},
		{"more is better", Figure{Target: atLeast(2), Ours: []float64{4}, Theirs: []float64{2}}, "pass"},
		{"not enough", Figure{Target: atLeast(2), Ours: []float64{3.9}, Theirs: []float64{2}}, "MISSED"},
		{"less", Figure{Target: atLeast(2), Ours: []float64{1.9}, Theirs: []float64{2}}, "MISSED: we lose here"},
		{"of the machine's limit", Figure{Target: sendfile, Ours: []float64{9}, Theirs: []float64{8}, Reference: []float64{10}}, "pass"},
		{"not enough of it", Figure{Target: sendfile, Ours: []float64{8}, Theirs: []float64{7}, Reference: []float64{10}}, "MISSED"},
	} {
		require.Equal(t, x.result, x.f.result(), x.name)
		require.Equal(t, !strings.Contains(x.result, "MISSED"), x.f.Met(), x.name)
	}
}

func TestReport(t *testing.T) {
	r := &Report{
		Figures: []Figure{
			{Name: "good", Broker: "barnabas mmap", Unit: "s", Target: atMost(0.5), Ours: []float64{1, 2, 1}, Theirs: []float64{10, 10, 5}, Bound: []float64{0.5, 0.5, 0.5}},
			{Name: "bad", Broker: "barnabas mmap", Unit: "MiB/s", Target: atLeast(2), Ours: []float64{100}, Theirs: []float64{200}, Bound: []float64{400}},
		},
		Limits: []Limit{{Name: rawSendfile, SpeedUnit: "MiB/s", CostUnit: "CPU-s/GB", Speed: []float64{4000}, Cost: []float64{0.2}}},
	}
	require.Equal(t, 1, r.Missed())
	for _, text := range []string{r.String(), r.Markdown()} {
		require.Contains(t, text, "0.200 ", "the median of the ratios")
		require.Contains(t, text, "0.100..0.200")
		require.Contains(t, text, "50 % / 5 %", "what the machine needs, of ours and of Kafka's")
		require.Contains(t, text, "25 % / 50 %")
		require.Contains(t, text, "≥ 2 of Kafka")
		require.Contains(t, text, "1 of 2 figures miss their targets. Kafka is better at: bad (MiB/s, barnabas mmap).")
		require.Contains(t, text, rawSendfile)
		require.Contains(t, text, "0.200 CPU-s/GB")
	}
	require.Contains(t, (&Report{}).verdict(), "at none")
	require.Contains(t, (&Report{Failed: []string{"kafka, flush: no answer"}}).String(), "Not measured: kafka, flush: no answer.")
}

func TestEveryRowCanBeNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range Names() {
		require.False(t, seen[name], name)
		seen[name] = true
	}
	for _, l := range loads() {
		for _, m := range l.measures {
			require.Equal(t, m.reference != nil, m.target.Against != againstKafka, "%s: what is the ratio to?", l.name)
			require.False(t, m.bound != nil && len(l.limits) == 0, "%s: nothing is measured that bounds it", l.name)
		}
	}
}

func TestMedian(t *testing.T) {
	require.Equal(t, 0.0, median(nil))
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
}

func TestUnknownFigure(t *testing.T) {
	c := &Comparison{Options: Options{Only: []string{"nope"}}}
	_, err := c.Run(t.Context())
	require.ErrorContains(t, err, "start-1000")
}

func TestWhatIsWanted(t *testing.T) {
	single := &Comparison{}
	require.True(t, single.wants("start"))
	require.True(t, single.wantsClusters(clusterThroughput, clusterCPU), "the targets have rows of clusters")
	require.False(t, single.wantsClusters(clusterLatency, clusterFailOver))

	clusters := &Comparison{Options: Options{Clusters: true}}
	require.False(t, clusters.wants("start"))
	require.True(t, clusters.wantsClusters(clusterCPU))

	both := &Comparison{Options: Options{Only: []string{"start", clusterCPU}}}
	require.True(t, both.wants("start"))
	require.False(t, both.wants("memory"))
	require.True(t, both.wantsClusters(clusterThroughput, clusterCPU))
	require.False(t, both.wantsClusters(clusterLatency))
}

func TestAcknowledgements(t *testing.T) {
	begin := time.Unix(1000, 0)
	after := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	acks := []ack{
		{0, after(0), after(90)}, {1, after(1), after(91)}, // what connecting takes
		{0, after(1000), after(1002)}, {1, after(1001), after(1004)},
		{0, after(1500), after(4000)}, {1, after(2000), after(4001)}, {0, after(3000), after(4002)},
	}
	require.Equal(t, 0.0, delay(nil, 0, 0.99))
	require.Equal(t, 90.0, delay(acks[:2], 0, 0.5))
	require.Equal(t, 2.0, delay(acks[:4], time.Second, 0.5))
	require.Equal(t, 0.0, delay(acks[:4], time.Minute, 0.5))
	require.Equal(t, 2500.0, delay(acks, time.Second, 1))

	require.Equal(t, 2998*time.Millisecond, silence(acks))
	require.Equal(t, time.Duration(0), silence(acks[:2]))

	require.Equal(t, after(4002), goesOn(acks, after(1500), 2), "what was to be sent before doesn't count")
	require.Zero(t, goesOn(acks, after(2000), 2), "partition 1 never went on")
}

func TestClientCodecs(t *testing.T) {
	text := []byte(strings.Repeat("what compresses well ", 100))
	for _, c := range []record.Codec{record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		small, err := clientCodecs{}.Compress(c, 0, []byte("before"), text)
		require.NoError(t, err, c)
		require.Less(t, len(small), len(text), c)
		back, err := clientCodecs{}.Decompress(c, nil, small[len("before"):], len(text))
		require.NoError(t, err, c)
		require.Equal(t, text, back, c)
		_, err = clientCodecs{}.Decompress(c, nil, small[len("before"):], len(text)-1)
		require.ErrorIs(t, err, record.ErrPayloadTooLarge, c)
	}
	_, err := clientCodecs{}.Compress(record.None, 0, nil, text)
	require.Error(t, err)
}

func TestDeletedFoldersAreWaitedFor(t *testing.T) {
	data := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(data, "other-0"), 0o755))
	require.NoError(t, awaitGone(t.Context(), data, "create-"))
	deleted := filepath.Join(data, "create-1-0.0123456789abcdef-delete")
	require.NoError(t, os.Mkdir(deleted, 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, awaitGone(ctx, data, "create-"), "1 folders")
	require.NoError(t, os.Remove(deleted))
	require.NoError(t, awaitGone(t.Context(), data, "create-"))
}
