// Package storage is the contract for whatever keeps the bytes of one log segment.
//
// A log (core/log) is a row of segments; a segment is one append-only file of record batches. The log decides where a batch
// goes, when to roll and what is valid; the storage only keeps bytes and hands out views of them, as cheaply as the system
// allows. It knows nothing of offsets, batches, indexes or the wire.
//
// Both implementations write the same plain files (what was appended, back to back), so that a directory written under one
// opens under the other. An implementation may preallocate: then the file of a segment that is still written to is longer
// than Segment.Size, and after a crash its true end has to be found by the log from the batches themselves.
//
// The suite for implementations is in core/storage/storagetest; its sub-tests are named by the clause numbers below.
package storage

import (
	"errors"
	"io"

	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Sentinel errors. Implementations wrap them with the operation and the path.
var (
	// ErrClosed says that the segment was closed or removed before the call.
	ErrClosed = errors.New("segment is closed")
	// ErrSealed says that the segment takes no more bytes: it was sealed, or opened read-only.
	ErrSealed = errors.New("segment is sealed")
	// ErrFull says that the bytes would not fit below the capacity given at Create or Open. Nothing was written.
	ErrFull = errors.New("segment is full")
	// ErrRange says that a view, read or truncation reaches outside of [0, Size].
	ErrRange = errors.New("range is outside of the segment")
	// ErrFault says that bytes which belong to the segment can't be read any more, because somebody else shortened the file
	// or the device failed under a memory map.
	ErrFault = errors.New("segment bytes are gone from under the map")
	// ErrFailed says that an earlier write or sync of this segment failed. What the disk holds is unknown since, so the
	// segment takes no more writes; reads of what was written before go on.
	ErrFailed = errors.New("an earlier write or sync failed")
)

// Settings is what the broker gives every storage.
type Settings struct {
	plugin.Settings
}

// Factory makes a storage from its part of the YAML file.
type Factory = plugin.Factory[Settings, Storage]

// Options are given when a segment is created or opened.
type Options struct {
	// Capacity is the most bytes that the segment will ever hold. It bounds maps and preallocation; an append beyond it
	// gives ErrFull.
	//
	//  0.1  When it is below the size of an existing file, that size counts.
	Capacity int64
	// Preallocate asks for the whole capacity to be allocated on disk at once (Kafka's `preallocate`).
	Preallocate bool
	// ReadOnly opens a segment that will never be appended to or truncated.
	ReadOnly bool
}

// Storage creates and opens segments. Its methods may be called from any goroutine at the same time, for different paths.
type Storage interface {
	// Start and Stop.
	//
	//  0.0  Create and Open give an error before Start and after Stop. Segments belong to who opened them, and go on.
	plugin.Component

	// Create makes the segment file at path, empty and open for appends.
	//
	//  1.1  Fails, with an error that is fs.ErrExist, when the path exists; the existing file is untouched.
	//  1.2  Costs no more than creating a file: no map and no preallocation before the first append, unless
	//       Options.Preallocate asks for it. A full disk at that moment is an error and leaves no file behind.
	//  1.3  Size is 0.
	Create(path string, o Options) (Segment, error)

	// Open opens the existing segment file at path.
	//
	//  2.1  Size is the length of the file. After a crash this may include a preallocated tail of zeros, which the caller
	//       finds and truncates.
	//  2.2  Appends go on at Size, unless ReadOnly.
	//  2.3  Fails, with an error that is fs.ErrNotExist, when there is no such file. An empty file is fine.
	//  2.4  Reads no data: opening a hundred segments costs a hundred opens.
	Open(path string, o Options) (Segment, error)
}

// Segment is one segment file. One goroutine at a time may call Append, Truncate and Seal; at the same time any number of
// goroutines may call View, ReadAt, Size and Sync.
type Segment interface {
	// Size is the number of bytes appended so far and not truncated, in bytes. It is cheap: an atomic load.
	Size() int64

	// Append writes b at the end and returns the position where it starts.
	//
	//  3.1  On return all of b is visible to View and ReadAt of every goroutine and to other processes reading the file; it
	//       survives the death of this process, but not of the machine: that takes Sync.
	//  3.2  All or nothing: after an error Size is what it was, and no later view shows a byte of b.
	//  3.3  b stays the caller's; it is not kept after return.
	//  3.4  Errors: ErrFull, ErrSealed, ErrClosed (nothing happened), ErrFailed and errors of the operating system (ENOSPC,
	//       EIO); after the latter the segment takes no more appends until reopened, except for ENOSPC and EDQUOT when what
	//       was written of b could be taken back: then nothing happened either, and it may be tried again.
	//  3.5  No allocation.
	Append(b []byte) (pos int64, err error)

	// View gives n bytes from pos on. The caller must Release it.
	//
	//  4.1  ErrRange unless 0 <= pos, 0 <= n and pos+n <= Size. ErrClosed after Close or Remove.
	//  4.2  The view stays readable until released, whatever happens to the segment meanwhile: Seal, Rename, Remove, Close.
	//  4.3  Truncate below the view's end makes its bytes undefined: reading them gives old bytes, zeros or ErrFault, never a
	//       crash.
	//  4.4  Reads nothing yet, and allocates at most the view itself.
	View(pos, n int64) (View, error)

	// ReadAt is io.ReaderAt over [0, Size): for headers, recovery and tools. Bytes beyond Size are never returned.
	//
	//  5.1  A read that ends at Size gives io.EOF as io.ReaderAt says; one of a closed segment ErrClosed.
	io.ReaderAt

	// Sync makes all bytes whose Append returned before the call durable on the device.
	//
	//  6.1  May run while Append runs; says nothing about bytes appended meanwhile.
	//  6.2  After an error the segment is failed (ErrFailed): it is unknown what the device holds, and trying again would
	//       report success for pages that the kernel has dropped.
	//  6.3  The file's entry in its directory isn't part of it: who creates, renames or removes segments syncs the directory.
	Sync() error

	// Truncate cuts the segment to size bytes.
	//
	//  7.1  ErrRange when size is negative or above Size. Truncating to Size also cuts a preallocated tail off the file.
	//  7.2  Later appends start at size; no later view shows a byte that was cut.
	//  7.3  Durable with the next Sync.
	Truncate(size int64) error

	// Seal ends appending: the file gets its true length, and what was only needed for writing is given back.
	//
	//  8.1  On return the length of the file is Size. Sealing twice is fine. A file that somebody else has shortened is left as
	//       it is, with ErrFault: zeros in the place of lost bytes would hide the loss.
	//  8.2  Not a Sync.
	//  8.3  A sealed segment can still be truncated (a follower that diverged); appending to it takes a new Open.
	Seal() error

	// Rename moves the file, within its file system, and goes on working under the new path.
	//
	//  9.1  Replaces an existing file at the new path, as rename(2) does.
	//  9.2  After an error the segment is what and where it was.
	Rename(path string) error

	// Remove closes the segment and deletes its file.
	//
	// 10.1  Views in use stay readable; their resources are given back with the last Release. Works after Close, too, and does
	//       nothing the second time, even when another file has taken the name.
	Remove() error

	// Close gives everything back. The file has its true length afterwards (as Seal).
	//
	// 11.1  Safe twice. Views in use stay readable until released. Calls that come later give ErrClosed.
	// 11.2  Not a Sync.
	Close() error
}

// View is a range of bytes of a segment. It is used by one goroutine at a time.
type View interface {
	// Len is the number of bytes in the view.
	Len() int64

	// Slice gives a part of the view as a view of its own.
	//
	//  4.5  ErrRange when it reaches outside. The part is released by itself, and outlives the view it came from.
	Slice(from, n int64) (View, error)

	// WriteTo writes the whole view to w and returns how many bytes went out.
	//
	// 12.1  When w is a *net.TCPConn the bytes go from the page cache to the socket without passing through memory of this
	//       process that belongs to Go (sendfile(2), or writev(2) out of a map), where the system can do that.
	// 12.2  Any other io.Writer works, too, by whatever copy it needs.
	// 12.3  Deadlines of w hold. After an error w holds a part of the view: the caller must give the connection up.
	io.WriterTo

	// Bytes gives the content as memory of the caller.
	//
	//  4.6  A copy in scratch, whose capacity counts, or in new memory when that is too small. It stays what it is, and safe to
	//       touch, whatever happens to the segment. ErrFault when bytes are gone.
	Bytes(scratch []byte) ([]byte, error)

	// Mapped gives the content without a copy when the storage holds it in memory, so that a caller can gather it with
	// others in one writev; nil otherwise. Read-only and valid until Release. Touching it in Go code ends the process when
	// somebody has shortened the file: only pass it to the kernel, which answers EFAULT then, or use Bytes. Writers that
	// encrypt or compress (a *tls.Conn) are Go code.
	Mapped() []byte

	// Release gives the view back. It must be called once, and nothing of the view used afterwards.
	Release()
}
