package inspect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"os"
	"time"

	"github.com/barnabas-mq/barnabas/core/record"
)

// Kind says what damage is.
type Kind int8

const (
	// Corrupt bytes were written as something else.
	Corrupt Kind = iota
	// Torn is an unfinished append: the beginning of a batch, and behind it nothing, or zeros.
	Torn
	// Preallocated is space for the next batches: zeros up to the end of the file.
	Preallocated
)

// Damage is what a segment has in place of a good batch.
type Damage struct {
	Kind     Kind
	Position int64
	Reason   string
}

// Error has the position and the reason.
func (d *Damage) Error() string { return fmt.Sprintf("at %d: %s", d.Position, d.Reason) }

// Batch is a batch of a segment, or a message of format 0 or 1, of which the header has what such a message has: offset, length,
// magic byte, checksum (CRC-32), attributes and timestamp. The offset of a compressed message is that of its last record.
type Batch struct {
	record.Header
	Position int64

	segment *Segment
}

// Legacy says that it is a message of format 0 or 1.
func (b Batch) Legacy() bool { return b.Magic < record.Magic }

// Each walks the records, decompressed to no more than limit bytes. They are valid until the next step. An error ends the walk.
func (b Batch) Each(codecs record.Codecs, limit int) iter.Seq2[record.Record, error] {
	return func(yield func(record.Record, error) bool) {
		raw, err := b.segment.bytes(b.Position, int64(b.Size()))
		if err != nil {
			yield(record.Record{}, err)
			return
		}
		if !b.Legacy() {
			record.Batch(raw).Each(codecs, limit)(yield)
			return
		}
		records, err := record.LegacyRecords(raw, codecs, limit)
		if err != nil {
			yield(record.Record{}, err)
			return
		}
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// Segment is a `.log` file, open for reading. It is used by one goroutine.
type Segment struct {
	// Patience is how long to wait, once, before what seems corrupt is read again: for the tail of a log that may be in use. Whoever
	// copies a batch into a mapped file may be interrupted in the middle, and no order of its bytes is promised.
	Patience time.Duration

	file *os.File
	size int64
	at   int64  // where have begins
	have []byte // what was read last
	buf  []byte
}

// readAhead is how much is read at a time. Larger batches are read in pieces for their checksum, and whole only for their records.
const readAhead = 1 << 20

// OpenSegment opens a file to read what it has now; what is appended later isn't seen. It is to be closed.
func OpenSegment(path string) (*Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Segment{file: f, size: info.Size()}, nil
}

// Size is the length of the file in bytes when it was opened.
func (s *Segment) Size() int64 { return s.size }

// Close closes the file.
func (s *Segment) Close() error { return s.file.Close() }

// bytes gives n bytes from position on, which are in the file. They are valid until the next call.
func (s *Segment) bytes(position, n int64) ([]byte, error) {
	if from := position - s.at; from >= 0 && from+n <= int64(len(s.have)) {
		return s.have[from : from+n : from+n], nil
	}
	want := min(max(n, readAhead), s.size-position)
	if int64(cap(s.buf)) < want {
		s.buf = make([]byte, want)
	}
	s.at, s.have = position, nil
	b := s.buf[:want]
	if got, err := s.file.ReadAt(b, position); int64(got) < n {
		return nil, fmt.Errorf("read %s at %d: %w", s.file.Name(), position, err)
	} else {
		b = b[:got]
	}
	s.have = b
	return b[:n:n], nil
}

// Batches walks the batches, each with its checksum checked. What is wrong with one comes as a *Damage, with the batch's header when
// there is one; other errors are of reading. The walk goes on behind a batch whose checksum doesn't match when its length leads to
// another batch; else it ends there.
func (s *Segment) Batches() iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		for position := int64(0); position < s.size; {
			b, err := s.read(position)
			if errors.Is(err, errEnded) {
				return
			}
			var damage *Damage
			if !yield(b, err) || err != nil && (!errors.As(err, &damage) || damage.Kind != Corrupt || b.segment == nil) {
				return
			}
			position += int64(b.Size())
			if err != nil && position < s.size {
				if _, err := s.batch(position); err != nil {
					return // the length is no good either
				}
			}
		}
	}
}

// errEnded says that the file ends before a position by now.
var errEnded = errors.New("segment ended")

// rereads is how often what seems corrupt is read again while it changes.
const rereads = 10

// read reads and checks the batch at position. A broker may append into space that is in the file already, while it is read: what
// seems corrupt has to be the same when it is read again.
func (s *Segment) read(position int64) (b Batch, err error) {
	reason := ""
	for range rereads {
		if b, err = s.batch(position); err == nil {
			err = s.check(b)
		}
		if errors.Is(err, io.EOF) { // what was allocated ahead was cut off
			info, e := s.file.Stat()
			if e != nil || info.Size() >= s.size {
				return b, err
			}
			if s.size, s.have = info.Size(), nil; s.size <= position {
				return Batch{}, errEnded
			}
			continue
		}
		var damage *Damage
		if !errors.As(err, &damage) || damage.Kind != Corrupt {
			break
		}
		if damage.Reason == reason {
			if s.Patience <= 0 {
				break
			}
			time.Sleep(s.Patience)
			s.Patience = 0
		}
		reason, s.have = damage.Reason, nil
	}
	return b, err
}

// again reads a batch that was good anew, since what its checksum doesn't cover may have been written last.
func (s *Segment) again(b Batch) Batch {
	time.Sleep(s.Patience)
	s.Patience, s.have = 0, nil
	if b2, err := s.read(b.Position); err == nil {
		return b2
	}
	return b
}

// batch reads the header of the batch at position, which fits into the file.
func (s *Segment) batch(position int64) (Batch, error) {
	rest := s.size - position
	b, err := s.bytes(position, min(rest, record.HeaderSize))
	if err != nil {
		return Batch{}, err
	}
	h, err := record.ParseHeader(b)
	if errors.Is(err, record.ErrLegacy) {
		h, err = legacyHeader(b)
	}
	if err != nil {
		return Batch{}, s.judge(position, err)
	}
	if size := int64(h.Size()); size > rest {
		return Batch{}, s.tooLong(position, h, rest)
	}
	return Batch{Header: h, Position: position, segment: s}, nil
}

// The least bytes of messages of format 0 and 1 behind the length, and where their fields lie.
const (
	legacyLeast      = 14
	legacyCRC        = 12
	legacyMagic      = 16
	legacyAttributes = 17
	legacyTimestamp  = 18
)

func legacyHeader(b []byte) (record.Header, error) {
	be := binary.BigEndian
	h := record.Header{
		BaseOffset: int64(be.Uint64(b)), Length: int32(be.Uint32(b[8:])), LeaderEpoch: record.NoLeaderEpoch, Magic: int8(b[legacyMagic]),
		MaxTimestamp: record.NoTimestamp, BaseTimestamp: record.NoTimestamp, ProducerID: record.NoProducerID,
		ProducerEpoch: record.NoProducerEpoch, BaseSequence: record.NoSequence, Count: 1,
	}
	least := int32(legacyLeast)
	if h.Magic == 1 {
		least += 8
	}
	if h.Length < least || h.Length > 1<<31-1-record.LogOverhead {
		return h, fmt.Errorf("%w: message length %d", record.ErrCorrupt, h.Length)
	}
	if int64(len(b)) < record.LogOverhead+int64(least) {
		return h, record.ErrShort
	}
	h.CRC = be.Uint32(b[legacyCRC:])
	h.Attributes = record.Attributes(b[legacyAttributes])
	if h.Magic == 1 {
		h.MaxTimestamp = int64(be.Uint64(b[legacyTimestamp:]))
		h.BaseTimestamp = h.MaxTimestamp
	}
	return h, nil
}

// covered says from which byte of a batch on its checksum counts, and with which polynomial.
func covered(h record.Header) (from int64, table *crc32.Table) {
	if h.Magic < record.Magic {
		return legacyMagic, crc32.IEEETable
	}
	return 21, crc32.MakeTable(crc32.Castagnoli)
}

// check compares the checksum of a batch with its bytes.
func (s *Segment) check(b Batch) error {
	from, table := covered(b.Header)
	end := b.Position + int64(b.Size())
	sum := uint32(0)
	for at := b.Position + from; at < end; {
		piece, err := s.bytes(at, min(end-at, readAhead))
		if err != nil {
			return err
		}
		sum = crc32.Update(sum, table, piece)
		at += int64(len(piece))
	}
	if sum == b.CRC {
		return nil
	}
	reason := fmt.Sprintf("checksum is %08x, the bytes have %08x", b.CRC, sum)
	last, err := s.lastByte(b.Position)
	if err != nil {
		return err
	}
	if last >= end-tornZeros {
		return &Damage{Corrupt, b.Position, reason}
	}
	if n, err := s.whole(b.Position, b.Header, end); err != nil {
		return err
	} else if n > 0 {
		return &Damage{Corrupt, b.Position, fmt.Sprintf("length says %d bytes, and the checksum is that of %d", b.Size(), n)}
	}
	return &Damage{Torn, b.Position, fmt.Sprintf("unfinished batch: %d of %d bytes, and zeros behind; %s", last+1-b.Position, b.Size(), reason)}
}

// tornZeros is how many zeros at its end make the last batch an unfinished one, when its checksum doesn't match.
const tornZeros = 8

// judge says what the bytes at position are, which are no header.
func (s *Segment) judge(position int64, why error) error {
	last, err := s.lastByte(position)
	switch {
	case err != nil:
		return err
	case last < position:
		return &Damage{Preallocated, position, fmt.Sprintf("%d zeros", s.size-position)}
	case errors.Is(why, record.ErrShort):
		return &Damage{Torn, position, fmt.Sprintf("unfinished batch: %d bytes", s.size-position)}
	case last-position < record.HeaderSize-1 && last < s.size-tornZeros:
		return &Damage{Torn, position, fmt.Sprintf("unfinished batch: %d bytes, and zeros behind", last+1-position)}
	}
	return &Damage{Corrupt, position, why.Error()}
}

// tooLong judges a batch that is longer than the rest of the file.
func (s *Segment) tooLong(position int64, h record.Header, rest int64) error {
	n, err := s.whole(position, h, s.size)
	switch {
	case err != nil:
		return err
	case n > 0:
		return &Damage{Corrupt, position, fmt.Sprintf("length says %d bytes, %d are left, and the checksum is that of %d", h.Size(), rest, n)}
	}
	return &Damage{Torn, position, fmt.Sprintf("unfinished batch: %d of %d bytes", rest, h.Size())}
}

// whole tells a whole batch whose length lies from an unfinished one: it gives the number of bytes, up to end, that the checksum is
// that of, 0 when there is none.
func (s *Segment) whole(position int64, h record.Header, end int64) (int64, error) {
	from, table := covered(h)
	sum := uint32(0)
	for at := position + from; at < end; {
		piece, err := s.bytes(at, min(end-at, readAhead))
		if err != nil {
			return 0, err
		}
		for i := range piece {
			sum = crc32.Update(sum, table, piece[i:i+1])
			if n := at + int64(i) + 1 - position; sum == h.CRC && n >= record.LogOverhead+legacyLeast {
				return n, nil
			}
		}
		at += int64(len(piece))
	}
	return 0, nil
}

// lastByte gives the position of the file's last byte that isn't zero, or position-1 when that lies before position.
func (s *Segment) lastByte(position int64) (int64, error) {
	for end := s.size; end > position; {
		from := max(position, end-readAhead)
		b := make([]byte, end-from)
		if n, err := s.file.ReadAt(b, from); n < len(b) {
			return 0, fmt.Errorf("read %s at %d: %w", s.file.Name(), from, err)
		}
		for i := len(b) - 1; i >= 0; i-- {
			if b[i] != 0 {
				return from + int64(i), nil
			}
		}
		end = from
	}
	return position - 1, nil
}
