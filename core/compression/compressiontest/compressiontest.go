// Package compressiontest is the suite that every compression.Codec passes. Its sub-tests are named by the numbers of the
// clauses in package compression.
package compressiontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/barnabas-mq/barnabas/core/compression"
)

// Clause is one check of the suite.
type Clause struct {
	// Name is the number of the clause it checks and what that is about.
	Name string
	// Check returns what the codec, which is new and not started, does wrong.
	Check func(compression.Codec) error
}

// Run runs the suite. newCodec makes a codec that was not started; each check has one of its own.
func Run(t *testing.T, newCodec func() (compression.Codec, error)) {
	t.Helper()
	for _, clause := range Clauses() {
		t.Run(clause.Name, func(t *testing.T) {
			c, err := newCodec()
			if err != nil {
				t.Fatal(err)
			}
			if err := clause.Check(c); err != nil {
				t.Error(err)
			}
			if err := c.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		})
	}
}

// Clauses lists the checks, for whoever runs them one by one.
func Clauses() []Clause {
	running := func(check func(compression.Codec) error) func(compression.Codec) error {
		return func(c compression.Codec) error {
			if err := c.Start(context.Background()); err != nil {
				return fmt.Errorf("start: %w", err)
			}
			return check(c)
		}
	}
	return []Clause{
		{"1 not running", notRunning},
		{"1 many goroutines", running(manyGoroutines)},
		{"2 no goroutines", running(noGoroutines)},
		{"3 id", identity},
		{"4 compress appends", running(compressAppends)},
		{"5 round trip", running(roundTrip)},
		{"6 decompress appends", running(decompressAppends)},
		{"7 limit", running(limits)},
		{"8 memory", running(memory)},
		{"9 garbage", running(garbage)},
		{"9 cut off", running(cutOff)},
		{"10 dst after an error", running(afterError)},
		{"11 levels", running(levels)},
	}
}

const ample = 1 << 30

// samples are inputs of all kinds: empty, short, repetitive, random, text, larger than any codec's block.
func samples() map[string][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 80_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	text := []byte(strings.Repeat("Barnabas carries messages. ", 9000))
	mixed := append(append(bytes.Clone(text[:70_000]), noise[:70_000]...), text[:70_000]...)
	return map[string][]byte{
		"nil": nil, "empty": {}, "one byte": {7}, "hello": []byte("hello"), "zeros": make([]byte, 300_000),
		"noise": noise, "text": text, "mixed": mixed, "a block": noise[:32<<10], "a block and a byte": text[:64<<10+1],
	}
}

func notRunning(c compression.Codec) error {
	refused := func(when string) error {
		for name, call := range map[string]func(dst []byte) ([]byte, error){
			"Compress":   func(dst []byte) ([]byte, error) { return c.Compress(dst, []byte("x")) },
			"Decompress": func(dst []byte) ([]byte, error) { return c.Decompress(dst, []byte("x"), 10) },
		} {
			out, err := call([]byte("front"))
			if !errors.Is(err, compression.ErrNotRunning) || string(out) != "front" {
				return fmt.Errorf("%s %s gives %q, %v; want dst and ErrNotRunning", name, when, out, err)
			}
		}
		return nil
	}
	ctx := context.Background()
	if err := refused("before Start"); err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if _, err := c.Compress(nil, []byte("x")); err != nil {
		return fmt.Errorf("compress after Start: %w", err)
	}
	for range 2 {
		if err := c.Stop(ctx); err != nil {
			return fmt.Errorf("stop: %w", err)
		}
	}
	return refused("after Stop")
}

func manyGoroutines(c compression.Codec) error {
	const goroutines, rounds = 8, 4
	data := samples()
	errs := make(chan error, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			src := append(bytes.Clone(data["mixed"]), byte(g))
			for range rounds {
				if err := once(c, src[g*1000:]); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func noGoroutines(c compression.Codec) error {
	before := runtime.NumGoroutine()
	for range 3 {
		if err := once(c, samples()["mixed"]); err != nil {
			return err
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		return fmt.Errorf("%d goroutines after use, %d before", after, before)
	}
	return nil
}

func identity(c compression.Codec) error {
	id := c.ID()
	if id == 0 || !id.Valid() {
		return fmt.Errorf("id is %d", id)
	}
	if err := c.Start(context.Background()); err != nil {
		return err
	}
	if again := c.ID(); again != id {
		return fmt.Errorf("id was %d, is %d", id, again)
	}
	return nil
}

func once(c compression.Codec, src []byte) error {
	block, err := c.Compress(nil, src)
	if err != nil {
		return fmt.Errorf("compress: %w", err)
	}
	out, err := c.Decompress(nil, block, ample)
	if err != nil {
		return fmt.Errorf("decompress: %w", err)
	}
	if !bytes.Equal(out, src) {
		return fmt.Errorf("%d bytes come back as %d others", len(src), len(out))
	}
	return nil
}

func compressAppends(c compression.Codec) error {
	for name, src := range samples() {
		plain, err := c.Compress(nil, src)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		kept := bytes.Clone(src)
		for _, spare := range []int{0, 3, 100, 1 << 20} {
			dst := append(make([]byte, 0, 5+spare), "front"...)
			out, err := c.Compress(dst, src)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", name, err)
			case len(out) < 5 || string(out[:5]) != "front":
				return fmt.Errorf("%s: what stood in dst is gone", name)
			case !bytes.Equal(out[5:], plain):
				return fmt.Errorf("%s: another block behind a dst that is not empty", name)
			case !bytes.Equal(src, kept):
				return fmt.Errorf("%s: src was changed", name)
			}
		}
	}
	return nil
}

func roundTrip(c compression.Codec) error {
	for name, src := range samples() {
		if err := once(c, src); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func decompressAppends(c compression.Codec) error {
	for name, src := range samples() {
		block, err := c.Compress(nil, src)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		kept := bytes.Clone(block)
		dsts := [][]byte{nil}
		for _, spare := range []int{0, 3, len(src), len(src) + 100} {
			dsts = append(dsts, append(make([]byte, 0, 5+spare), "front"...))
		}
		for _, dst := range dsts {
			out, err := c.Decompress(dst, block, ample)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", name, err)
			case !bytes.HasPrefix(out, dst):
				return fmt.Errorf("%s: what stood in dst is gone", name)
			case !bytes.Equal(out[len(dst):], src):
				return fmt.Errorf("%s: comes back as something else", name)
			case !bytes.Equal(block, kept):
				return fmt.Errorf("%s: src was changed", name)
			}
			for i := range block { // a codec that kept src would notice now
				block[i] ^= 0xff
			}
			if !bytes.Equal(out[len(dst):], src) {
				return fmt.Errorf("%s: what came out shares memory with src", name)
			}
			copy(block, kept)
		}
	}
	return nil
}

func limits(c compression.Codec) error {
	for name, src := range samples() {
		block, err := c.Compress(nil, src)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, dst := range [][]byte{nil, make([]byte, 10, 2<<20)} {
			out, err := c.Decompress(dst, block, len(src))
			if err != nil || len(out) != len(dst)+len(src) {
				return fmt.Errorf("%s: %d bytes at a limit of as many: %d, %w", name, len(src), len(out)-len(dst), err)
			}
			for _, limit := range []int{len(src) - 1, len(src) / 2, 0} {
				if limit < 0 || limit >= len(src) {
					continue
				}
				if _, err := c.Decompress(dst, block, limit); !errors.Is(err, compression.ErrTooLarge) {
					return fmt.Errorf("%s: %d bytes at a limit of %d: %v, want ErrTooLarge", name, len(src), limit, err)
				}
			}
		}
	}
	return nil
}

// memory decompresses a block that makes much of little under a low limit: what is allocated follows the limit, not what
// the block says of itself.
func memory(c compression.Codec) error {
	const size, limit, allowed = 32 << 20, 1 << 20, 12 << 20
	block, err := c.Compress(nil, make([]byte, size))
	if err != nil {
		return err
	}
	// The first call may fill pools.
	for range 2 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = c.Decompress(nil, block, limit)
		runtime.ReadMemStats(&after)
		if !errors.Is(err, compression.ErrTooLarge) {
			return fmt.Errorf("%d bytes at a limit of %d: %v, want ErrTooLarge", size, limit, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > allowed {
			return fmt.Errorf("%d bytes were allocated under a limit of %d", took, limit)
		}
	}
	return nil
}

func wantCorrupt(c compression.Codec, what string, block []byte) error {
	out, err := c.Decompress(nil, block, 1<<20)
	if err == nil {
		return fmt.Errorf("%s: %d bytes come out, want ErrCorrupt", what, len(out))
	}
	if !errors.Is(err, compression.ErrCorrupt) && !errors.Is(err, compression.ErrTooLarge) {
		return fmt.Errorf("%s: %v is neither ErrCorrupt nor ErrTooLarge", what, err)
	}
	return nil
}

// garbage feeds bytes that no codec makes, and good blocks with one byte changed, which may come to nothing worse than an
// error or other contents.
func garbage(c compression.Codec) error {
	for _, junk := range [][]byte{
		bytes.Repeat([]byte{0xab}, 40), bytes.Repeat([]byte{0xff}, 1000), []byte("this is no compressed block at all"),
	} {
		if err := wantCorrupt(c, fmt.Sprintf("%.8x…", junk), junk); err != nil {
			return err
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	good, err := c.Compress(nil, samples()["mixed"])
	if err != nil {
		return err
	}
	for range 150 {
		block := bytes.Clone(good)
		for range 1 + rng.IntN(3) {
			block[rng.IntN(min(len(block), 1+rng.IntN(len(block))))] ^= byte(1 + rng.IntN(255))
		}
		out, err := c.Decompress(nil, block, 1<<20)
		switch {
		case err == nil && len(out) > 1<<20:
			return fmt.Errorf("%d bytes come out of a damaged block, over the limit", len(out))
		case err != nil && !errors.Is(err, compression.ErrCorrupt) && !errors.Is(err, compression.ErrTooLarge):
			return fmt.Errorf("damaged block: %v is neither ErrCorrupt nor ErrTooLarge", err)
		}
	}
	return once(c, samples()["mixed"]) // what a damaged block left in a pool must not matter
}

func cutOff(c compression.Codec) error {
	// Every cut near both ends, some between.
	const edge, spread = 70, 30
	for name, src := range samples() {
		block, err := c.Compress(nil, src)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for n := range len(block) {
			if n > edge && n < len(block)-edge && n%(1+len(block)/spread) != 0 {
				continue
			}
			out, err := c.Decompress(nil, block[:n], ample)
			switch {
			case err == nil && !(bytes.HasPrefix(src, out) && (len(out) < len(src) || len(src) == 0)):
				return fmt.Errorf("%s cut to %d of %d bytes: %d bytes come out and no error", name, n, len(block), len(out))
			case err != nil && !errors.Is(err, compression.ErrCorrupt):
				return fmt.Errorf("%s cut to %d of %d bytes: %v, want ErrCorrupt", name, n, len(block), err)
			}
		}
		if len(src) > 0 && len(block) > 1 {
			if err := wantCorrupt(c, name+" without its last byte", block[:len(block)-1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func afterError(c compression.Codec) error {
	block, err := c.Compress(nil, samples()["mixed"])
	if err != nil {
		return err
	}
	dst := append(make([]byte, 0, 1<<20), "front"...)
	for what, call := range map[string]func() ([]byte, error){
		"cut off":   func() ([]byte, error) { return c.Decompress(dst, block[:len(block)/2], ample) },
		"too large": func() ([]byte, error) { return c.Decompress(dst, block, 1000) },
		"garbage":   func() ([]byte, error) { return c.Decompress(dst, bytes.Repeat([]byte{0xab}, 40), ample) },
	} {
		out, err := call()
		if err == nil {
			return fmt.Errorf("%s: no error", what)
		}
		if string(out) != "front" || string(dst) != "front" {
			return fmt.Errorf("%s: dst comes back with %d bytes", what, len(out))
		}
	}
	return nil
}

// levels also checks clause 12. A codec without levels passes.
func levels(c compression.Codec) error {
	l, ok := c.(compression.Leveled)
	if !ok {
		return nil
	}
	src, good := samples()["mixed"], 0
	for level := -3; level <= 30; level++ {
		checked := l.CheckLevel(level)
		out, err := l.CompressLevel([]byte("front"), src, level)
		if checked != nil {
			if !errors.Is(checked, compression.ErrLevel) || !errors.Is(err, compression.ErrLevel) || string(out) != "front" {
				return fmt.Errorf("level %d: %v, %v; want dst and ErrLevel twice", level, checked, err)
			}
			continue
		}
		good++
		if err != nil || len(out) < 5 || string(out[:5]) != "front" {
			return fmt.Errorf("level %d: %d bytes, %w", level, len(out), err)
		}
		if back, err := c.Decompress(nil, out[5:], ample); err != nil || !bytes.Equal(back, src) {
			return fmt.Errorf("level %d: %d bytes come back, %w", level, len(back), err)
		}
	}
	if good == 0 {
		return errors.New("no level is good")
	}
	return nil
}
