package group

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// The answers of a coordinator that aren't yes. Each is one of Kafka's error codes, which package api knows.
var (
	ErrInvalidGroupID       = errors.New("group id is empty")
	ErrUnavailable          = errors.New("group coordinator is not available")
	ErrLoading              = errors.New("group coordinator is loading")
	ErrNotCoordinator       = errors.New("this broker does not coordinate the group")
	ErrUnknownMember        = errors.New("unknown group member")
	ErrFencedInstance       = errors.New("group instance id belongs to another member now")
	ErrIllegalGeneration    = errors.New("not the group's generation")
	ErrInconsistentProtocol = errors.New("no group protocol in common")
	ErrInvalidSession       = errors.New("session timeout is out of range")
	ErrMemberIDRequired     = errors.New("join again with the given member id")
	ErrMaxSize              = errors.New("group has its maximum size")
	ErrRebalance            = errors.New("group is rebalancing")
	ErrNonEmpty             = errors.New("group has members")
	ErrGroupNotFound        = errors.New("no such group")
	ErrSubscribed           = errors.New("group is subscribed to the topic")
	ErrUnstable             = errors.New("offset has a pending transaction")
	ErrMetadataTooLarge     = errors.New("offset metadata is too large")
	ErrCommitTooLarge       = errors.New("offset commit is too large")
	ErrTimedOut             = errors.New("write of group records timed out")
	ErrUnknown              = errors.New("group coordinator failed")
)

// writeError says what a failed write means for the group (Kafka's GroupMetadataManager): a member that waits for its
// assignment.
func writeError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, offsets.ErrUnavailable):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	case errors.Is(err, offsets.ErrNotOwner), errors.Is(err, offsets.ErrClosed):
		return fmt.Errorf("%w: %w", ErrNotCoordinator, err)
	case errors.Is(err, offsets.ErrTimedOut):
		return fmt.Errorf("%w: %w", ErrRebalance, err)
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// commitError says what a failed write means for a commit of offsets.
func commitError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, offsets.ErrTooLarge):
		return fmt.Errorf("%w: %w", ErrCommitTooLarge, err)
	case errors.Is(err, offsets.ErrTimedOut):
		return fmt.Errorf("%w: %w", ErrTimedOut, err)
	}
	return writeError(err)
}
