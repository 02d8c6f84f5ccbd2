package partitioner_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// noted is a partitioner that notes its life.
type noted struct {
	name           string
	life           *[]string
	start, stopped error
}

func (n noted) Start(context.Context) error {
	*n.life = append(*n.life, "start "+n.name)
	return n.start
}

func (n noted) Stop(context.Context) error {
	*n.life = append(*n.life, "stop "+n.name)
	return n.stopped
}

func (noted) Keyed() bool { return true }

func (noted) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	return append(dst, make([]int32, len(b.Records))...), nil
}

func TestSet(t *testing.T) {
	var life []string
	boom := errors.New("boom")
	of := func(name string, start, stopped error) partitioner.Named {
		return partitioner.Named{Name: name, Partitioner: noted{name, &life, start, stopped}}
	}
	s, err := partitioner.NewSet(of("geo", nil, nil), of("dice", nil, boom), of("last", nil, nil))
	require.NoError(t, err)
	require.Equal(t, []string{"geo", "dice", "last"}, s.Names())
	require.Len(t, s.All(), 3)
	p, err := s.Get("dice")
	require.NoError(t, err)
	require.Equal(t, "dice", p.(noted).name)
	_, err = s.Get("gео")
	require.ErrorContains(t, err, "there are: geo, dice, last")
	_, err = s.Get("geos")
	require.ErrorContains(t, err, `did you mean "geo"`)
	require.NoError(t, s.Start(t.Context()))
	require.ErrorIs(t, s.Stop(t.Context()), boom)
	require.Equal(t, []string{"start geo", "start dice", "start last", "stop last", "stop dice", "stop geo"}, life)

	life = nil
	s, err = partitioner.NewSet(of("a", nil, nil), of("b", boom, nil), of("c", nil, nil))
	require.NoError(t, err)
	require.ErrorIs(t, s.Start(t.Context()), boom)
	require.Equal(t, []string{"start a", "start b", "stop a"}, life)

	for _, wrong := range [][]partitioner.Named{{of("a", nil, nil), of("a", nil, nil)}, {of("", nil, nil)}, {{Name: "a"}}} {
		_, err := partitioner.NewSet(wrong...)
		require.Error(t, err)
	}
}
