package txn

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// The answers of a coordinator that aren't yes. Each is one of Kafka's error codes, which package api knows.
var (
	ErrInvalidRequest = errors.New("transactional id is empty or too long")
	ErrInvalidTimeout = errors.New("transaction timeout is out of range")
	ErrUnavailable    = errors.New("transaction coordinator is not available")
	ErrLoading        = errors.New("transaction coordinator is loading")
	ErrNotCoordinator = errors.New("this broker does not coordinate the transactional id")
	// ErrProducerMapping says that the transactional id is unknown, or has another producer id.
	ErrProducerMapping = errors.New("producer id does not belong to the transactional id")
	// ErrFenced says that another producer has taken the transactional id over.
	ErrFenced = errors.New("producer is fenced by a newer one")
	// ErrConcurrent says that the last transaction is still being ended, or another request is at work: try again.
	ErrConcurrent = errors.New("another change of the transaction is under way")
	// ErrState says that there is no transaction that could be ended so.
	ErrState = errors.New("transaction is not in a state that allows this")
	// ErrNotAdded says that the partition is not part of an open transaction of that producer.
	ErrNotAdded = errors.New("partition was not added to the transaction")
	// ErrNotFound says that there is no such transactional id.
	ErrNotFound = errors.New("no such transactional id")
	ErrUnknown  = errors.New("transaction coordinator failed")
)

// storeError says what a failed write of transaction state means for who asked for it (Kafka's TransactionStateManager).
func storeError(err error) error {
	kind := ErrUnknown
	switch {
	case err == nil:
		return nil
	case errors.Is(err, offsets.ErrUnavailable), errors.Is(err, offsets.ErrTimedOut):
		kind = ErrUnavailable
	case errors.Is(err, offsets.ErrNotOwner), errors.Is(err, offsets.ErrClosed):
		kind = ErrNotCoordinator
	}
	return fmt.Errorf("%w: %w", kind, err)
}
