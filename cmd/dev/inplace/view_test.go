package inplace

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDifferencesAreFound(t *testing.T) {
	sample := func() view {
		return view{
			starts: map[string]int64{"t-0": 0}, ends: map[string]int64{"t-0": 2}, groups: map[string]int64{"t-0": 1},
			records: map[string][]string{"t-0": {"0: a", "1: b"}}, committed: map[string][]string{"t-0": {"0: a"}},
		}
	}
	require.Empty(t, differences(sample(), sample()))
	for want, change := range map[string]func(v *view){
		"t-0: begins at 1, was 0":                                                       func(v *view) { v.starts["t-0"] = 1 },
		"t-0: ends at nothing, was 2":                                                   func(v *view) { delete(v.ends, "t-0") },
		"u-0: the group is at 5, was nothing":                                           func(v *view) { v.groups["u-0"] = 5 },
		`t-0: all records: 1, were 2; the first that differs: "none", was "1: b"`:       func(v *view) { v.records["t-0"] = v.records["t-0"][:1] },
		`t-0: committed records: 2, were 1; the first that differs: "1: b", was "none"`: func(v *view) { v.committed["t-0"] = append(v.committed["t-0"], "1: b") },
		`t-0: all records: 2, were 2; the first that differs: "0: x", was "0: a"`:       func(v *view) { v.records["t-0"][0] = "0: x" },
	} {
		now := sample()
		change(&now)
		require.Equal(t, []string{want}, differences(sample(), now))
	}
}

func TestUntilGivesUpAtAnErrorAndWithItsContext(t *testing.T) {
	bad := errors.New("bad")
	require.ErrorIs(t, until(context.Background(), func() (bool, error) { return false, bad }), bad)
	n := 0
	require.NoError(t, until(context.Background(), func() (bool, error) { n++; return n == 2, nil }))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, until(ctx, func() (bool, error) { return false, nil }), context.Canceled)
}
