package api

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/broker/internal/fetchsession"
	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/producerid"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/log"
	"github.com/barnabas-mq/barnabas/core/log/producers"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Codes that mean that there is none, or that nobody knows better.
const (
	noError      int16 = 0
	unknownError int16 = -1
)

// codes pairs what the rooms' errors say with what clients are told. The first that is in an error's chain counts, so
// what wraps others stands before them.
func codes() []struct {
	err  error
	code *kerr.Error
} {
	return []struct {
		err  error
		code *kerr.Error
	}{
		{group.ErrInvalidGroupID, kerr.InvalidGroupID},
		{group.ErrUnavailable, kerr.CoordinatorNotAvailable},
		{group.ErrLoading, kerr.CoordinatorLoadInProgress},
		{group.ErrNotCoordinator, kerr.NotCoordinator},
		{group.ErrUnknownMember, kerr.UnknownMemberID},
		{group.ErrFencedInstance, kerr.FencedInstanceID},
		{group.ErrIllegalGeneration, kerr.IllegalGeneration},
		{group.ErrInconsistentProtocol, kerr.InconsistentGroupProtocol},
		{group.ErrInvalidSession, kerr.InvalidSessionTimeout},
		{group.ErrMemberIDRequired, kerr.MemberIDRequired},
		{group.ErrMaxSize, kerr.GroupMaxSizeReached},
		{group.ErrRebalance, kerr.RebalanceInProgress},
		{group.ErrNonEmpty, kerr.NonEmptyGroup},
		{group.ErrGroupNotFound, kerr.GroupIDNotFound},
		{group.ErrSubscribed, kerr.GroupSubscribedToTopic},
		{group.ErrUnstable, kerr.UnstableOffsetCommit},
		{group.ErrMetadataTooLarge, kerr.OffsetMetadataTooLarge},
		{group.ErrCommitTooLarge, kerr.InvalidCommitOffsetSize},
		{group.ErrTimedOut, kerr.RequestTimedOut},
		{group.ErrUnknown, kerr.UnknownServerError},
		{offsets.ErrUnavailable, kerr.CoordinatorNotAvailable},

		{txn.ErrInvalidRequest, kerr.InvalidRequest},
		{txn.ErrInvalidTimeout, kerr.InvalidTransactionTimeout},
		{txn.ErrUnavailable, kerr.CoordinatorNotAvailable},
		{txn.ErrLoading, kerr.CoordinatorLoadInProgress},
		{txn.ErrNotCoordinator, kerr.NotCoordinator},
		{txn.ErrProducerMapping, kerr.InvalidProducerIDMapping},
		{txn.ErrFenced, kerr.ProducerFenced},
		{txn.ErrConcurrent, kerr.ConcurrentTransactions},
		{txn.ErrState, kerr.InvalidTxnState},
		{txn.ErrNotAdded, kerr.TransactionAbortable},
		{txn.ErrNotFound, kerr.TransactionalIDNotFound},
		{txn.ErrUnknown, kerr.UnknownServerError},
		{producerid.ErrLoading, kerr.CoordinatorLoadInProgress},

		{partition.ErrUnknownPartition, kerr.UnknownTopicOrPartition},
		{partition.ErrUnknownTopicID, kerr.UnknownTopicID},
		{partition.ErrInconsistentTopicID, kerr.InconsistentTopicID},
		{partition.ErrNotLeader, kerr.NotLeaderForPartition},
		{partition.ErrFencedLeaderEpoch, kerr.FencedLeaderEpoch},
		{partition.ErrUnknownLeaderEpoch, kerr.UnknownLeaderEpoch},
		{partition.ErrNotEnoughReplicas, kerr.NotEnoughReplicas},
		{partition.ErrNotEnoughReplicasAfterAppend, kerr.NotEnoughReplicasAfterAppend},
		{partition.ErrOffline, kerr.KafkaStorageError},
		{partition.ErrOffsetNotAvailable, kerr.OffsetNotAvailable},
		{partition.ErrUnsupportedTimestamp, kerr.UnsupportedVersion},
		{partition.ErrOffsetOutOfRange, kerr.OffsetOutOfRange},
		{partition.ErrPolicy, kerr.PolicyViolation},

		{log.ErrOffsetOutOfRange, kerr.OffsetOutOfRange},
		{log.ErrStaleEpoch, kerr.NotLeaderForPartition},
		{log.ErrClosed, kerr.NotLeaderForPartition},
		{log.ErrFailed, kerr.KafkaStorageError},
		{log.ErrCorrupt, kerr.CorruptMessage},

		{producers.ErrOutOfOrder, kerr.OutOfOrderSequenceNumber},
		{producers.ErrEpoch, kerr.InvalidProducerEpoch},
		{producers.ErrTxnState, kerr.InvalidTxnState},
		{producers.ErrCoordinatorFenced, kerr.TransactionCoordinatorFenced},

		{record.ErrTooLarge, kerr.MessageTooLarge},
		{record.ErrLargerThanSegment, kerr.RecordListTooLarge},
		{record.ErrTimestamp, kerr.InvalidTimestamp},
		{record.ErrUnsupportedCodec, kerr.UnsupportedCompressionType},
		{record.ErrUnreadable, kerr.UnknownServerError},
		{record.ErrInvalid, kerr.InvalidRecord},
		{record.ErrCorrupt, kerr.CorruptMessage},
		{record.ErrShort, kerr.CorruptMessage},

		{fetchsession.ErrNotFound, kerr.FetchSessionIDNotFound},
		{fetchsession.ErrEpoch, kerr.InvalidFetchSessionEpoch},
		{fetchsession.ErrTopicIDs, kerr.FetchSessionTopicIDError},

		{controller.ErrNotController, kerr.NotController},
		{election.ErrStaleController, kerr.NotController},
		{election.ErrUnknownTopic, kerr.UnknownTopicOrPartition},
		{election.ErrTopicExists, kerr.TopicAlreadyExists},
		{election.ErrInvalid, kerr.InvalidRequest},
		{kafka.ErrUnknownKey, kerr.InvalidConfig},
		{kafka.ErrInvalidValue, kerr.InvalidConfig},
		{kafka.ErrNotList, kerr.InvalidConfig},
		{kafka.ErrNoValue, kerr.InvalidRequest},
		{kafka.ErrDuplicateKey, kerr.InvalidRequest},
		{kafka.ErrReadOnly, kerr.InvalidRequest},
		{kafka.ErrPerBroker, kerr.InvalidRequest},
		{kafka.ErrUnknownOp, kerr.UnknownServerError},
		{partitioner.ErrUnavailable, kerr.RequestTimedOut},
		{context.DeadlineExceeded, kerr.RequestTimedOut},
	}
}

// code is the Kafka error code for what a room said: 0 for no error, UNKNOWN_SERVER_ERROR for one that has no code.
func code(err error) int16 {
	if err == nil {
		return 0
	}
	var k *kerr.Error
	if errors.As(err, &k) {
		return k.Code
	}
	for _, c := range codes() {
		if errors.Is(err, c.err) {
			return c.code.Code
		}
	}
	return kerr.UnknownServerError.Code
}

// message is the sentence that goes with an error code, nil where Kafka sends none: without an error, and for one that it
// doesn't know.
func message(err error) *string {
	if err == nil || code(err) == kerr.UnknownServerError.Code {
		return nil
	}
	text := err.Error()
	return &text
}

// fault is an error for a client that a handler finds itself.
type fault struct {
	kind *kerr.Error
	text string
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.kind }

func refuse(kind *kerr.Error, text string) error { return &fault{kind, text} }
