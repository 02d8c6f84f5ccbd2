package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
)

type codecOptions struct{}

func codecFactory() compression.Factory {
	return plugin.NewFactory("runs", "run lengths", func() codecOptions { return codecOptions{} },
		func(codecOptions, compression.Settings) (compression.Codec, error) { return &runs{}, nil })
}

// runs writes checksum and length of the contents, then runs of equal bytes as a 32-bit count and the byte. It has the levels
// 1 to 3, which are the same.
type runs struct{ compression.Gate }

var _ compression.Leveled = (*runs)(nil)

func (*runs) ID() record.Codec { return record.Snappy }

func (*runs) CheckLevel(level int) error {
	if level < 1 || level > 3 {
		return compression.ErrLevel
	}
	return nil
}

func (r *runs) CompressLevel(dst, src []byte, level int) ([]byte, error) {
	if err := r.CheckLevel(level); err != nil {
		return dst, err
	}
	return r.Compress(dst, src)
}

// minRun is the shortest run. A piece is a run, or bytes as they are, marked by the highest bit of the count.
const minRun = 6

func (*runs) Compress(dst, src []byte) ([]byte, error) {
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(src))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(src)))
	plain := 0 // where the bytes begin that are in no run
	flush := func(end int) {
		if end > plain {
			dst = append(binary.BigEndian.AppendUint32(dst, uint32(end-plain)|1<<31), src[plain:end]...)
		}
	}
	for i := 0; i < len(src); {
		n := 1
		for i+n < len(src) && src[i+n] == src[i] {
			n++
		}
		if n >= minRun {
			flush(i)
			dst = append(binary.BigEndian.AppendUint32(dst, uint32(n)), src[i])
			plain = i + n
		}
		i += n
	}
	flush(len(src))
	return dst, nil
}

func (*runs) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if len(src) < 8 {
		return dst, compression.ErrCorrupt
	}
	sum, size, rest := binary.BigEndian.Uint32(src), int(binary.BigEndian.Uint32(src[4:])), src[8:]
	out := dst
	for len(rest) > 0 {
		if len(rest) < 5 {
			return dst, compression.ErrCorrupt
		}
		head := binary.BigEndian.Uint32(rest)
		n, isPlain := int(head&^(1<<31)), head>>31 == 1
		rest = rest[4:]
		if isPlain && n > len(rest) {
			return dst, compression.ErrCorrupt
		}
		if n > limit-(len(out)-len(dst)) {
			return dst, compression.ErrTooLarge
		}
		if isPlain {
			out, rest = append(out, rest[:n]...), rest[n:]
		} else {
			out, rest = append(out, bytes.Repeat(rest[:1], n)...), rest[1:]
		}
	}
	if made := out[len(dst):]; len(made) != size || crc32.ChecksumIEEE(made) != sum {
		return dst, compression.ErrCorrupt
	}
	return out, nil
}
