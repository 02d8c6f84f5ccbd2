// Package offsets is the contract for whatever keeps the committed offsets and the metadata of consumer groups.
//
// A store is a durable map from keys (a group's offset for a partition, or a group's own record) to values, cut into
// shards. The broker that coordinates a shard loads it into memory, answers everything from there and writes every
// change through the store before anybody sees it; at a fail-over another broker loads it and goes on. So a store
// needs no queries and no cache, and OffsetFetch never waits for one.
//
// Beside the contract the package holds what stores share: the record formats of Kafka's `__consumer_offsets`
// ([AppendKey], [AppendValue], [Decode]) and the function that gives a group its shard ([ShardOf]).
//
// What isn't its business: the rules of groups, who may commit what, and when offsets expire (the broker decides that
// and writes tombstones); the log under a store, which the broker hands in as a [Log].
//
// The suite for implementations is in core/offsets/offsetstest; its sub-tests are named by the clause numbers below.
package offsets

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Sentinel errors. Stores and logs wrap them with what happened; compare with errors.Is.
var (
	// ErrUnavailable says that the shard can't be used now: it does not exist yet, or too few replicas are in sync. The
	// caller may try again.
	ErrUnavailable = errors.New("offsets shard is unavailable")
	// ErrNotOwner says that the shard isn't loaded here under that epoch: another broker coordinates its groups, or will.
	ErrNotOwner = errors.New("offsets shard is not owned under this epoch")
	// ErrTimedOut says that the write wasn't known to be durable in time. It may become durable later, and then the next
	// load finds it.
	ErrTimedOut = errors.New("offsets write timed out")
	// ErrTooLarge says that the batch is larger than the store can hold. Nothing was written.
	ErrTooLarge = errors.New("offsets write is too large")
	// ErrUnsupported says that what is stored comes from a version that this one can't read. Loading stops rather than
	// forgetting offsets.
	ErrUnsupported = errors.New("unsupported version of a stored group record")
	// ErrCorrupt says that bytes make no record of a group.
	ErrCorrupt = errors.New("corrupt group record")
	// ErrClosed says that the store was not started, or was stopped.
	ErrClosed = errors.New("offsets store is closed")
)

// Settings is what the broker gives every store.
type Settings struct {
	plugin.Settings
	// Log is the log that the broker keeps for the store. Stores that keep their data elsewhere ignore it.
	Log Log
	// Codecs decompresses batches of that log: older brokers may have compressed them.
	Codecs record.Codecs
}

// Factory makes a store from its part of the YAML file.
type Factory = plugin.Factory[Settings, Store]

// Store keeps group records. All its methods may be called from any goroutine at the same time; for one shard and epoch
// the caller makes one Load, before everything else, and one Unload, after everything else, and orders writes itself where
// order matters: writes of one shard that overlap in time may be stored in either order.
type Store interface {
	plugin.Component

	// Topic names the internal topic whose partitions are the shards: whoever leads the partition coordinates its groups.
	// "" says that there is no such topic and one shard; the broker then decides which of them coordinates.
	//
	//  1.1  The answer never changes, and may be asked for before Start.
	Topic() string

	// Prepare makes sure that the shards exist. The broker calls it when a client looks for its coordinator.
	//
	//  2.1  It is idempotent, and cheap once the shards exist.
	//  2.2  ErrUnavailable: they do not exist yet, but may when asked again.
	Prepare(ctx context.Context) error

	// Shard gives the shard of a group.
	//
	//  3.1  It depends on the group's name and the number of shards alone, and is at least 0. Any string is a name, ""
	//       included.
	//  3.2  ErrUnavailable when it isn't known how many shards there are.
	//  3.3  It does not wait and may be called for every request.
	Shard(group string) (int32, error)

	// Load makes this broker the shard's owner under epoch and gives everything stored in it to visit, from the calling
	// goroutine.
	//
	//  4.1  Applied in order, the events give the shard's content: the last entry of a key wins, tombstones included.
	//       An entry with a producer counts only from the event that ends that producer's transaction with a commit.
	//  4.2  Every write of an earlier epoch that returned nil is among the events.
	//  4.3  An error of visit ends the load and is returned, wrapped.
	//  4.4  When Load fails or ctx ends, the shard isn't owned. ErrUnsupported and ErrCorrupt say that waiting won't help.
	//  4.5  Records that aren't of this contract's kinds (newer kinds of groups) are passed over and left alone.
	//  4.6  An epoch below the newest one given for the shard is refused with ErrNotOwner, and so is one that is loaded or
	//       loading already. A newer epoch ends the ownership of the older one.
	//  4.7  Events share no memory with the store after visit returns, unless it is never written again.
	Load(ctx context.Context, shard, epoch int32, visit func(Event) error) error

	// Unload ends the ownership that Load began. It does not wait for writes; those that run may succeed or fail.
	//
	//  5.1  Writes that begin afterwards under that epoch give ErrNotOwner. What is stored stays.
	//  5.2  Another epoch than the loaded one, and a shard that isn't loaded, change nothing.
	Unload(shard, epoch int32)

	// Write stores a batch, in the order of its entries.
	//
	//  6.1  On nil the batch is as durable as the store promises, replicas included, and survives Stop, a crash (unless
	//       the store says that it keeps nothing) and a fail-over.
	//  6.2  All of the batch is stored, or nothing; on an error it may be either, unless the error says more.
	//  6.3  ErrNotOwner when the shard isn't loaded under epoch.
	//  6.4  The store keeps nothing that the batch points to.
	//  6.5  When ctx ends first the error is ErrTimedOut or ctx's own.
	//  6.6  An empty batch is stored at once.
	//  6.7  Strings that don't fit into the record format (longer than 32767 bytes) give ErrTooLarge.
	Write(ctx context.Context, shard, epoch int32, b Batch) error
}

// Log is the log that a broker keeps for its store: one log of record batches per shard, replicated as the broker's
// settings for internal topics say. Its methods may be called from any goroutine at the same time.
type Log interface {
	// Ensure creates the topic when it is missing. ErrUnavailable when it isn't there yet, for instance because its
	// creation has only begun.
	Ensure(ctx context.Context, topic string) error
	// Shards is the number of partitions that the topic really has. ErrUnavailable when the topic does not exist. It does
	// not wait.
	Shards(topic string) (int32, error)
	// Append appends one whole batch of format 2 to a shard that this broker leads under epoch, and returns nil when all
	// in-sync replicas have it and it is as durable as the topic's flush settings say. The batch is stamped in place.
	// ErrNotOwner, ErrUnavailable, ErrTimedOut, ErrTooLarge; ErrTimedOut also when ctx ends first.
	Append(ctx context.Context, topic string, shard, epoch int32, batch []byte) error
	// Read gives the shard's log to visit from its start to where it ended at some moment after the call began, in chunks
	// of whole batches. A chunk is valid until visit returns. ErrNotOwner when this broker doesn't lead the shard under
	// epoch.
	Read(ctx context.Context, topic string, shard, epoch int32, visit func(chunk []byte) error) error
}
