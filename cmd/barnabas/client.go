package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// remote is the cluster that a command talks to, and how patiently. It may be any that speaks Kafka's protocol.
type remote struct {
	bootstrap []string
	timeout   time.Duration
}

const defaultBootstrap = "127.0.0.1:9092"

func (r *remote) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVarP(&r.bootstrap, "bootstrap", "b", []string{defaultBootstrap}, "brokers to ask first, HOST:PORT, comma separated")
	cmd.Flags().DurationVar(&r.timeout, "timeout", 10*time.Second, "how long to wait for the broker's answer")
}

// check finds what is wrong with the flags.
func (r *remote) check() error {
	if r.timeout <= 0 {
		return wrong(fmt.Errorf("--timeout: want a positive duration, not %s", r.timeout))
	}
	if len(r.bootstrap) == 0 {
		return wrong(errors.New("--bootstrap: want HOST:PORT"))
	}
	for _, b := range r.bootstrap {
		if strings.Contains(b, ":") {
			if _, _, err := net.SplitHostPort(b); err != nil {
				return wrong(fmt.Errorf("--bootstrap: want HOST:PORT, not %q", b))
			}
		}
	}
	return nil
}

// open makes a client and sees that somebody answers, so that a command against a broker that isn't there ends soon and
// says so. The caller closes the client.
func (r *remote) open(ctx context.Context, options ...kgo.Opt) (*kgo.Client, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	options = append([]kgo.Opt{
		kgo.SeedBrokers(r.bootstrap...),
		kgo.ClientID("barnabas-cli"),
		kgo.RetryTimeout(r.timeout),
		kgo.DialTimeout(r.timeout),
		kgo.MetadataMinAge(100 * time.Millisecond),
		// A broker that has just started gives producers their ids at the second try: it needn't be a quarter of a second later.
		kgo.RetryBackoffFn(func(fails int) time.Duration {
			return min(20*time.Millisecond<<min(max(fails-1, 0), 10), 2*time.Second)
		}),
	}, options...)
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, wrong(err)
	}
	ping, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	if err := client.Ping(ping); err != nil {
		client.Close()
		return nil, r.explain(err)
	}
	return client, nil
}

// explain says what to do about an error of the client's.
func (r *remote) explain(err error) error {
	var dns *net.DNSError
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	where := strings.Join(r.bootstrap, ", ")
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("no such host behind %s: check --bootstrap: %w", where, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("nobody listens at %s: start a broker (barnabas serve) or name another with --bootstrap: %w", where, err)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, new(net.Error)):
		return fmt.Errorf("no answer from %s within %s: is it a broker, and is it up? --timeout waits longer: %w", where, r.timeout, err)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return fmt.Errorf("no such topic: `barnabas topic list` shows all, `barnabas topic create` makes one: %w", err)
	}
	return err
}

// administer runs f with a client for administration, within the time that the command may take.
func (r *remote) administer(cmd *cobra.Command, f func(ctx context.Context, admin *kadm.Client) error) error {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	client, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(min(r.timeout, time.Hour).Milliseconds()))
	// The broker's own timeout should end first: its answer says more.
	ctx, cancel := context.WithTimeout(ctx, r.timeout+2*time.Second)
	defer cancel()
	return r.explain(f(ctx, admin))
}

// labour is administer for work that takes as long as it takes: every request has the command's timeout, the whole has none.
func (r *remote) labour(cmd *cobra.Command, f func(ctx context.Context, admin *kadm.Client) error) error {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	client, err := r.open(ctx, kgo.RequestTimeoutOverhead(r.timeout))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(min(r.timeout, time.Hour).Milliseconds()))
	return r.explain(f(ctx, admin))
}

// untilInterrupt gives a context that ends at Ctrl-C and SIGTERM.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
}
