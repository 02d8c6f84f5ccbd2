package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// NewOffsetsFactory makes the factory of offsets stores in processes of their own.
func NewOffsetsFactory() offsets.Factory {
	return plugin.NewFactory("remote", "an executable that keeps the offsets, in a process of its own", storeDefaults,
		func(o StoreOptions, s offsets.Settings) (offsets.Store, error) {
			return NewStore(o.common(), s.Logger), nil
		})
}

// NewStore makes a store of an executable.
func NewStore(o Options, log *slog.Logger) *Store {
	s := &Store{host: newHost(pluginv1.RoleOffsets, o, log), owned: map[int32]int32{}}
	s.ready = s.reload
	s.owners.Close()
	return s
}

// Store is an [offsets.Store]. It has one shard.
//
// Which shards are loaded is known here and in the plug-in. One that was started again has forgotten it, so what is owned
// is loaded there once more, and thrown away here, before anything else reaches it.
type Store struct {
	*host
	owners offsets.Owners

	ownedMu sync.Mutex
	owned   map[int32]int32 // epochs by shard
}

var _ offsets.Store = (*Store)(nil)

// Start implements the contract.
func (s *Store) Start(ctx context.Context) error {
	if err := s.host.Start(ctx); err != nil {
		return err
	}
	s.owners.Open()
	return nil
}

// Stop implements the contract.
func (s *Store) Stop(ctx context.Context) error {
	s.owners.Close()
	return s.host.Stop(ctx)
}

// Topic is "": there is none.
func (*Store) Topic() string { return "" }

// Shard is 0 for all groups.
func (*Store) Shard(string) (int32, error) { return 0, nil }

// largestLoad bounds one message of a load, in bytes.
const largestLoad = 64 << 20

// failed puts a call's failure into the contract's terms. unknown says that the plug-in may have done what it was told.
func (s *Store) failed(err error, unknown bool) error {
	switch {
	case errors.Is(err, errAnswer):
		return s.wrap(err)
	case errors.Is(err, errDown) && unknown:
		return s.wrap(fmt.Errorf("%w: %w", offsets.ErrTimedOut, err))
	case errors.Is(err, errDown):
		return s.wrap(fmt.Errorf("%w: %w", offsets.ErrUnavailable, err))
	}
	return err
}

// Prepare implements the contract.
func (s *Store) Prepare(ctx context.Context) error {
	if s.stoppedNow() {
		return s.wrap(offsets.ErrClosed)
	}
	life, err := s.use()
	if err != nil {
		return s.failed(err, false)
	}
	answer, err := call(ctx, s.host, life, largestInfo, pluginv1.NewOffsetsClient(life.conn).Prepare, &pluginv1.PrepareRequest{})
	if err != nil {
		return s.failed(err, false)
	}
	return s.wrap(answer.GetError().For(pluginv1.RoleOffsets))
}

// Load implements the contract. It has no deadline but ctx's; each message of the plug-in must come within start_timeout.
func (s *Store) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if err := s.owners.Begin(shard, epoch); err != nil {
		return s.wrap(err)
	}
	life, err := s.use()
	if err == nil {
		if err = s.load(ctx, life, shard, epoch, visit); err == nil {
			s.own(shard, epoch)
		} else {
			s.release(life, shard, epoch)
		}
	}
	if err = s.owners.Finish(shard, epoch, s.failed(err, false)); err != nil {
		s.disown(shard, epoch)
	}
	return err
}

// load streams a shard from one life of the plug-in.
func (s *Store) load(ctx context.Context, life *session, shard, epoch int32, visit func(offsets.Event) error) error {
	streaming, cancel := context.WithCancel(ctx)
	defer cancel()
	silence := time.AfterFunc(s.options.StartTimeout, cancel)
	defer silence.Stop()
	stream, err := pluginv1.NewOffsetsClient(life.conn).Load(streaming, &pluginv1.LoadRequest{Shard: shard, Epoch: epoch}, grpc.MaxCallRecvMsgSize(largestLoad))
	if err != nil {
		return s.broken(ctx, streaming, err)
	}
	for {
		silence.Reset(s.options.StartTimeout)
		answer, err := stream.Recv()
		silence.Stop()
		switch {
		case errors.Is(err, io.EOF):
			return fmt.Errorf("%w: the load ended without an end", errAnswer)
		case err != nil:
			return s.broken(ctx, streaming, err)
		case answer.GetError() != nil:
			return s.wrap(answer.GetError().For(pluginv1.RoleOffsets))
		}
		for _, x := range answer.GetEvents() {
			event, known, err := x.Parse()
			if err != nil {
				return s.wrap(err)
			}
			if !known {
				continue
			}
			if err := visit(event); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if answer.GetDone() {
			return nil
		}
	}
}

// broken says why a stream ended.
func (s *Store) broken(ctx, streaming context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case streaming.Err() != nil:
		return fmt.Errorf("%w within %s", errDown, s.options.StartTimeout)
	}
	return transport(err)
}

func (s *Store) own(shard, epoch int32) {
	s.ownedMu.Lock()
	defer s.ownedMu.Unlock()
	s.owned[shard] = epoch
}

func (s *Store) disown(shard, epoch int32) {
	s.ownedMu.Lock()
	defer s.ownedMu.Unlock()
	if s.owned[shard] == epoch {
		delete(s.owned, shard)
	}
}

// release tells the plug-in that a shard isn't ours. What it doesn't hear does no harm: the owners here are asked first.
func (s *Store) release(life *session, shard, epoch int32) {
	_, err := call(context.Background(), s.host, life, largestInfo, pluginv1.NewOffsetsClient(life.conn).Unload, &pluginv1.UnloadRequest{Shard: shard, Epoch: epoch})
	if err != nil {
		s.log.Debug("unload", "shard", shard, "epoch", epoch, "error", err)
	}
}

// reload loads in a new life of the plug-in what is owned.
func (s *Store) reload(ctx context.Context, life *session) error {
	s.ownedMu.Lock()
	owned := maps.Clone(s.owned)
	s.ownedMu.Unlock()
	for shard, epoch := range owned {
		if s.owners.Check(shard, epoch) != nil {
			continue
		}
		if err := s.load(ctx, life, shard, epoch, func(offsets.Event) error { return nil }); err != nil {
			return fmt.Errorf("load shard %d again: %w", shard, err)
		}
	}
	return nil
}

// Unload implements the contract.
func (s *Store) Unload(shard, epoch int32) {
	s.owners.Drop(shard, epoch)
	s.disown(shard, epoch)
	if life, err := s.use(); err == nil {
		s.release(life, shard, epoch)
	}
}

// Write implements the contract.
func (s *Store) Write(ctx context.Context, shard, epoch int32, b offsets.Batch) error {
	if err := s.owners.Check(shard, epoch); err != nil {
		return s.wrap(err)
	}
	q, err := pluginv1.NewWriteRequest(shard, epoch, b)
	if err != nil {
		return s.wrap(err)
	}
	life, err := s.use()
	if err != nil {
		return s.failed(err, false)
	}
	answer, err := call(ctx, s.host, life, largestInfo, pluginv1.NewOffsetsClient(life.conn).Write, q)
	if err != nil {
		return s.failed(err, true)
	}
	return s.wrap(answer.GetError().For(pluginv1.RoleOffsets))
}
