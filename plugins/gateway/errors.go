package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// Error is the answer to a request that failed, in the form of both versions of the API.
type Error struct {
	Code    int    `json:"error_code" doc:"the HTTP status, or five digits that begin with it" example:"40401"`
	Message string `json:"message" doc:"what is wrong, for people"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// status is the HTTP status that goes with the code.
func (e *Error) status() int {
	if e.Code >= 10_000 {
		return e.Code / 100
	}
	return e.Code
}

// The API's codes that name a cause.
const (
	codeBadKafka        = 40002 // v3: Kafka refuses what is asked for
	codeNoTopic         = 40401 // v2
	codeNoPartition     = 40402
	codeNoInstance      = 40403 // v2
	codeNoTopicV3       = 40403 // v3
	codeFormatMismatch  = 40601
	codeInstanceExists  = 40902
	codeIllegalState    = 40903
	codeConsumerConfig  = 42204
	codeKafka           = 50002
	codeKafkaRetriable  = 50003
	codeUnauthenticated = 40101
	codeUnauthorized    = 40301
)

func fail(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func noTopic() *Error     { return fail(codeNoTopic, "Topic not found.") }
func noPartition() *Error { return fail(codeNoPartition, "Partition not found.") }
func noInstance() *Error  { return fail(codeNoInstance, "Consumer instance not found.") }
func illegal(format string, args ...any) *Error {
	return fail(codeIllegalState, "Illegal state: "+format, args...)
}

// fromError gives the answer for any error. Errors that aren't ours come from the client's library, the broker or the
// partitioner; those that a caller causes are 4xx, all others say by their code whether trying again may help.
func fromError(err error) *Error {
	var own *Error
	var kafka *kerr.Error
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &kafka):
		return fromKafka(kafka)
	case errors.Is(err, partitioner.ErrInvalid):
		return fail(codeKafka, "Partitioner error: %v", err)
	case errors.Is(err, partitioner.ErrUnavailable):
		return fail(codeKafkaRetriable, "Retriable partitioner error: %v", err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, kgo.ErrRecordTimeout), errors.Is(err, kgo.ErrClientClosed):
		return fail(codeKafkaRetriable, "Retriable Kafka error: %v", err)
	}
	// What remains are connections that failed.
	return fail(codeKafkaRetriable, "Retriable Kafka error: %v", err)
}

// fromKafka maps the broker's own codes.
func fromKafka(err *kerr.Error) *Error {
	text := fmt.Sprintf("%s (%s)", err.Description, err.Message)
	switch err {
	case kerr.UnknownTopicOrPartition:
		return fail(codeNoTopicV3, "%s", text)
	case kerr.GroupIDNotFound:
		return fail(http.StatusNotFound, "%s", text)
	case kerr.TopicAlreadyExists, kerr.InvalidTopicException, kerr.InvalidPartitions, kerr.InvalidReplicationFactor,
		kerr.InvalidReplicaAssignment, kerr.InvalidConfig, kerr.InvalidRequest, kerr.PolicyViolation, kerr.InvalidGroupID,
		kerr.OffsetMetadataTooLarge, kerr.InvalidTimestamp, kerr.InvalidRecord:
		return fail(codeBadKafka, "%s", text)
	case kerr.MessageTooLarge, kerr.RecordListTooLarge:
		return fail(http.StatusRequestEntityTooLarge, "%s", text)
	case kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress, kerr.FencedInstanceID, kerr.StaleMemberEpoch, kerr.NonEmptyGroup:
		return illegal("%s", text)
	case kerr.SaslAuthenticationFailed:
		return fail(codeUnauthenticated, "%s", text)
	case kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed, kerr.TopicDeletionDisabled:
		return fail(codeUnauthorized, "%s", text)
	}
	if err.Retriable {
		return fail(codeKafkaRetriable, "Retriable Kafka error: %s", text)
	}
	return fail(codeKafka, "Kafka error: %s", text)
}

// recordCode is the code of a record that was refused in an answer that otherwise succeeds, as version 2 has them.
func recordCode(err error) int {
	code := fromError(err).Code
	switch {
	case code == codeKafkaRetriable, code == codeUnauthorized, code == codeUnauthenticated:
		return code
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return codeKafkaRetriable
	}
	return codeKafka
}
