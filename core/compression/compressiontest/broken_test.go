package compressiontest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runs is a codec for tests: checksum and length of the contents, then runs of equal bytes as a 32-bit count and the byte.
type runs struct{ compression.Gate }

func (c *runs) ID() record.Codec { return record.Snappy }

func (c *runs) Compress(dst, src []byte) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(src))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(src)))
	for len(src) > 0 {
		n := 1
		for n < len(src) && src[n] == src[0] {
			n++
		}
		dst = append(binary.BigEndian.AppendUint32(dst, uint32(n)), src[0])
		src = src[n:]
	}
	return dst, nil
}

func (c *runs) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if err := c.Check(); err != nil {
		return dst, err
	}
	if len(src) < 8 {
		return dst, compression.ErrCorrupt
	}
	sum, size, rest := binary.BigEndian.Uint32(src), int(binary.BigEndian.Uint32(src[4:])), src[8:]
	out := dst
	for len(rest) > 0 {
		if len(rest) < 5 {
			return dst, compression.ErrCorrupt
		}
		n := int(binary.BigEndian.Uint32(rest))
		if n > limit-(len(out)-len(dst)) {
			return dst, compression.ErrTooLarge
		}
		if n == 1 {
			out = append(out, rest[4])
		} else {
			out = append(out, bytes.Repeat(rest[4:5], n)...)
		}
		rest = rest[5:]
	}
	if made := out[len(dst):]; len(made) != size || crc32.ChecksumIEEE(made) != sum {
		return dst, compression.ErrCorrupt
	}
	return out, nil
}

func TestGoodCodecPasses(t *testing.T) {
	Run(t, func() (compression.Codec, error) { return &runs{}, nil })
}

// leveled is runs with levels 1 to 3, of which one may be a lie.
type leveled struct {
	runs
	lie int
}

func (c *leveled) CheckLevel(level int) error {
	if level < 1 || level > 3 {
		return compression.ErrLevel
	}
	return nil
}

func (c *leveled) CompressLevel(dst, src []byte, level int) ([]byte, error) {
	if err := c.CheckLevel(level); err != nil || level == c.lie {
		return dst, compression.ErrLevel
	}
	return c.Compress(dst, src)
}

func TestGoodLevelsPass(t *testing.T) {
	Run(t, func() (compression.Codec, error) { return &leveled{}, nil })
}

// broken changes how one method of runs behaves.
type broken struct {
	runs
	id         func() record.Codec
	stop       func() error
	compress   func(c *runs, dst, src []byte) ([]byte, error)
	decompress func(c *runs, dst, src []byte, limit int) ([]byte, error)
}

func (b *broken) ID() record.Codec {
	if b.id != nil {
		return b.id()
	}
	return b.runs.ID()
}

func (b *broken) Stop(ctx context.Context) error {
	if b.stop != nil {
		return b.stop()
	}
	return b.runs.Stop(ctx)
}

func (b *broken) Compress(dst, src []byte) ([]byte, error) {
	if b.compress != nil {
		return b.compress(&b.runs, dst, src)
	}
	return b.runs.Compress(dst, src)
}

func (b *broken) Decompress(dst, src []byte, limit int) ([]byte, error) {
	if b.decompress != nil {
		return b.decompress(&b.runs, dst, src, limit)
	}
	return b.runs.Decompress(dst, src, limit)
}

// open is a running codec behind the back of the one under test.
func open() *runs {
	c := &runs{}
	_ = c.Start(context.Background())
	return c
}

func TestSuiteRejectsBrokenCodecs(t *testing.T) {
	other := open()
	ids := record.None
	block := make(chan struct{})
	defer close(block)
	var earlier atomic.Pointer[[]byte]
	for _, tc := range []struct {
		clause string
		what   string
		codec  compression.Codec
	}{
		{"1 not running", "works before Start", &broken{compress: func(_ *runs, dst, src []byte) ([]byte, error) { return other.Compress(dst, src) }}},
		{"1 not running", "cannot be stopped twice", &broken{stop: func() error { return errors.New("again") }}},
		{"1 many goroutines", "answers with the block of another call", &broken{compress: func(c *runs, dst, src []byte) ([]byte, error) {
			made, err := c.Compress(nil, src)
			if before := earlier.Swap(&made); before != nil {
				return append(dst, *before...), err
			}
			return append(dst, made...), err
		}}},
		{"2 no goroutines", "leaves a goroutine", &broken{compress: func(c *runs, dst, src []byte) ([]byte, error) {
			go func() { <-block }()
			return c.Compress(dst, src)
		}}},
		{"3 id", "has no id", &broken{id: func() record.Codec { return record.None }}},
		{"3 id", "changes its id", &broken{id: func() record.Codec { ids++; return ids }}},
		{"4 compress appends", "overwrites dst", &broken{compress: func(c *runs, dst, src []byte) ([]byte, error) { return c.Compress(dst[:0], src) }}},
		{"4 compress appends", "changes src", &broken{compress: func(c *runs, dst, src []byte) ([]byte, error) {
			out, err := c.Compress(dst, src)
			clear(src)
			return out, err
		}}},
		{"5 round trip", "refuses nothing", &broken{compress: func(c *runs, dst, src []byte) ([]byte, error) {
			if len(src) == 0 {
				return dst, errors.New("nothing to do")
			}
			return c.Compress(dst, src)
		}}},
		{"5 round trip", "loses the tail", &broken{compress: func(c *runs, dst, src []byte) ([]byte, error) {
			return c.Compress(dst, src[:min(len(src), 64<<10)])
		}}},
		{"6 decompress appends", "overwrites dst", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			return c.Decompress(dst[:0], src, limit)
		}}},
		{"6 decompress appends", "returns src", &broken{
			compress: func(_ *runs, dst, src []byte) ([]byte, error) { return append(dst, src...), nil },
			decompress: func(_ *runs, dst, src []byte, _ int) ([]byte, error) {
				if dst == nil {
					return src, nil
				}
				return append(dst, src...), nil
			}}},
		{"7 limit", "knows no limit", &broken{decompress: func(c *runs, dst, src []byte, _ int) ([]byte, error) { return c.Decompress(dst, src, ample) }}},
		{"7 limit", "limits too early", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			return c.Decompress(dst, src, limit-1)
		}}},
		{"7 limit", "counts dst", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			return c.Decompress(dst, src, limit-len(dst))
		}}},
		{"8 memory", "makes it all first", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			out, err := c.Decompress(dst, src, ample)
			if len(out)-len(dst) > limit {
				return dst, compression.ErrTooLarge
			}
			return out, err
		}}},
		{"9 garbage", "takes anything", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			if out, err := c.Decompress(dst, src, limit); err == nil {
				return out, nil
			}
			return dst, nil
		}}},
		{"9 garbage", "has errors of its own", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			out, err := c.Decompress(dst, src, limit)
			if err != nil {
				return out, fmt.Errorf("bad: %v", err)
			}
			return out, nil
		}}},
		{"9 cut off", "fills up what is missing", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			out, err := c.Decompress(dst, src, limit)
			if err != nil && len(src) > 8 {
				return append(dst, "something else"...), nil
			}
			return out, err
		}}},
		{"10 dst after an error", "leaves half of it", &broken{decompress: func(c *runs, dst, src []byte, limit int) ([]byte, error) {
			out, err := c.Decompress(dst, src, limit)
			if err != nil {
				return append(dst, 1, 2, 3), err
			}
			return out, nil
		}}},
		{"11 levels", "refuses a level that it has", &leveled{lie: 2}},
	} {
		t.Run(tc.clause+"/"+tc.what, func(t *testing.T) {
			for _, clause := range Clauses() {
				if clause.Name == tc.clause {
					require.Error(t, clause.Check(tc.codec), "the suite did not notice")
					return
				}
			}
			t.Fatal("no such clause")
		})
	}
}
