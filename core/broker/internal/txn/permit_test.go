package txn

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
)

// oracle is a coordinator elsewhere.
type oracle struct {
	asked  []int32 // brokers
	answer func(*kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error)
}

func (o *oracle) AddPartitionsToTxn(_ context.Context, broker int32, req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
	o.asked = append(o.asked, broker)
	return o.answer(req)
}

// says answers with a code for each partition number, and leaves out others.
func says(codes map[int32]int16) func(*kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
	return func(req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
		resp := req.ResponseKind().(*kmsg.AddPartitionsToTxnResponse)
		in := req.Transactions[0]
		out := kmsg.AddPartitionsToTxnResponseTransaction{TransactionalID: in.TransactionalID}
		for _, t := range in.Topics {
			topic := kmsg.AddPartitionsToTxnResponseTransactionTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				if c, ok := codes[p]; ok && in.VerifyOnly {
					topic.Partitions = append(topic.Partitions, kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{Partition: p, ErrorCode: c})
				}
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Transactions = append(resp.Transactions, out)
		return resp, nil
	}
}

// TestPermit goes by the word of a coordinator elsewhere until it is released, or a marker comes.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		o := &oracle{answer: says(map[int32]int16{0: 0, 1: kerr.TransactionAbortable.Code})}
		guards := NewGuards()
		m := New(Options{Config: Config{Verify: true}, Log: w.log, Leader: w.leader, Now: time.Now, Markers: w, Coordinators: o, VerifyVersion: 5, Guards: guards})
		require.NoError(t, m.Prepare(t.Context()))
		defer m.Stop(context.Background())
		p, to := producer(7, 3), parts("t", 0, 1, 2)
		require.ErrorIs(t, m.Verify("a", p, to[0]), ErrConcurrent, "nobody was asked")
		require.ErrorIs(t, m.VerifyProducer(p, to[0]), ErrProducerMapping)

		release := m.Permit(t.Context(), "a", p, to)
		shard, elsewhere := m.Elsewhere("a")
		require.True(t, elsewhere)
		leader, _ := w.leader(partition.ID{Topic: Topic, Partition: shard})
		require.Equal(t, []int32{leader}, o.asked)
		require.NoError(t, m.Verify("a", p, to[0]))
		require.NoError(t, m.VerifyProducer(p, to[0]))
		require.ErrorIs(t, m.Verify("a", p, to[1]), kerr.TransactionAbortable)
		require.ErrorIs(t, m.Verify("a", p, to[2]), ErrUnavailable, "not in the answer")
		require.ErrorIs(t, m.Verify("a", producer(7, 2), to[0]), ErrConcurrent, "another epoch")
		require.ErrorIs(t, m.Verify("a", producer(8, 3), to[0]), ErrConcurrent, "another producer")
		guards.fall(to[0], 7)
		require.ErrorIs(t, m.Verify("a", p, to[0]), ErrConcurrent, "a marker has come")
		again := m.Permit(t.Context(), "a", p, to[:1])
		release()
		require.NoError(t, m.Verify("a", p, to[0]), "of the second one")
		again()
		require.ErrorIs(t, m.Verify("a", p, to[0]), ErrConcurrent)
		require.Empty(t, guards.by)

		o.answer = func(*kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
			return nil, errors.New("no line")
		}
		release = m.Permit(t.Context(), "a", p, to)
		require.ErrorIs(t, m.Verify("a", p, to[0]), ErrUnavailable)
		release()

		// Where this broker coordinates, or nothing is verified, nobody is asked.
		asked := len(o.asked)
		m.SetVerify(false)
		m.Permit(t.Context(), "a", p, to)()
		m.SetVerify(true)
		m.Lead(shard, 1)
		synctest.Wait()
		m.Permit(t.Context(), "a", p, to)()
		require.ErrorIs(t, m.Verify("a", p, to[0]), ErrProducerMapping)
		require.Len(t, o.asked, asked)
	})
}

// TestNobodyToAsk lets pass what only coordinators could verify that are too old to be asked.
func TestNobodyToAsk(t *testing.T) {
	w := newWorld()
	m := New(Options{Config: Config{Verify: true}, Log: w.log, Leader: w.leader, Now: time.Now, Markers: w, Coordinators: &oracle{}})
	require.NoError(t, m.Prepare(t.Context()))
	defer m.Stop(context.Background())
	m.Permit(t.Context(), "a", producer(7, 3), parts("t", 0))()
	require.NoError(t, m.Verify("a", producer(7, 3), partition.ID{Topic: "t"}))
	require.NoError(t, m.VerifyProducer(producer(7, 3), partition.ID{Topic: "t"}))
}

// TestMarkersMakeGuardsFall has a marker come while a coordinator is being asked.
func TestMarkersMakeGuardsFall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		guards := NewGuards()
		r := &Receiver{BrokerID: 1, Partitions: nowhere{}, Guards: guards}
		to := parts("t", 0)
		o := &oracle{answer: func(req *kmsg.AddPartitionsToTxnRequest) (*kmsg.AddPartitionsToTxnResponse, error) {
			r.Write(t.Context(), markersRequest(Record{ProducerID: 7, Epoch: 3}, true, 1, to))
			return says(map[int32]int16{0: 0})(req)
		}}
		m := New(Options{Config: Config{Verify: true}, Log: w.log, Leader: w.leader, Now: time.Now, Markers: w, Coordinators: o, VerifyVersion: 5, Guards: guards})
		require.NoError(t, m.Prepare(t.Context()))
		defer m.Stop(context.Background())
		defer m.Permit(t.Context(), "a", producer(7, 3), to)()
		require.ErrorIs(t, m.Verify("a", producer(7, 3), to[0]), ErrConcurrent)
	})
}

// nowhere hosts nothing.
type nowhere struct{}

func (nowhere) Get(partition.ID) (*partition.Partition, error) {
	return nil, partition.ErrUnknownPartition
}
