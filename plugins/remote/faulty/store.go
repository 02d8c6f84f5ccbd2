package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/offsets"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

type storeOptions struct {
	File string `yaml:"file" doc:"where the data is (required)"`
}

// Validate implements config.Validator.
func (o storeOptions) Validate() error {
	if o.File == "" {
		return config.At("file", errors.New("name a file"))
	}
	return nil
}

func storeFactory() offsets.Factory {
	return plugin.NewFactory("journal", "a file to which every write is appended", func() storeOptions { return storeOptions{} },
		func(o storeOptions, _ offsets.Settings) (offsets.Store, error) {
			j := &journal{name: o.File}
			j.owners.Close()
			return j, nil
		})
}

// journal keeps each write as a message of the protocol behind its length.
type journal struct {
	name   string
	owners offsets.Owners
	mu     sync.Mutex
	file   *os.File
}

func (j *journal) Start(context.Context) (err error) {
	j.file, err = os.OpenFile(j.name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err == nil {
		j.owners.Open()
	}
	return err
}

func (j *journal) Stop(context.Context) error {
	j.owners.Close()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}

func (*journal) Topic() string                 { return "" }
func (*journal) Prepare(context.Context) error { return nil }
func (*journal) Shard(string) (int32, error)   { return 0, nil }
func (j *journal) Unload(shard, epoch int32)   { j.owners.Drop(shard, epoch) }

func (j *journal) Load(ctx context.Context, shard, epoch int32, visit func(offsets.Event) error) error {
	if err := j.owners.Begin(shard, epoch); err != nil {
		return err
	}
	return j.owners.Finish(shard, epoch, j.replay(ctx, visit))
}

func (j *journal) replay(ctx context.Context, visit func(offsets.Event) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	r := bufio.NewReader(io.NewSectionReader(j.file, 0, 1<<40))
	for {
		n, err := binary.ReadUvarint(r)
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("%w: %w", offsets.ErrCorrupt, err)
		}
		var q pluginv1.WriteRequest
		if err := proto.Unmarshal(data, &q); err != nil {
			return fmt.Errorf("%w: %w", offsets.ErrCorrupt, err)
		}
		b, err := q.Batch()
		if err != nil {
			return err
		}
		if err := give(ctx, b, visit); err != nil {
			return err
		}
	}
}

func give(ctx context.Context, b offsets.Batch, visit func(offsets.Event) error) error {
	producer := int64(offsets.None)
	if b.Producer != nil {
		producer = b.Producer.ID
	}
	if b.Ended != offsets.NotEnded {
		return visit(offsets.Event{Producer: producer, Ended: b.Ended})
	}
	for _, e := range b.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := visit(offsets.Event{Producer: producer, Entry: e}); err != nil {
			return err
		}
	}
	return nil
}

func (j *journal) Write(ctx context.Context, shard, epoch int32, b offsets.Batch) error {
	q, err := pluginv1.NewWriteRequest(shard, epoch, b)
	if err != nil {
		return err
	}
	data, err := proto.Marshal(q)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := errors.Join(ctx.Err(), j.owners.Check(shard, epoch)); err != nil {
		return err
	}
	_, err = j.file.Write(append(binary.AppendUvarint(nil, uint64(len(data))), data...))
	return err
}
