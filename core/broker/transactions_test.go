package broker_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/memory"
	"github.com/barnabas-mq/barnabas/plugins/offsetstores/topic"
	storagesendfile "github.com/barnabas-mq/barnabas/storage-sendfile"
)

// values reads what is in a topic up to its last stable offset.
func values(t *testing.T, address, name string) (list []string) {
	c := client(t, address, kgo.ConsumeTopics(name), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ends, err := kadm.NewClient(c).ListCommittedOffsets(t.Context(), name)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	for at := int64(0); ctx.Err() == nil && at < ends[name][0].Offset; {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) { list, at = append(list, string(r.Value)), r.Offset+1 })
	}
	return list
}

// request sends a request and gives its answer.
func request[R kmsg.Response](t *testing.T, c *kgo.Client, req kmsg.Request) R {
	resp, err := c.Request(t.Context(), req)
	require.NoError(t, err)
	return resp.(R)
}

// open begins a transaction that has written a record to topic t and committed offset 7 for group g.
func open(t *testing.T, c *kgo.Client, id, value string) txn.Producer {
	begin := kmsg.NewPtrInitProducerIDRequest()
	begin.TransactionalID, begin.TransactionTimeoutMillis = &id, 60000
	started := request[*kmsg.InitProducerIDResponse](t, c, begin)
	require.Zero(t, started.ErrorCode)
	p := txn.Producer{ID: started.ProducerID, Epoch: started.ProducerEpoch}

	add := kmsg.NewPtrAddPartitionsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch = id, p.ID, p.Epoch
	add.Topics = []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0}}}
	require.Zero(t, request[*kmsg.AddPartitionsToTxnResponse](t, c, add).Topics[0].Partitions[0].ErrorCode)

	b := record.NewBuilder(record.Options{Transactional: true, Producer: &record.Producer{ID: p.ID, Epoch: p.Epoch}})
	require.NoError(t, b.Append(record.Record{Timestamp: time.Now().UnixMilli(), Value: []byte(value)}))
	records, err := b.Build(nil, nil)
	require.NoError(t, err)
	produce := kmsg.NewPtrProduceRequest()
	produce.TransactionID, produce.Acks, produce.TimeoutMillis = &id, -1, 5000
	produce.Topics = []kmsg.ProduceRequestTopic{{Topic: "t", TopicID: topicID(t, c, "t"), Partitions: []kmsg.ProduceRequestTopicPartition{{Records: records}}}}
	require.Zero(t, request[*kmsg.ProduceResponse](t, c, produce).Topics[0].Partitions[0].ErrorCode)

	group := kmsg.NewPtrAddOffsetsToTxnRequest()
	group.TransactionalID, group.ProducerID, group.ProducerEpoch, group.Group = id, p.ID, p.Epoch, "g"
	require.Zero(t, request[*kmsg.AddOffsetsToTxnResponse](t, c, group).ErrorCode)
	commit := kmsg.NewPtrTxnOffsetCommitRequest()
	commit.TransactionalID, commit.ProducerID, commit.ProducerEpoch, commit.Group, commit.Generation = id, p.ID, p.Epoch, "g", -1
	commit.Topics = []kmsg.TxnOffsetCommitRequestTopic{{Topic: "t", Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{{Offset: 7, LeaderEpoch: -1}}}}
	require.Zero(t, request[*kmsg.TxnOffsetCommitResponse](t, c, commit).Topics[0].Partitions[0].ErrorCode)
	return p
}

func topicID(t *testing.T, c *kgo.Client, name string) [16]byte {
	d, err := kadm.NewClient(c).ListTopics(t.Context(), name)
	require.NoError(t, err)
	return d[name].ID
}

func transactionState(t *testing.T, c *kgo.Client, id string) string {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	return request[*kmsg.DescribeTransactionsResponse](t, c, req).TransactionStates[0].State
}

func committedOffset(t *testing.T, c *kgo.Client) int64 {
	all, err := kadm.NewClient(c).FetchOffsets(t.Context(), "g")
	require.NoError(t, err)
	o, ok := all.Lookup("t", 0)
	if !ok {
		return -1
	}
	return o.At
}

// TestTransactions commits and aborts, records and offsets, over each kind of offsets store.
func TestTransactions(t *testing.T) {
	for _, store := range []offsets.Factory{topic.NewFactory(), memory.NewFactory()} {
		t.Run(store.Name(), func(t *testing.T) {
			address, _ := startBroker(t, t.TempDir(), store)
			fill(t, address, "t", 1, 1)
			c := client(t, address)
			for i, commit := range []bool{false, true} {
				id := fmt.Sprint("id", i)
				p := open(t, c, id, "in a transaction")
				require.Equal(t, []string{"0"}, values(t, address, "t"), "open")
				require.EqualValues(t, -1, committedOffset(t, c))
				end := kmsg.NewPtrEndTxnRequest()
				end.TransactionalID, end.ProducerID, end.ProducerEpoch, end.Commit = id, p.ID, p.Epoch, commit
				require.Zero(t, request[*kmsg.EndTxnResponse](t, c, end).ErrorCode)
				want := "CompleteAbort"
				if commit {
					want = "CompleteCommit"
				}
				require.Eventually(t, func() bool { return transactionState(t, c, id) == want }, time.Minute, time.Millisecond)
			}
			require.Equal(t, []string{"0", "in a transaction"}, values(t, address, "t"))
			require.EqualValues(t, 7, committedOffset(t, c))
		})
	}
}

// TestCommitIsCompletedAfterACrash makes a data directory as a broker leaves it that dies between deciding a transaction and
// writing the markers. The next one writes them, and reads of committed records go on.
func TestCommitIsCompletedAfterACrash(t *testing.T) {
	for _, state := range []txn.State{txn.PrepareCommit, txn.PrepareAbort} {
		t.Run(state.String(), func(t *testing.T) {
			dir := t.TempDir()
			address, stop := startBroker(t, dir, topic.NewFactory())
			fill(t, address, "t", 1, 1)
			c := client(t, address)
			p := open(t, c, "id", "decided")
			require.Equal(t, "Ongoing", transactionState(t, c, "id"))
			c.Close()
			stop()
			decide(t, dir, "id", p, state)

			address, _ = startBroker(t, dir, topic.NewFactory())
			c = client(t, address)
			complete, read, offset := "CompleteAbort", []string{"0"}, int64(-1)
			if state == txn.PrepareCommit {
				complete, read, offset = "CompleteCommit", []string{"0", "decided"}, 7
			}
			require.Eventually(t, func() bool { return transactionState(t, c, "id") == complete }, time.Minute, time.Millisecond)
			require.Equal(t, read, values(t, address, "t"))
			require.Equal(t, offset, committedOffset(t, c))
			ends, err := kadm.NewClient(c).ListEndOffsets(t.Context(), "t")
			require.NoError(t, err)
			stable, err := kadm.NewClient(c).ListCommittedOffsets(t.Context(), "t")
			require.NoError(t, err)
			require.EqualValues(t, 3, ends["t"][0].Offset, "two records and one marker")
			require.Equal(t, ends["t"][0].Offset, stable["t"][0].Offset)
		})
	}
}

// decide appends to the log of transactions how one ends.
func decide(t *testing.T, dir, id string, p txn.Producer, state txn.State) {
	shard := offsets.ShardOf(id, 50)
	storage, err := storagesendfile.New(storagesendfile.DefaultOptions())
	require.NoError(t, err)
	require.NoError(t, storage.Start(t.Context()))
	defer func() { require.NoError(t, storage.Stop(context.Background())) }()
	l, err := log.Open(t.Context(), log.Options{Dir: filepath.Join(dir, fmt.Sprintf("%s-%d", txn.Topic, shard)), Topic: txn.Topic, Partition: shard,
		Storage: storage, Config: log.DefaultConfig(), CleanShutdown: true})
	require.NoError(t, err)
	key, err := txn.AppendKey(nil, id)
	require.NoError(t, err)
	now := time.Now().UnixMilli()
	value := txn.AppendValue(nil, txn.Record{ProducerID: p.ID, Epoch: p.Epoch, Timeout: time.Minute, State: state, Updated: now, Started: now,
		Partitions: []partition.ID{{Topic: topic.Name, Partition: offsets.ShardOf("g", 5)}, {Topic: "t", Partition: 0}}})
	b := record.NewBuilder(record.Options{LeaderEpoch: record.NoLeaderEpoch})
	require.NoError(t, b.Append(record.Record{Timestamp: now, Key: key, Value: value}))
	batch, err := b.Build(nil, nil)
	require.NoError(t, err)
	_, err = l.AppendLeader(log.LeaderAppend{Batches: batch, LeaderEpoch: l.LatestEpoch(), Origin: record.FromCoordinator})
	require.NoError(t, err)
	require.NoError(t, l.Close(context.Background()))
}
