package kill

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestCompare(t *testing.T) {
	records := func(values ...string) (rs []*kgo.Record) {
		for i, v := range values {
			rs = append(rs, &kgo.Record{Offset: int64(i), Value: []byte(v)})
		}
		return rs
	}
	good := records(value(0, 0), value(1, 0), value(0, 1))
	require.NoError(t, compare(good, [][]int64{{0, 2}, {1}}))
	require.NoError(t, compare(good, [][]int64{{0}, nil}), "what isn't acknowledged may be there")

	moved := records(value(0, 0), value(0, 1))
	moved[1].Offset = 2
	for want, k := range map[string]struct {
		records []*kgo.Record
		acked   [][]int64
	}{
		"3 records were acknowledged, 2 are there": {good, [][]int64{{0, 2, 3}, {1}}},
		"was acknowledged at 1":                    {good, [][]int64{{0, 1}, {1}}},
		"a gap or a duplicate":                     {records(value(0, 0), value(0, 0)), [][]int64{{0}}},
		"record 2 of producer 0":                   {records(value(0, 0), value(0, 2)), [][]int64{{0}}},
		"offset 2 where 1 should be":               {moved, [][]int64{{0}}},
		"nobody wrote":                             {records("x"), [][]int64{nil}},
	} {
		require.ErrorContains(t, compare(k.records, k.acked), want)
	}
}
