// Package compression_test plays what Kafka's clients send through all four codecs and the record formats that carry them.
package compression_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/compression"
	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
	"github.com/barnabas-mq/barnabas/core/record"
	"github.com/barnabas-mq/barnabas/plugins/compression/gzip"
	"github.com/barnabas-mq/barnabas/plugins/compression/lz4"
	"github.com/barnabas-mq/barnabas/plugins/compression/snappy"
	"github.com/barnabas-mq/barnabas/plugins/compression/zstd"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func registry(t testing.TB) plugin.Registry[compression.Settings, compression.Codec] {
	t.Helper()
	r, err := plugin.NewRegistry("compression", gzip.NewFactory(), snappy.NewFactory(), lz4.NewFactory(), zstd.NewFactory())
	require.NoError(t, err)
	return r
}

// codecs makes and starts the codecs that a `compression` list names.
func codecs(t testing.TB, yaml string) *compression.Set {
	t.Helper()
	root, err := config.Parse("barnabas.yaml", []byte(yaml))
	require.NoError(t, err)
	sub, ok := root.Sub("compression")
	require.True(t, ok)
	elements, ok := sub.List()
	require.True(t, ok)
	var made []compression.Codec
	for _, e := range elements {
		name, options, err := e.Choice()
		require.NoError(t, err)
		factory, err := registry(t).Get(name)
		require.NoError(t, err)
		c, err := factory.New(options, compression.Settings{})
		require.NoError(t, err)
		made = append(made, c)
	}
	set, err := compression.NewSet(made...)
	require.NoError(t, err)
	require.NoError(t, set.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, set.Stop(context.Background())) })
	return set
}

func all(t testing.TB) *compression.Set { return codecs(t, "compression: [gzip, snappy, lz4, zstd]") }

func TestExamplesOfTheReadmes(t *testing.T) {
	for _, name := range registry(t).Names() {
		text, err := os.ReadFile(name + "/README.md")
		require.NoError(t, err)
		_, rest, ok := strings.Cut(string(text), "```yaml\n")
		require.True(t, ok, name)
		example, _, ok := strings.Cut(rest, "```")
		require.True(t, ok, name)
		set := codecs(t, example)
		require.Equal(t, name, set.IDs()[0].String())
	}
}

func TestWrongOptions(t *testing.T) {
	for name, yaml := range map[string]string{
		"gzip": "{level: 10}", "lz4": "{level: 0}", "zstd": "{level: 23}", "snappy": "{level: 1}",
	} {
		root, err := config.Parse("barnabas.yaml", []byte("compression:\n  "+name+": "+yaml))
		require.NoError(t, err)
		sub, _ := root.Sub("compression")
		_, options, err := sub.Choice()
		require.NoError(t, err)
		factory, err := registry(t).Get(name)
		require.NoError(t, err)
		_, err = factory.New(options, compression.Settings{})
		require.ErrorContains(t, err, "barnabas.yaml:2: compression."+name)
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	require.NoError(t, err)
	return b
}

// Message sets as old producers sent them: one compressed message with "hello" inside.
const (
	// Format 1, snappy, a frame of two blocks.
	twoBlocks = `000000000000000000000059 eeed38de 01 02 00000000000003e8 ffffffff 00000043
		82534e41505059000000000100000001 00000016 144c00000000000000000000001b942da34101000000
		00000015 13480000000003e8ffffffff0000000568656c6c6f`
	// lz4, formats 0 and 1, with the wrong header checksum (1a) of Kafka's first writer and the right one (82).
	wrong0 = `0000000000000000 0000003c b9cedf46 00 03 ffffffff 0000002e 04224d186040 1a 1f000080
		0000000000000000 00000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f 00000000`
	right0 = `0000000000000000 0000003c fda65bb3 00 03 ffffffff 0000002e 04224d186040 82 1f000080
		0000000000000000 00000013 87a77ab2 00 00 ffffffff 00000005 68656c6c6f 00000000`
	wrong1 = `0000000000000000 0000004c 3484d1d8 01 03 00000000000003e8 ffffffff 00000036 04224d186040 1a 27000080
		0000000000000000 0000001b 942da341 01 00 00000000000003e8 ffffffff 00000005 68656c6c6f 00000000`
	right1 = `0000000000000000 0000004c b68276a9 01 03 00000000000003e8 ffffffff 00000036 04224d186040 82 27000080
		0000000000000000 0000001b 942da341 01 00 00000000000003e8 ffffffff 00000005 68656c6c6f 00000000`
)

func TestOldProducers(t *testing.T) {
	set := all(t)
	rules := record.DefaultRules(2000)
	for _, tc := range []struct {
		name, bytes string
		codec       record.Codec
		timestamp   int64
		err         error
	}{
		{"snappy, two blocks", twoBlocks, record.Snappy, 1000, nil},
		{"format 0, wrong checksum", wrong0, record.LZ4, -1, nil},
		{"format 0, right checksum", right0, record.LZ4, -1, nil},
		{"format 1, wrong checksum", wrong1, record.LZ4, 0, record.ErrUnreadable},
		{"format 1, right checksum", right1, record.LZ4, 1000, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, err := record.NewValidator(set).Validate(unhex(t, tc.bytes), &rules)
			require.ErrorIs(t, err, tc.err)
			if tc.err != nil {
				return
			}
			require.Equal(t, tc.codec, res.Header.Attributes.Codec())
			n := 0
			for r, err := range res.Batch.Each(set, record.DefaultPayloadLimit) {
				require.NoError(t, err)
				require.Equal(t, "hello", string(r.Value))
				require.Equal(t, tc.timestamp, r.Timestamp)
				n++
			}
			require.Equal(t, 1, n)
			if tc.codec != record.LZ4 {
				return
			}
			// Old consumers get what old producers sent, with the checksum that their format has.
			down0, err := record.DownConvert(nil, res.Batch, 0, 0, set, record.DefaultPayloadLimit)
			require.NoError(t, err)
			require.Equal(t, byte(0x1a), down0[26+6])
			down1, err := record.DownConvert(nil, res.Batch, 1, 0, set, record.DefaultPayloadLimit)
			require.NoError(t, err)
			require.Equal(t, byte(0x82), down1[34+6])
		})
	}
}

// batch makes a batch of n records of 1 KB that compress to about half.
func batch(t testing.TB, set *compression.Set, codec record.Codec, n int) record.Batch {
	t.Helper()
	b := record.NewBuilder(record.Options{Codec: codec})
	seed := uint32(1)
	for i := range n {
		value := make([]byte, 1000)
		for j := range value[:500] {
			seed = seed*1664525 + 1013904223
			value[j] = byte(seed >> 24)
		}
		require.NoError(t, b.Append(record.Record{Offset: int64(i), Timestamp: 1000, Key: fmt.Append(nil, i), Value: value}))
	}
	out, err := b.Build(nil, set)
	require.NoError(t, err)
	return out
}

func TestBatchesOfAllCodecs(t *testing.T) {
	set := all(t)
	plain := batch(t, set, record.None, 100)
	for _, from := range append(set.IDs(), record.None) {
		b := batch(t, set, from, 100)
		payload, err := b.Payload(set, nil, record.DefaultPayloadLimit)
		require.NoError(t, err)
		require.Equal(t, plain.Records(), payload)
		for _, to := range append(set.IDs(), record.None) {
			rules := record.DefaultRules(2000)
			rules.Target = record.Target{Codec: to}
			res, err := record.NewValidator(set).Validate(bytes.Clone(b), &rules)
			require.NoError(t, err)
			require.Equal(t, to, res.Header.Attributes.Codec())
			payload, err := res.Batch.Payload(set, nil, record.DefaultPayloadLimit)
			require.NoError(t, err)
			require.Equal(t, plain.Records(), payload)
		}
	}
}

// Snappy without a frame, as clients in other languages send it; and all that can be wrong with a frame.
func TestSnappyFrames(t *testing.T) {
	c, err := all(t).ByName("snappy")
	require.NoError(t, err)
	framed, err := c.Compress(nil, []byte("hello"))
	require.NoError(t, err)
	require.Equal(t, unhex(t, "82534e4150505900 00000001 00000001 00000007"), framed[:20])
	raw := framed[20:]
	for _, block := range [][]byte{raw, append(bytes.Clone(framed), framed...)} {
		out, err := c.Decompress(nil, block, 10)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte("hello"), len(out)/5), out)
	}
	for _, n := range []int{0, 7, 8, 15, 19, 20, 26} {
		_, err := c.Decompress(nil, framed[:n], 100)
		require.ErrorIs(t, err, compression.ErrCorrupt, n)
	}
	out, err := c.Decompress(nil, framed[:16], 100)
	require.NoError(t, err, "a frame without blocks is that of nothing")
	require.Empty(t, out)
	for _, length := range []string{"7fffffff", "ffffffff", "00000000", "00000006"} {
		_, err := c.Decompress(nil, append(append(bytes.Clone(framed[:16]), unhex(t, length)...), raw...), 100)
		require.ErrorIs(t, err, compression.ErrCorrupt, length)
	}
}

// What another client writes is read, and the reverse.
func TestAgainstKafkaGo(t *testing.T) {
	set := all(t)
	noise := batch(t, set, record.None, 300).Records()
	for _, src := range [][]byte{nil, []byte("hello"), bytes.Repeat([]byte("Barnabas carries messages. "), 9000), noise, make([]byte, 3<<20)} {
		for _, id := range set.IDs() {
			theirs := compress.Compression(id).Codec()
			var buf bytes.Buffer
			w := theirs.NewWriter(&buf)
			_, err := w.Write(src)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			if len(src) > 0 || id == record.Gzip { // the others write nothing at all for nothing
				out, err := set.Decompress(id, nil, buf.Bytes(), len(src))
				require.NoError(t, err, id)
				require.True(t, bytes.Equal(src, out), id)
				_, err = set.Decompress(id, make([]byte, 5, 1000), buf.Bytes(), max(0, len(src)-1))
				require.Equal(t, len(src) > 0, errors.Is(err, compression.ErrTooLarge), "%s: %v", id, err)
			}
			block, err := set.Compress(id, 0, nil, src)
			require.NoError(t, err)
			r := theirs.NewReader(bytes.NewReader(block))
			out, err := io.ReadAll(r)
			require.NoError(t, err, id)
			require.NoError(t, r.Close())
			require.True(t, bytes.Equal(src, out), id)
		}
	}
}

func BenchmarkCodecs(b *testing.B) {
	set := all(b)
	plain := batch(b, set, record.None, 64).Records()
	for _, id := range set.IDs() {
		block, err := set.Compress(id, 0, nil, plain)
		require.NoError(b, err)
		buf := make([]byte, 0, 2*len(plain))
		b.Run(id.String()+"/compress", func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := set.Compress(id, 0, buf, plain); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(id.String()+"/decompress", func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := set.Decompress(id, buf, block, len(plain)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
