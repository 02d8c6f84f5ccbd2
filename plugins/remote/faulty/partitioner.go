package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Options are those of the partitioner.
type Options struct {
	Shift int32             `yaml:"shift" doc:"added to each partition"`
	Delay time.Duration     `yaml:"delay" doc:"how long an answer takes"`
	Once  string            `yaml:"once" doc:"a file: as long as it isn't there, the fault shows, and makes it"`
	Names map[string]string `yaml:"names" doc:"not used"`
}

// Validate implements config.Validator.
func (o Options) Validate() error {
	if o.Shift < 0 {
		return config.At("shift", errors.New("must be at least 0"))
	}
	return nil
}

func partitionerFactory(mode string) partitioner.Factory {
	return plugin.NewFactory("faulty", "a partitioner with the fault "+mode, func() Options { return Options{} },
		func(o Options, s partitioner.Settings) (partitioner.Partitioner, error) {
			if mode == "build" {
				return nil, errors.New("no map of regions")
			}
			return &faulty{mode: mode, options: o, log: s.Logger}, nil
		})
}

// faulty partitions by FNV-1a, or not.
type faulty struct {
	mode    string
	options Options
	log     *slog.Logger
	calls   atomic.Uint32
}

func (f *faulty) Start(context.Context) error {
	if f.mode == "start" {
		return errors.New("the database is away")
	}
	if f.mode == "words" {
		fmt.Fprintln(os.Stderr, "the disk is gone")
		syscall.Exit(1)
	}
	if f.mode == "loud" {
		f.log.Warn("a warning", "region", "eu")
		fmt.Fprintln(os.Stderr, "a line")
		fmt.Fprintln(os.Stderr, `{"@message": 1, "@level": {}, "@timestamp": "no time"}`)
		f.log.Debug("a detail")
	}
	return nil
}

func (f *faulty) Stop(context.Context) error { return nil }
func (f *faulty) Keyed() bool                { return f.mode != "unkeyed" }

// now says whether the fault shows: always, or once.
func (f *faulty) now() bool {
	if f.options.Once == "" {
		return true
	}
	file, err := os.OpenFile(f.options.Once, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	_ = file.Close()
	return true
}

func (f *faulty) Partition(ctx context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	call := f.calls.Add(1)
	if err := f.before(ctx, b); err != nil {
		return dst, err
	}
	if b.Partitions < 1 {
		return dst, fmt.Errorf("faulty: %w", partitioner.ErrInvalid)
	}
	for i := range b.Records {
		dst = append(dst, f.one(b, &b.Records[i], call))
	}
	switch {
	case f.mode == "few" && len(dst) > 0:
		dst = dst[:len(dst)-1]
	case f.mode == "many":
		dst = append(dst, 0)
	case f.mode == "huge":
		dst = append(dst, make([]int32, 1<<20)...)
	}
	return dst, nil
}

// before is what happens instead of an answer, or ahead of it.
func (f *faulty) before(ctx context.Context, b *partitioner.Batch) error {
	time.Sleep(f.options.Delay)
	switch f.mode {
	case "hang":
		if f.now() {
			select {}
		}
	case "slow":
		time.Sleep(1500 * time.Millisecond)
	case "crash":
		if f.now() {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	case "panic":
		if f.now() {
			panic("no such region")
		}
	case "flood":
		for i := range 2000 {
			f.log.Info(strings.Repeat("a long story ", 20), "chapter", i)
		}
	case "refuse":
		return errors.New("not in the mood")
	case "unavailable":
		return fmt.Errorf("%w: the database is away", partitioner.ErrUnavailable)
	case "wait":
		<-ctx.Done()
		return ctx.Err()
	case "invalid":
		return fmt.Errorf("%w: topic %q is not for me", partitioner.ErrInvalid, b.Topic)
	}
	return nil
}

func (f *faulty) one(b *partitioner.Batch, r *partitioner.Record, call uint32) int32 {
	switch f.mode {
	case "negative":
		return -1
	case "past":
		return b.Partitions
	case "anywhere":
		if r.Key == nil {
			return b.Partitions - 1 - int32(call%2)*(b.Partitions-1)
		}
	}
	if r.Key == nil {
		return b.Choose(call)
	}
	h := fnv.New32a()
	_, _ = h.Write(r.Key)
	if f.mode == "seed" { // hashed, not added: two processes' ids may be equal modulo the partitions
		_, _ = h.Write(strconv.AppendInt(nil, int64(os.Getpid()), 10))
	}
	n := h.Sum32() + uint32(f.options.Shift)
	switch f.mode {
	case "wander":
		n += call
	case "dodge":
		if len(b.Available) > 0 {
			return b.Available[n%uint32(len(b.Available))]
		}
	}
	return int32(n % uint32(b.Partitions))
}
