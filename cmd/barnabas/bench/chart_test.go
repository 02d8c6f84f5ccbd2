package bench

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed holds that a chart is XML, and counts its curves.
func wellFormed(t *testing.T, chart []byte) (curves int) {
	d := xml.NewDecoder(bytes.NewReader(chart))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return curves
		}
		require.NoError(t, err, string(chart))
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			curves++
		}
	}
}

func TestChart(t *testing.T) {
	h := newHistogram()
	for i := range int64(100_000) {
		require.NoError(t, h.RecordValue(1000*(i+1)))
	}
	r := &Result{Name: `<"a" & b>`, Rate: 10, Bytes: 1, Distribution: distributionOf(h), Latency: latencyOf(h)}
	for second := range 5 {
		r.Timeline = append(r.Timeline, Sample{Second: float64(second + 1), Seconds: 1, Bytes: int64(second) << 20, Latency: r.Latency})
	}
	faster := *r
	faster.Rate = 20
	for _, test := range []struct {
		results []*Result
		curves  int
	}{
		{nil, 0},
		{[]*Result{r}, 3},
		{[]*Result{r, r, r, r, r, r, r, r, r}, 27},
		{[]*Result{&faster, r}, 7},
		{[]*Result{{Name: "nothing"}}, 0},
	} {
		var chart bytes.Buffer
		require.NoError(t, WriteChart(&chart, "a & b", test.results))
		require.Equal(t, test.curves, wellFormed(t, chart.Bytes()))
		require.NotContains(t, chart.String(), "NaN")
		require.NotContains(t, chart.String(), "Inf")
	}
}

func TestDistribution(t *testing.T) {
	h := newHistogram()
	require.NoError(t, h.RecordValue(5_000_000))
	d := distributionOf(h)
	require.Equal(t, 0.0, d[0].Percent)
	require.InEpsilon(t, 5000, d[0].Micros, 0.01)
	for range 1_000_000 {
		require.NoError(t, h.RecordValue(5_000_000))
	}
	d = distributionOf(h)
	require.Greater(t, d[len(d)-1].Percent, 99.999)
	require.Less(t, d[len(d)-1].Percent, 100.0)
}

func TestRecorderCollects(t *testing.T) {
	r := newRecorder(20)
	for i := range 20 {
		r.shard(i).note(int64(i+1) * 1e6)
	}
	r.shard(0).note(-5)   // a clock that is read twice
	r.shard(1).note(1e15) // longer than the longest
	first := r.collect()
	require.InEpsilon(t, 60e6, first.Max, 0.01)
	require.Zero(t, r.collect().Max, "an interval begins anew")
	require.EqualValues(t, 22, r.total.TotalCount())
}
