//go:build unix

package storagemmap

import (
	"errors"
	"io"
	"net"

	"golang.org/x/sys/unix"

	"github.com/barnabas-mq/barnabas/core/storage"
	"github.com/barnabas-mq/barnabas/core/storage/segmentfile"
)

// view implements storage.View. Views are pooled: one that isn't in use has no file.
type view struct {
	storage *mmapStorage
	file    *segmentfile.File // of which the view is a user
	mapping *mapping          // of which the view is a user, or nil
	pos, n  int64
}

func (v *view) Len() int64 { return v.n }

func (v *view) Slice(from, n int64) (storage.View, error) {
	if from < 0 || n < 0 || from > v.n || n > v.n-from {
		return nil, v.file.Error("slice view of", storage.ErrRange)
	}
	v.file.Share()
	if v.mapping != nil {
		v.mapping.share()
	}
	part := v.storage.views.Get().(*view)
	part.file, part.mapping, part.pos, part.n = v.file, v.mapping, v.pos+from, n
	return part, nil
}

func (v *view) WriteTo(w io.Writer) (int64, error) {
	// Only a writer that is known to pass the memory straight to the kernel may see the map: any other would touch it in
	// Go code, and die of a file that was cut.
	conn, ok := w.(*net.TCPConn)
	mapped := v.Mapped()
	if !ok || mapped == nil {
		return v.copyTo(w)
	}
	n, err := conn.Write(mapped)
	if errors.Is(err, unix.EFAULT) {
		err = v.file.Error("send view of", storage.ErrFault)
	}
	return int64(n), err
}

// copyTo writes the view through a pooled buffer.
func (v *view) copyTo(w io.Writer) (int64, error) {
	buffer := v.storage.buffers.Get().(*[copyBuffer]byte)
	defer v.storage.buffers.Put(buffer)
	var sent int64
	for sent < v.n {
		part := buffer[:min(copyBuffer, v.n-sent)]
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
	var err error
	if v.mapping != nil && int64(len(b)) < int64(v.storage.options.CopyBelow) {
		_, err = readMapped(b, v.mapping, pos)
	} else {
		_, err = readFile(b, v.file, pos)
	}
	if err != nil {
		return v.file.Error("read view of", err)
	}
	return nil
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

func (v *view) Mapped() []byte {
	if v.mapping == nil || v.pos+v.n > int64(len(v.mapping.data)) {
		return nil
	}
	return v.mapping.data[v.pos : v.pos+v.n : v.pos+v.n]
}

func (v *view) Release() {
	if v.file == nil {
		return
	}
	v.file.Release()
	if v.mapping != nil {
		v.mapping.release()
	}
	v.file, v.mapping = nil, nil
	v.storage.views.Put(v)
}
