package wire

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// metadataCall is a Metadata request by hand; topics gets the names in the answer.
func metadataCall(version int16, topic string, topics *[]string) *Call {
	req := metadataFor(version, topic)
	return &Call{Key: req.Key(), Version: version, Flexible: req.IsFlexible(), Timeout: time.Minute,
		Request: req.AppendTo,
		Response: func(body []byte) error {
			resp := req.ResponseKind().(*kmsg.MetadataResponse)
			resp.SetVersion(version)
			if err := resp.ReadFrom(body); err != nil {
				return err
			}
			for _, t := range resp.Topics {
				*topics = append(*topics, *t.Topic)
			}
			return nil
		}}
}

func TestExchange(t *testing.T) {
	c, _ := dialBroker(t)
	var topics []string
	for _, version := range []int16{8, 9, 12} { // plain and flexible
		require.NoError(t, c.Exchange(metadataCall(version, "a", &topics)))
		resp, err := c.Do(t.Context(), metadataFor(version, "b")) // both ways on one connection
		require.NoError(t, err)
		topics = append(topics, *resp.(*kmsg.MetadataResponse).Topics[0].Topic)
	}
	require.Equal(t, []string{"a", "b", "a", "b", "a", "b"}, topics)
}

func TestExchangeThatFailsClosesTheConnection(t *testing.T) {
	slow := func(timeout time.Duration) *Call {
		req := kmsg.NewPtrDeleteTopicsRequest()
		return &Call{Key: req.Key(), Timeout: timeout, Request: req.AppendTo, Response: func([]byte) error { return nil }}
	}
	t.Run("the answer makes no sense", func(t *testing.T) {
		c, _ := dialBroker(t)
		nonsense := errors.New("nonsense")
		call := metadataCall(9, "a", nil)
		call.Response = func([]byte) error { return nonsense }
		require.ErrorIs(t, c.Exchange(call), nonsense)
		require.ErrorIs(t, c.Exchange(call), ErrClientClosed)
	})
	t.Run("no answer in time", func(t *testing.T) {
		c, _ := dialBroker(t)
		require.ErrorIs(t, c.Exchange(slow(20*time.Millisecond)), os.ErrDeadlineExceeded)
		require.ErrorIs(t, c.Exchange(slow(time.Minute)), ErrClientClosed)
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		c, _ := dialBroker(t)
		ended := make(chan error, 1)
		go func() { ended <- c.Exchange(slow(0)) }()
		time.AfterFunc(20*time.Millisecond, func() { c.Close() })
		require.ErrorIs(t, <-ended, ErrClientClosed)
	})
}
