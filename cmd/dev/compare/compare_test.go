package compare

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFiguresAgainstTargets(t *testing.T) {
	r := Report{
		{Name: "a", Ours: 1, Theirs: 2, Limit: 0.5, OfRatio: true},
		{Name: "b", Ours: 1.01, Theirs: 2, Limit: 0.5, OfRatio: true},
		{Name: "c", Ours: 1, Limit: 0.5, OfRatio: true},
		{Name: "d", Ours: 30, Limit: 30},
		{Name: "e", Ours: 31, Theirs: 300, Limit: 30},
	}
	met := make([]bool, len(r))
	for i := range r {
		met[i] = r[i].Met()
	}
	require.Equal(t, []bool{true, false, false, true, false}, met)
	require.Equal(t, 3, r.Missed())
	require.Contains(t, r.String(), "MISSED")
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
