package limits

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// reserved is how much of a file is allocated ahead of what is written, where the file system can: it halves the cost.
const reserved = 8 << 20

// Touch uses so many bytes of memory once and gives them back to the system; 0 is none. A virtual machine gets memory when it is
// first used, at many times the cost of using it, and may lose again what is free for a while: what is measured next finds that much of it there.
// It needs Linux 5.14.
func Touch(ctx context.Context, bytes int64) (err error) {
	if bytes == 0 {
		return nil
	}
	m, err := unix.Mmap(-1, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("map %d bytes of memory: %w", bytes, err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(m)) }()
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // faster where the system has them
	for part := range slices.Chunk(m, 256<<20) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := unix.Madvise(part, unix.MADV_POPULATE_WRITE); err != nil {
			return fmt.Errorf("use %d bytes of memory: %w", bytes, err)
		}
	}
	return nil
}

// Append writes so many bytes to a new file in dir, in writes of chunk bytes, after the CRC-32C of each, and removes the file.
// Blocks are allocated ahead. Nothing is flushed to the device.
func Append(ctx context.Context, dir string, chunk int, bytes int64) (Cost, error) {
	f, err := os.CreateTemp(dir, "append-")
	if err != nil {
		return Cost{}, err
	}
	defer func() { _ = errors.Join(f.Close(), os.Remove(f.Name())) }()
	source := randomBytes(max(sourceBytes, chunk))
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	sum := uint32(0)
	fd, allocated := int(f.Fd()), int64(0)
	c, err := measured(ctx, bytes, func(at int64) (int, error) {
		from := int(at % int64(len(source)-chunk+1))
		b := source[from : from+chunk]
		sum ^= crc32.Checksum(b, castagnoli)
		if at+int64(chunk) > allocated {
			if err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, allocated, max(reserved, int64(chunk))); err != nil && !errors.Is(err, unix.EOPNOTSUPP) {
				return 0, err
			}
			allocated += max(reserved, int64(chunk))
		}
		return unix.Write(fd, b)
	})
	runtime.KeepAlive(sum)
	if err != nil {
		return Cost{}, fmt.Errorf("append to %s: %w", f.Name(), err)
	}
	return c, nil
}

// Sendfile sends so many bytes of a file in dir, which it makes and removes, by sendfile(2) in calls of chunk bytes to a
// loopback connection.
func Sendfile(ctx context.Context, dir string, chunk int, bytes int64) (Cost, error) {
	path, err := cached(dir)
	if err != nil {
		return Cost{}, err
	}
	defer func() { _ = os.Remove(path) }()
	f, err := os.Open(path)
	if err != nil {
		return Cost{}, err
	}
	defer f.Close()
	from := int(f.Fd())
	sender, _, err := connected(ctx, bytes, func(to int, at int64) (int, error) {
		offset := at % fileBytes
		return unix.Sendfile(to, from, &offset, int(min(int64(chunk), fileBytes-offset)))
	})
	if err != nil {
		return Cost{}, fmt.Errorf("sendfile: %w", err)
	}
	return sender, nil
}

// Send sends so many bytes of memory, always the same buffer of chunk bytes, to a loopback connection, and gives what it
// costs the sender and what the receiver.
func Send(ctx context.Context, chunk int, bytes int64) (sender, receiver Cost, err error) {
	b := randomBytes(chunk)
	sender, receiver, err = connected(ctx, bytes, func(to int, _ int64) (int, error) { return unix.Write(to, b) })
	if err != nil {
		return Cost{}, Cost{}, fmt.Errorf("send: %w", err)
	}
	return sender, receiver, nil
}

// Answer answers requests on a loopback connection, each of which is sent when the one before is answered: a blocking read(2) and a
// write(2), without anything in between. Most of it is waking whoever waits at the other end.
func Answer(ctx context.Context, request, answer int, requests int64) (Cost, error) {
	server, client, err := loopback()
	if err != nil {
		return Cost{}, err
	}
	asked := make(chan error, 1)
	go func() { // ends when the server has closed its end
		out, in := make([]byte, request), make([]byte, answer)
		_, err := measured(ctx, math.MaxInt64, func(int64) (int, error) { return exchange(client, out, in) })
		asked <- errors.Join(err, unix.Close(client))
	}()
	in, out := make([]byte, request), make([]byte, answer)
	c, err := measured(ctx, requests*int64(request), func(int64) (int, error) {
		if n, err := readFull(server, in); n == 0 || err != nil {
			return n, err
		}
		if _, err := unix.Write(server, out); err != nil {
			return 0, err
		}
		return request, nil
	})
	c.Answers = c.Bytes / int64(request)
	if err = errors.Join(err, unix.Close(server), <-asked); err != nil {
		return Cost{}, fmt.Errorf("answer: %w", err)
	}
	return c, nil
}

// exchange sends a request and reads its answer. It is io.EOF that the other end is closed.
func exchange(fd int, request, answer []byte) (int, error) {
	if _, err := unix.Write(fd, request); err != nil {
		if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
			err = io.EOF
		}
		return 0, err
	}
	n, err := readFull(fd, answer)
	if n == 0 && err == nil || errors.Is(err, unix.ECONNRESET) {
		err = io.EOF
	}
	return n, err
}

// readFull reads until b is full, or nothing follows.
func readFull(fd int, b []byte) (n int, err error) {
	for n < len(b) {
		m, err := unix.Read(fd, b[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return n, err
		case m == 0:
			return 0, nil
		}
		n += m
	}
	return n, nil
}

// measured calls step until it has done so many bytes or says io.EOF, on a thread of its own, which is measured.
func measured(ctx context.Context, bytes int64, step func(at int64) (int, error)) (Cost, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := threadCPU()
	if err != nil {
		return Cost{}, err
	}
	c := Cost{}
	begin := time.Now()
	for ended := false; c.Bytes < bytes && !ended; {
		n, err := step(c.Bytes)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, io.EOF):
			n, ended = 0, true
		case err != nil:
			return Cost{}, err
		case n <= 0:
			return Cost{}, fmt.Errorf("after %d of %d bytes it goes no further", c.Bytes, bytes)
		case ctx.Err() != nil:
			return Cost{}, ctx.Err()
		}
		c.Bytes += int64(n)
	}
	c.Elapsed = time.Since(begin)
	after, err := threadCPU()
	c.CPU = after - before
	return c, err
}

// connected sends so many bytes to a loopback connection with send, while another thread receives them.
func connected(ctx context.Context, bytes int64, send func(to int, at int64) (int, error)) (sender, receiver Cost, err error) {
	to, from, err := loopback()
	if err != nil {
		return sender, receiver, err
	}
	received := make(chan error, 1)
	go func() { // ends when the sender has closed its end
		buffer := make([]byte, sinkBuffer)
		var err error
		receiver, err = measured(ctx, math.MaxInt64, func(int64) (int, error) {
			n, err := unix.Read(from, buffer)
			if n == 0 && err == nil {
				err = io.EOF
			}
			return n, err
		})
		received <- errors.Join(err, unix.Close(from)) // a sender that still waits fails then
	}()
	sender, err = measured(ctx, bytes, func(at int64) (int, error) { return send(to, at) })
	err = errors.Join(err, unix.Close(to))
	return sender, receiver, errors.Join(err, <-received)
}

// loopback is both ends of a TCP connection, which block.
func loopback() (a, b int, err error) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, 0, err
	}
	defer unix.Close(listener)
	local := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(unix.Bind(listener, local), unix.Listen(listener, 1)); err != nil {
		return 0, 0, err
	}
	at, err := unix.Getsockname(listener)
	if err != nil {
		return 0, 0, err
	}
	if a, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, 0, err
	}
	if err = unix.Connect(a, at); err == nil {
		b, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	}
	if err != nil {
		return 0, 0, errors.Join(err, unix.Close(a))
	}
	return a, b, nil
}

// cached makes a file whose pages are in memory.
func cached(dir string) (path string, err error) {
	f, err := os.CreateTemp(dir, "send-")
	if err != nil {
		return "", err
	}
	source := randomBytes(sourceBytes)
	for n := 0; n < fileBytes && err == nil; n += len(source) {
		_, err = f.Write(source)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("make %s: %w", filepath.Base(f.Name()), err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b) // never fails
	return b
}

// threadCPU is the processor time of the calling thread.
func threadCPU() (time.Duration, error) {
	var t unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano()), err
}
