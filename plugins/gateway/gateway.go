package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Gateway serves HTTP in front of a broker. It is a plugin.Component.
type Gateway struct {
	options  Options
	settings Settings
	log      *slog.Logger

	api     huma.API
	handler http.Handler

	// closing ends when the gateway begins to stop: long polls and streams then come to their end.
	closing context.Context
	close   context.CancelFunc

	mu       sync.Mutex // guards what follows
	listener net.Listener
	server   *http.Server
	served   chan struct{} // closed when server has ended

	// What follows is set by Start before the first request.
	client    *kgo.Client
	admin     *kadm.Client
	topics    *topics
	producer  *producer
	consumers *instances
}

// New makes a gateway, which opens nothing until Start.
func New(o Options, s Settings) (*Gateway, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if len(s.Brokers) == 0 || s.Partitioner == nil {
		return nil, errors.New("gateway: a broker's address and a partitioner are needed")
	}
	g := &Gateway{options: o, settings: s, log: s.Logger}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.closing, g.close = context.WithCancel(context.Background())
	g.build()
	return g, nil
}

// OpenAPI is the document that /openapi.json shows. It must not be changed.
func (g *Gateway) OpenAPI() *huma.OpenAPI { return g.api.OpenAPI() }

// Addr is the address that the gateway listens on, known once Start has returned; nil before.
func (g *Gateway) Addr() net.Addr {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		return nil
	}
	return g.listener.Addr()
}

// Start listens and begins to serve. It doesn't wait for the broker.
func (g *Gateway) Start(ctx context.Context) error {
	client, err := kgo.NewClient(g.clientOptions(
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(batchBytes),
		// What waits is bounded in bytes; the library's bound in records is put where it can't be met.
		kgo.MaxBufferedRecords(1<<30),
		kgo.MaxBufferedBytes(int(g.options.MaxBuffered)),
		kgo.ProducerLinger(linger),
		kgo.UnknownTopicRetries(1),
		// Whoever asks is told within delivery_timeout, also when it can't be known what became of a record.
		kgo.AllowIdempotentProduceCancellation(),
	)...)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", g.options.Listen)
	if err != nil {
		client.Close()
		return fmt.Errorf("gateway: %w", err)
	}
	g.client = client
	g.admin = kadm.NewClient(client)
	g.admin.SetTimeoutMillis(int32(g.options.RequestTimeout.Milliseconds()))
	g.topics = newTopics(client)
	g.producer = &producer{client: client, topics: g.topics, partitioner: g.settings.Partitioner, timeout: g.options.DeliveryTimeout}
	g.consumers = newInstances(g)
	server := &http.Server{
		Handler:           g.handler,
		ReadHeaderTimeout: min(g.options.BodyTimeout, 10*time.Second),
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	g.mu.Lock()
	g.listener, g.server, g.served = listener, server, make(chan struct{})
	served := g.served
	g.mu.Unlock()
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("gateway no longer serves", "error", err)
		}
	}()
	g.log.Info("gateway serves", "address", listener.Addr().String())
	return nil
}

// clientOptions are those of every client that the gateway makes, with some more.
func (g *Gateway) clientOptions(more ...kgo.Opt) []kgo.Opt {
	return append([]kgo.Opt{
		kgo.SeedBrokers(g.settings.Brokers...),
		kgo.ClientID("barnabas-gateway"),
		kgo.SoftwareNameAndVersion("barnabas-gateway", "v1"),
		kgo.RetryTimeout(g.options.RequestTimeout),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(backoff),
	}, more...)
}

// backoff is how long to wait before a try that follows so many in vain. The broker that the gateway lives in is near, and
// what it makes a client wait for at first, a block of producer ids or an internal topic, is there within milliseconds.
func backoff(fails int) time.Duration {
	wait := min(20*time.Millisecond<<min(max(fails-1, 0), 10), 2*time.Second)
	return wait*4/5 + rand.N(wait*2/5) // not all at once
}

// Stop lets requests in flight finish, ending those that merely wait, takes consumers out of their groups, and closes
// everything. When ctx ends first, connections are cut.
func (g *Gateway) Stop(ctx context.Context) error {
	g.close()
	g.mu.Lock()
	server, served := g.server, g.served
	g.server = nil
	g.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Shutdown(ctx)
	if err != nil {
		_ = server.Close()
	}
	<-served
	g.consumers.stop()
	g.client.Close()
	return err
}
