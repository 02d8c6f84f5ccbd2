// Package compression is the contract for the codecs of record batches.
//
// A codec turns one block of bytes into a smaller one and back: what lies behind the header of a record batch (core/record),
// or the messages inside of a compressed message of the old formats. Which batches are compressed, with what and when, is
// not its business; nor is what the bytes mean.
//
// Kafka's clients compress and decompress themselves. The broker reads a compressed batch to check what a producer sent, and
// writes one only where a topic asks for another codec, or where an old client needs an old format.
//
// The suite for implementations is in core/compression/compressiontest; its sub-tests are named by the clause numbers below.
package compression

import (
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

// Sentinel errors. Implementations wrap them with what happened.
var (
	// ErrCorrupt says that a block is damaged, cut off, or none of this codec.
	ErrCorrupt = errors.New("corrupt compressed block")
	// ErrTooLarge says that more bytes would come out of a block than the caller allows.
	ErrTooLarge = fmt.Errorf("compressed block %w", record.ErrPayloadTooLarge)
	// ErrLevel says that the codec has no such level.
	ErrLevel = errors.New("no such compression level")
	// ErrNotRunning says that the codec was not started, or was stopped.
	ErrNotRunning = errors.New("codec is not running")
	// ErrMissing says that no codec of a Set has the id or name that was asked for.
	ErrMissing = errors.New("codec is not configured")
)

// Settings is what the broker, or a command, gives every codec.
type Settings struct {
	plugin.Settings
}

// Factory makes a codec from its part of the YAML file.
type Factory = plugin.Factory[Settings, Codec]

// Codec compresses and decompresses blocks.
//
//  1. Between Start and Stop all methods may be called from any number of goroutines at the same time. Before and after,
//     Compress and Decompress return ErrNotRunning and dst as it was; ID always works. Calls that run while Stop is called
//     end as if it had not been.
//  2. A codec has no goroutine that its calls make, and calls nothing outside of the process, unless it is the host of a codec
//     that is a process of its own (plugins/remote). What it keeps between calls (buffers,
//     tables) does not grow with the number of calls or the size of blocks.
type Codec interface {
	plugin.Component

	// ID is the codec's number in the attributes of a batch; never record.None.
	//
	//  3. It is the same at each call.
	ID() record.Codec

	// Compress appends src, compressed at the codec's own level, to dst and returns the extended slice. dst may be nil.
	//
	//  4. What dst held stays in front, unchanged. Neither src nor dst is kept after the call; src is not changed.
	//  5. Every src can be compressed, the empty one and nil, too, and Decompress gives the same bytes back.
	Compress(dst, src []byte) ([]byte, error)

	// Decompress appends what the block src holds to dst and returns the extended slice. dst may be nil, and may not share
	// memory with src.
	//
	//  6. What dst held stays in front, unchanged. Neither src nor dst is kept after the call; src is not changed.
	//  7. At most limit bytes are appended. A block that holds more gives ErrTooLarge; one that holds limit bytes does not.
	//  8. Memory is taken as bytes come out or the size of src allows for, never on the word of a length inside of src.
	//  9. Bytes that Compress, or another implementation of the format, would not write give ErrCorrupt, or ErrTooLarge,
	//     never a panic; so does a block that was cut off, unless the format itself can end there: then what comes out is
	//     the beginning of what was put in.
	// 10. With an error dst is returned as it was: same length and contents. What lies between its length and its capacity
	//     may have been overwritten.
	Decompress(dst, src []byte, limit int) ([]byte, error)
}

// Leveled is what a codec with levels implements as well, so that a topic may have a level of its own (KIP-390).
type Leveled interface {
	Codec

	// CheckLevel says whether the codec has a level, in the numbers of Kafka's compression.<name>.level.
	//
	// 11. ErrLevel when there is none; otherwise CompressLevel takes it. It works in any state of the codec.
	CheckLevel(level int) error

	// CompressLevel is Compress at a level.
	//
	// 12. As clauses 4 and 5; Decompress reads all levels. ErrLevel, and dst as it was, for a level that CheckLevel refuses.
	CompressLevel(dst, src []byte, level int) ([]byte, error)
}
