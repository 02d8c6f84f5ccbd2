package storagesendfile

import (
	"io"
	"net"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// view implements storage.View. Views are pooled: one that isn't in use has no file.
type view struct {
	storage *Storage
	file    *segmentfile.File // of which the view is a user
	pos, n  int64
	sender  sender
}

func newView(s *Storage) *view {
	v := &view{storage: s}
	v.sender.init(v)
	return v
}

func (v *view) Len() int64 { return v.n }

func (v *view) Slice(from, n int64) (storage.View, error) {
	if from < 0 || n < 0 || from > v.n || n > v.n-from {
		return nil, v.file.Error("slice view of", storage.ErrRange)
	}
	v.file.Share()
	part := v.storage.views.Get().(*view)
	part.file, part.pos, part.n = v.file, v.pos+from, n
	return part, nil
}

func (v *view) WriteTo(w io.Writer) (int64, error) {
	if conn, ok := w.(*net.TCPConn); ok {
		return v.send(conn)
	}
	return v.copyTo(w)
}

// copyTo writes the view through a pooled buffer. What it reads are plain files, so a read that ends early has met a file
// that was cut.
func (v *view) copyTo(w io.Writer) (int64, error) {
	buffer := v.storage.buffers.Get().(*[]byte)
	defer v.storage.buffers.Put(buffer)
	var sent int64
	for sent < v.n {
		part := (*buffer)[:min(int64(len(*buffer)), v.n-sent)]
		if err := v.read(part, v.pos+sent); err != nil {
			return sent, err
		}
		n, err := w.Write(part)
		sent += int64(n)
		if err != nil {
			return sent, err
		}
		if n < len(part) {
			return sent, io.ErrShortWrite
		}
	}
	return sent, nil
}

func (v *view) read(b []byte, pos int64) error {
	n, err := v.file.ReadAt(b, pos)
	switch {
	case n == len(b):
		return nil
	case err == io.EOF:
		return v.file.Error("read view of", storage.ErrFault)
	default:
		return v.file.Error("read view of", err)
	}
}

func (v *view) Bytes(scratch []byte) ([]byte, error) {
	if int64(cap(scratch)) < v.n {
		scratch = make([]byte, v.n)
	}
	scratch = scratch[:v.n]
	if err := v.read(scratch, v.pos); err != nil {
		return nil, err
	}
	return scratch, nil
}

func (v *view) Mapped() []byte { return nil }

func (v *view) Release() {
	if v.file == nil {
		return
	}
	v.file.Release()
	v.file = nil
	v.storage.views.Put(v)
}
