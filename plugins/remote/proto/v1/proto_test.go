package pluginv1_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/mem"
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
		var task pluginv1.PartitionTask
		codec := pluginv1.NewCodec()
		for number := range uint64(3) {
			b := &partitioner.Batch{Topic: "t", Partitions: 7, Available: []int32{1, 2}, Records: rapid.SliceOfN(record, 0, 9).Draw(t, "records")}
			// The call's own bytes, read by the task and by what is generated.
			data, err := codec.Marshal(&pluginv1.PartitionCall{Batch: b, Records: b.Records, Number: number << 20})
			require.NoError(t, err)
			got := &pluginv1.PartitionRequest{}
			require.NoError(t, proto.Unmarshal(data.Materialize(), got))
			require.Equal(t, number<<20, got.GetCall())
			same, err := got.Batch()
			require.NoError(t, err)
			requireSame(t, b, same)
			require.NoError(t, codec.Unmarshal(data, &task))
			require.Equal(t, number<<20, task.Number)
			same, err = task.Batch()
			require.NoError(t, err)
			requireSame(t, b, same)
			task.Free()
			data.Free()
		}
	})
}

// requireSame compares batches, for which no list and an empty one are the same.
func requireSame(t require.TestingT, want, got *partitioner.Batch) {
	require.Equal(t, want.Topic, got.Topic)
	require.Equal(t, want.Partitions, got.Partitions)
	require.True(t, slices.Equal(want.Available, got.Available))
	require.Len(t, got.Records, len(want.Records))
	for i := range want.Records {
		require.Equal(t, want.Records[i], got.Records[i])
	}
}

// TestAnswersRoundTrip does so with answers.
func TestAnswersRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		codec := pluginv1.NewCodec()
		in := pluginv1.PartitionAnswer{Most: 20}
		for range 3 {
			out := &pluginv1.PartitionAnswer{Number: rapid.Uint64().Draw(t, "call"), Partitions: rapid.SliceOfN(rapid.Int32(), 0, 20).Draw(t, "partitions")}
			if rapid.Bool().Draw(t, "failed") {
				out.Error = &pluginv1.Error{Code: pluginv1.Code_CODE_INVALID, Message: rapid.String().Draw(t, "message")}
			}
			data, err := codec.Marshal(out)
			require.NoError(t, err)
			got := &pluginv1.PartitionResponse{}
			require.NoError(t, proto.Unmarshal(data.Materialize(), got))
			require.NoError(t, codec.Unmarshal(data, &in))
			data.Free()
			require.Equal(t, out.Number, in.Number)
			require.Equal(t, out.Number, got.GetCall())
			require.True(t, slices.Equal(out.Partitions, in.Partitions))
			require.True(t, slices.Equal(out.Partitions, got.GetPartitions()))
			require.True(t, proto.Equal(out.Error, in.Error))
			require.True(t, proto.Equal(out.Error, got.GetError()))
		}
	})
}

// someRequests are seeds for fuzzing.
func someRequests(f *testing.F) {
	b := &partitioner.Batch{Topic: "t", Partitions: 3, Available: []int32{0, 2}, Records: []partitioner.Record{
		{Key: []byte("k"), Headers: []partitioner.Header{{Key: "h"}}}, {Value: []byte("v")},
	}}
	data, err := pluginv1.NewCodec().Marshal(&pluginv1.PartitionCall{Batch: b, Records: b.Records, Number: 300})
	require.NoError(f, err)
	f.Add(data.Materialize())
	f.Add([]byte{})
	f.Add([]byte("\x18\x01\x18\x02\x22\x02\x10\x01\x22\x02\x10\x01\x2a\x03\x12\x01\x01")) // numbers that aren't packed, a column in parts
}

// FuzzBatch wants requests that make no sense refused, and no memory taken on their word. What reads them by hand and what is
// generated must agree.
func FuzzBatch(f *testing.F) {
	someRequests(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var q pluginv1.PartitionRequest
		var task pluginv1.PartitionTask
		failed := proto.Unmarshal(data, &q) != nil
		err := pluginv1.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &task)
		require.Equal(t, failed, err != nil, "%v", err)
		if failed {
			return
		}
		b, err := q.Batch()
		same, other := task.Batch()
		require.Equal(t, err, other)
		if err != nil {
			require.ErrorIs(t, err, partitioner.ErrInvalid)
			return
		}
		requireSame(t, b, same)
		size := 0
		for _, r := range b.Records {
			size += len(r.Key) + len(r.Value)
		}
		require.LessOrEqual(t, size, len(data))
		require.Equal(t, q.GetCall(), task.Number)
	})
}

// FuzzAnswer is FuzzBatch for answers.
func FuzzAnswer(f *testing.F) {
	for _, a := range []*pluginv1.PartitionAnswer{{Partitions: []int32{1, -1}, Number: 7}, {Error: &pluginv1.Error{Code: 3, Message: "no"}}} {
		data, err := pluginv1.NewCodec().Marshal(a)
		require.NoError(f, err)
		f.Add(data.Materialize())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var q pluginv1.PartitionResponse
		a := pluginv1.PartitionAnswer{Most: 10}
		failed := proto.Unmarshal(data, &q) != nil || len(q.GetPartitions()) > a.Most
		err := pluginv1.NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &a)
		require.Equal(t, failed, err != nil, "%v", err)
		if !failed {
			require.True(t, slices.Equal(q.GetPartitions(), a.Partitions))
			require.Equal(t, q.GetCall(), a.Number)
			require.True(t, proto.Equal(q.GetError(), a.Error))
		}
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
