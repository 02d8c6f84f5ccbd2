package api

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Produce (key 0): v0-13
//
// Behaviour:
//   - acks is -1, 0 or 1, else INVALID_REQUIRED_ACKS for every partition.
//   - acks=0 gets no response; when anything went wrong the connection is closed, so that the client looks for new metadata.
//   - acks=-1 and appends that have to be flushed first (flush.messages) are answered when they are committed, or after the
//     request's timeout with REQUEST_TIMED_OUT: the records stay in the log. Meanwhile the connection goes on.
//   - Partitions succeed and fail one by one. A partition given twice is appended once, the last records count.
//   - Topics are never created. Internal ones take nothing from clients: INVALID_TOPIC_EXCEPTION.
//   - Batches are stamped where they lie in the frame and appended from there.
//   - Transactional batches want a transactional id, else TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the whole request, as in
//     Kafka. The first one of a transaction in a partition is verified with the coordinator (KIP-890), see verifyTransaction.
//     A transactional id alone does no harm.
//   - Where the topic asks for it (barnabas.partitioner.check, which Kafka doesn't have), records whose keys belong into another
//     partition are counted, or refused with INVALID_RECORD and their indexes. When the partitioner can't say, they are
//     refused with REQUEST_TIMED_OUT, which clients try again.
//   - Null records, which Kafka never answers, are an INVALID_RECORD.
//
// Versions:
//
//	v0-2: message formats 0, 1 and 2, any number of messages; converted to format 2
//	v1: throttle time
//	v2: log append time (KIP-32)
//	v3: transactional id; exactly one batch of format 2 for each partition (KIP-98)
//	v4: KAFKA_STORAGE_ERROR may come (KIP-112)
//	v5: log start offset (KIP-107)
//	v6: answered before throttling (KIP-219)
//	v7: zstd (KIP-110)
//	v8: which records were refused, and why (KIP-467)
//	v9: flexible (KIP-482)
//	v10: current leader and where it is, with NOT_LEADER_OR_FOLLOWER (KIP-951)
//	v11: TRANSACTION_ABORTABLE may come (KIP-890)
//	v12: a transactional batch adds its partition to the transaction (KIP-890); only for clients that see transaction.version 2,
//	     which isn't listed, so nothing but the number differs from v11
//	v13: topic ids instead of names (KIP-516); UNKNOWN_TOPIC_ID may come
func (h *handlers) produce(ctx context.Context, r *Request) Reply {
	x, ok := h.produceCalls.Get().(*produceCall)
	if !ok {
		x = &produceCall{h: h}
		x.verify = x.verifyTransaction
	}
	if err := x.request.decode(r.Version(), r.wire.Body); err != nil {
		x.recycle()
		return wire.Close(fmt.Errorf("Produce version %d: %w", r.Version(), err))
	}
	x.listener, x.software = r.Listener(), r.Software()
	if x.request.acks != 0 {
		x.response = r.wire.NewResponse()
	}
	if x.request.transactional {
		defer x.permit(ctx, r)()
	}
	x.run()
	return x.reply()
}

// produceKind is what requests of this file count as.
const produceKind = meter.Kind(kmsg.Produce)

// produceCall is one Produce request under way. It is used again, unless its answer waited in vain.
type produceCall struct {
	h        *handlers
	request  produceRequest
	listener string
	software wire.Software
	leaders  leaders
	failed   error // the first thing that went wrong
	verify   func(producerID int64, epoch int16) error
	verified partition.ID // the partition that verify is about

	mu       sync.Mutex // guards what follows, once something waits
	response *wire.Response
	waits    []produceWait
	ends     []func(error) // of each of waits; kept, as they are about nothing but the place in it
	left     int           // waits that are not over, and 1 until all of them are known
	pending  *wire.Pending
	timer    *time.Timer
}

// produceWait is a partition whose append isn't committed yet.
type produceWait struct {
	p        *partition.Partition
	appended partition.Appended
	codeAt   int // of its error code in the response, which says REQUEST_TIMED_OUT until the wait is over
	over     bool
	cancel   func() bool
}

func (x *produceCall) recycle() {
	x.request.forget()
	clear(x.waits)
	x.waits, x.leaders.nodes = x.waits[:0], x.leaders.nodes[:0]
	x.response, x.failed, x.pending, x.timer, x.left = nil, nil, nil, nil, 0
	x.h.produceCalls.Put(x)
}

// run appends to all partitions, and writes the response as far as it is known.
func (x *produceCall) run() {
	q := &x.request
	refused := x.refuseTransactional()
	var out []byte
	if x.response != nil {
		out = appendArrayLen(x.response.B, len(q.topics), q.version >= 9)
	}
	for i := range q.topics {
		t := &q.topics[i]
		if x.response != nil {
			out = appendProduceTopic(out, q.version, t, t.to-t.from)
		}
		for j := t.from; j < t.to; j++ {
			result, wait := x.append(t, &q.partitions[j], refused)
			if x.response == nil {
				continue
			}
			if wait.p != nil {
				result.code = kerr.RequestTimedOut.Code
			}
			var at int
			if out, at = appendProduceResult(out, q.version, &result); wait.p != nil {
				wait.codeAt = at
				x.waits = append(x.waits, wait)
			}
		}
		if x.response != nil {
			out = appendProduceEnd(out, q.version)
		}
	}
	if x.response != nil {
		x.response.B = appendProduceTail(out, q.version, x.leaders.nodes)
	}
}

// refuseTransactional is the error for the whole request when a batch in it is transactional, but the request has no
// transactional id.
func (x *produceCall) refuseTransactional() error {
	if x.request.transactional {
		return nil
	}
	for i := range x.request.partitions {
		if transactional(x.request.partitions[i].records) {
			return kerr.TransactionalIDAuthorizationFailed
		}
	}
	return nil
}

func transactional(records []byte) bool {
	h, err := record.ParseHeader(records)
	return err == nil && h.Attributes.Transactional()
}

// nobodysTransaction reports whether a batch is transactional and has no producer.
func nobodysTransaction(records []byte) bool {
	h, err := record.ParseHeader(records)
	return err == nil && h.Attributes.Transactional() && h.ProducerID < 0
}

// append appends what the request has for one partition. When that still has to be committed, wait.p is set.
func (x *produceCall) append(t *produceTopic, q *producePartition, refused error) (result produceResult, wait produceWait) {
	result = produceResult{partition: q.partition, baseOffset: -1, logAppendTime: -1, logStart: -1, leader: -1, leaderEpoch: -1}
	p, err := x.check(t, q, refused)
	if err != nil {
		x.fail(&result, err)
		x.point(&result, p, borrow(t.name), t.id)
		if bad := (*unframed)(nil); errors.As(err, &bad) && result.code == kerr.CorruptMessage.Code && !onlyShort(q.records) {
			result.message = bad.Error() // the only error without record errors that Kafka explains
		}
		return result, wait
	}
	x.verified = p.ID()
	done, err := p.Append(partition.Append{Batches: q.records, Acks: x.request.acks, Client: log.Client(x.software), Verify: x.verify})
	if err != nil {
		x.fail(&result, err)
		x.point(&result, p, "", t.id)
		x.explain(&result, p, err)
		return result, wait
	}
	result.baseOffset, result.logAppendTime, result.logStart = done.BaseOffset, done.LogAppendTime, done.StartOffset
	if x.request.acks == -1 || x.request.acks == 1 && done.Flush {
		wait = produceWait{p: p, appended: done}
	}
	return result, wait
}

// unverified is the error of a batch that its producer's transaction doesn't allow.
type unverified struct{ error }

func (e *unverified) Unwrap() error { return e.error }

// verifyTransaction says whether a producer may open its transaction in the partition that is appended to. What keeps the
// coordinator from knowing is told as NOT_ENOUGH_REPLICAS, at which all clients try again without looking for another leader.
func (x *produceCall) verifyTransaction(producerID int64, epoch int16) error {
	if x.h.Transactions == nil {
		return &unverified{kerr.InvalidProducerIDMapping}
	}
	err := x.h.Transactions.Verify(borrow(x.request.txnID), producerOf(producerID, epoch), x.verified)
	if err == nil {
		return nil
	}
	switch c := abortableCode(x.request.version >= 11, fencedCode(false, err)); c {
	case kerr.ConcurrentTransactions.Code, kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code:
		return &unverified{fmt.Errorf("%w: %w", kerr.NotEnoughReplicas, err)}
	default:
		return &unverified{fmt.Errorf("%w: %w", kerr.ErrorForCode(c), err)}
	}
}

// permit asks the coordinator of the request's transaction, when that is another broker, whether it may be opened in the
// partitions where it isn't. What it says holds until release is called.
func (x *produceCall) permit(ctx context.Context, r *Request) (release func()) {
	if x.h.Transactions == nil {
		return func() {}
	}
	if _, elsewhere := x.h.Transactions.Elsewhere(borrow(x.request.txnID)); !elsewhere {
		return func() {}
	}
	var who txn.Producer
	var partitions []partition.ID
	for i := range x.request.topics {
		t := &x.request.topics[i]
		for j := t.from; j < t.to; j++ {
			q := &x.request.partitions[j]
			b, err := record.ParseHeader(q.records)
			if err != nil || !b.Attributes.Transactional() || b.ProducerID < 0 {
				continue
			}
			one := producerOf(b.ProducerID, b.ProducerEpoch)
			p, err := x.h.find(borrow(t.name), t.id, x.request.version >= 13, q.partition)
			if err != nil || !p.IsLeader() || p.Log().TransactionOpen(one.ID, one.Epoch) || len(partitions) > 0 && one != who {
				continue // a request has one producer: another one's batch is left to be refused
			}
			who = one
			partitions = append(partitions, p.ID())
		}
	}
	if len(partitions) == 0 {
		return func() {}
	}
	r.Waiting()
	defer r.Resume()
	return x.h.Transactions.Permit(ctx, string(x.request.txnID), who, partitions)
}

// unframed is the error of a record set that isn't one batch as the request's version wants it.
type unframed struct{ error }

func (e *unframed) Unwrap() error { return e.error }

// onlyShort reports whether all that is wrong with the frame of a batch is that its length leaves no room for a header of
// format 2, though it would for one of format 0. Kafka finds that later than all other lies.
func onlyShort(records []byte) bool {
	const leastLegacy = 14
	return len(records) > 16 && records[16] == record.Magic && int32(binary.BigEndian.Uint32(records[8:])) >= leastLegacy
}

func (x *produceCall) fail(result *produceResult, err error) {
	result.code = code(err)
	x.h.Meter.Failed(produceKind, result.code)
	if x.failed == nil {
		x.failed = err
	}
	if result.code == unknownError && !errors.Is(err, record.ErrCorrupt) {
		x.h.Logger.Error("cannot append", "error", err)
	}
}

// check finds the partition and refuses what can be refused without it. The partition may be there with an error, too.
func (x *produceCall) check(t *produceTopic, q *producePartition, refused error) (*partition.Partition, error) {
	if refused != nil {
		return nil, refused
	}
	p, err := x.h.find(borrow(t.name), t.id, x.request.version >= 13, q.partition)
	if err != nil {
		return nil, err
	}
	if q.records == nil {
		return p, fmt.Errorf("%w: null records", record.ErrInvalid)
	}
	if err := record.CheckVersion(x.request.version, q.records); err != nil {
		return p, &unframed{err}
	}
	switch acks := x.request.acks; {
	case acks < -1 || acks > 1:
		return p, kerr.InvalidRequiredAcks
	case internalTopic(p.ID().Topic):
		return p, kerr.InvalidTopicException
	case x.request.transactional && nobodysTransaction(q.records):
		return p, kerr.InvalidProducerIDMapping
	}
	return p, nil
}

// point adds who leads, when that is what the client got wrong. The partition may be nil; then its topic counts.
func (x *produceCall) point(result *produceResult, p *partition.Partition, topic string, id [16]byte) {
	if x.request.version >= 10 && result.code == kerr.NotLeaderForPartition.Code {
		result.leader, result.leaderEpoch = x.leaders.of(x.h, x.listener, p, topic, id, result.partition)
	}
}

// explain fills in what the answer says besides the code when an append was refused: Kafka tells the log's start with errors
// about the records, and not with those about the partition or about sizes.
func (x *produceCall) explain(result *produceResult, p *partition.Partition, err error) {
	switch result.code {
	case kerr.UnknownTopicOrPartition.Code, kerr.NotLeaderForPartition.Code, kerr.MessageTooLarge.Code, kerr.RecordListTooLarge.Code,
		kerr.CorruptMessage.Code, kerr.KafkaStorageError.Code:
		return
	}
	if bad := (*unverified)(nil); errors.As(err, &bad) {
		if result.code == kerr.InvalidTxnState.Code { // the only one that Kafka explains
			result.message = "Partition was not added to the transaction"
		}
		return
	}
	result.logStart = p.Log().StartOffset()
	var bad *record.RecordErrors
	if !errors.As(err, &bad) {
		return
	}
	result.message = bad.Error()
	for _, r := range bad.Records {
		result.records = append(result.records, recordError{r.Index, r.Message})
	}
}

// reply is the answer, or the promise of one. The call isn't the caller's any more.
func (x *produceCall) reply() Reply {
	if x.request.acks == 0 {
		failed := x.failed
		x.recycle()
		if failed != nil {
			return wire.Close(fmt.Errorf("Produce with acks=0: %w", failed))
		}
		return wire.Silence()
	}
	timeout := time.Duration(x.request.timeoutMs) * time.Millisecond
	if !x.register() {
		out := x.response
		x.recycle()
		return wire.RespondSoon(out)
	}
	if timeout <= 0 {
		x.expire()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.request.forget()
	if x.left--; x.left == 0 {
		return wire.Respond(x.response)
	}
	x.pending = wire.NewPending(x.expire)
	x.timer = time.AfterFunc(timeout, x.expire)
	return wire.Later(x.pending)
}

// register asks for each wait to be told when it is over, and reports whether any may still not be.
func (x *produceCall) register() bool {
	x.left = 1
	waiting := false
	for i := range x.waits {
		w := &x.waits[i]
		x.mu.Lock()
		x.left++
		x.mu.Unlock()
		if i == len(x.ends) {
			x.ends = append(x.ends, func(err error) { x.finish(i, err) })
		}
		done, err, cancel := w.p.Committed(w.appended, x.request.acks, x.ends[i])
		if done {
			x.finish(i, err)
			continue
		}
		waiting = true
		x.mu.Lock()
		w.cancel = cancel
		x.mu.Unlock()
	}
	return waiting
}

// finish ends one wait. It may be called from any goroutine.
func (x *produceCall) finish(i int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	w := &x.waits[i]
	w.over = true
	c := code(err)
	x.h.Meter.Failed(produceKind, c)
	appendInt16(x.response.B[:w.codeAt], c)
	x.end()
}

// end counts one wait down; the last one completes the reply. Called with mu held.
func (x *produceCall) end() {
	if x.left--; x.left > 0 || x.pending == nil {
		return
	}
	stopped := x.timer.Stop()
	if x.pending.Complete(wire.Respond(x.response)) && stopped {
		x.recycle() // all waits are over, and nobody is left who would call expire
	}
}

// expire gives up the waits that are not over: because the time is, or the client has gone.
func (x *produceCall) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.waits {
		w := &x.waits[i]
		if !w.over && w.cancel != nil && w.cancel() {
			w.over = true
			x.h.Meter.Failed(produceKind, kerr.RequestTimedOut.Code)
			x.end()
		}
	}
}
