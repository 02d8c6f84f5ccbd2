package pluginv1_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// TestBatchesRoundTrip sends batches of every kind through the wire's bytes, with the memory of the batch before.
func TestBatchesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOrNil := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 9))
		record := rapid.Custom(func(t *rapid.T) partitioner.Record {
			r := partitioner.Record{Key: bytesOrNil.Draw(t, "key"), Value: bytesOrNil.Draw(t, "value")}
			for range rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "headers") {
				r.Headers = append(r.Headers, partitioner.Header{Key: rapid.StringN(0, 5, -1).Draw(t, "name"), Value: bytesOrNil.Draw(t, "value")})
			}
			return r
		})
		q := &pluginv1.PartitionRequest{}
		for range 2 {
			b := &partitioner.Batch{Topic: "t", Partitions: 7, Available: []int32{1, 2}, Records: rapid.SliceOfN(record, 0, 9).Draw(t, "records")}
			if b.Records == nil {
				b.Records = []partitioner.Record{}
			}
			q.SetBatch(b, b.Records)
			data, err := proto.Marshal(q)
			require.NoError(t, err)
			got := &pluginv1.PartitionRequest{}
			require.NoError(t, proto.Unmarshal(data, got))
			same, err := got.Batch()
			require.NoError(t, err)
			require.Equal(t, b, same)
		}
	})
}

// FuzzBatch wants requests that make no sense refused, and no memory taken on their word.
func FuzzBatch(f *testing.F) {
	q := &pluginv1.PartitionRequest{}
	b := &partitioner.Batch{Topic: "t", Partitions: 3, Records: []partitioner.Record{{Key: []byte("k"), Headers: []partitioner.Header{{Key: "h"}}}, {Value: []byte("v")}}}
	q.SetBatch(b, b.Records)
	data, err := proto.Marshal(q)
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var q pluginv1.PartitionRequest
		if proto.Unmarshal(data, &q) != nil {
			return
		}
		b, err := q.Batch()
		if err != nil {
			require.ErrorIs(t, err, partitioner.ErrInvalid)
			return
		}
		size := 0
		for _, r := range b.Records {
			size += len(r.Key) + len(r.Value)
		}
		require.LessOrEqual(t, size, len(data))
	})
}

// FuzzWrite wants writes that make no sense refused with an error of the contract.
func FuzzWrite(f *testing.F) {
	q, err := pluginv1.NewWriteRequest(0, 1, offsets.Batch{Producer: &offsets.Producer{ID: 3}, Entries: []offsets.Entry{
		{Key: offsets.OffsetKey("g", "t", 1), Offset: &offsets.Offset{Offset: 4}}, {Key: offsets.GroupKey("g")},
	}})
	require.NoError(f, err)
	data, err := proto.Marshal(q)
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var q pluginv1.WriteRequest
		if proto.Unmarshal(data, &q) != nil {
			return
		}
		if _, err := q.Batch(); err != nil {
			require.True(t, errors.Is(err, offsets.ErrCorrupt) || errors.Is(err, offsets.ErrUnsupported), "%v", err)
		}
	})
}

// TestErrorsKeepTheirIdentity sends each sentinel of each contract across.
func TestErrorsKeepTheirIdentity(t *testing.T) {
	for role, list := range map[string][]error{
		pluginv1.RolePartitioner: {partitioner.ErrUnavailable, partitioner.ErrInvalid},
		pluginv1.RoleCompression: {compression.ErrCorrupt, compression.ErrTooLarge, compression.ErrLevel, compression.ErrNotRunning},
		pluginv1.RoleOffsets: {offsets.ErrUnavailable, offsets.ErrNotOwner, offsets.ErrTimedOut, offsets.ErrTooLarge, offsets.ErrUnsupported,
			offsets.ErrCorrupt, offsets.ErrClosed},
	} {
		for _, sentinel := range list {
			err := pluginv1.NewError(role, fmt.Errorf("geo: %w: because", sentinel)).For(role)
			require.ErrorIs(t, err, sentinel)
			require.EqualError(t, err, "geo: "+sentinel.Error()+": because")
		}
		for _, other := range []error{pluginv1.NewError(role, errors.New("boom")).For(role), (&pluginv1.Error{Code: 99}).For(role), (&pluginv1.Error{Code: pluginv1.Code_CODE_OPTIONS}).For(role)} {
			require.Error(t, other)
			for _, sentinel := range list {
				require.NotErrorIs(t, other, sentinel)
			}
		}
		require.NoError(t, pluginv1.NewError(role, nil).For(role))
	}
	long := pluginv1.NewError(pluginv1.RoleOffsets, errors.New(string(make([]byte, 1<<20))))
	require.Less(t, len(long.GetMessage()), 5000)
}
