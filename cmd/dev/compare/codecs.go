package compare

import (
	"bytes"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/record"
)

// clientCodecs compress as a client does: franz-go, at its default levels.
type clientCodecs struct{}

// Compress appends src, compressed, to dst; the level is the client's own, whatever is asked for.
func (clientCodecs) Compress(c record.Codec, _ int, dst, src []byte) ([]byte, error) {
	codec, ok := map[record.Codec]kgo.CompressionCodec{record.Gzip: kgo.GzipCompression(), record.Snappy: kgo.SnappyCompression(),
		record.LZ4: kgo.Lz4Compression(), record.Zstd: kgo.ZstdCompression()}[c]
	if !ok {
		return dst, fmt.Errorf("compress: no codec %s", c)
	}
	compressor, err := kgo.DefaultCompressor(codec)
	if err != nil {
		return dst, err
	}
	out, used := compressor.Compress(new(bytes.Buffer), src)
	if int(used) != int(c) {
		return dst, fmt.Errorf("compress: the client used codec %d instead of %s", used, c)
	}
	return append(dst, out...), nil
}

// Decompress appends what src decompresses to.
func (clientCodecs) Decompress(c record.Codec, dst, src []byte, limit int) ([]byte, error) {
	out, err := kgo.DefaultDecompressor().Decompress(src, kgo.CompressionCodecType(c))
	if err != nil {
		return dst, err
	}
	if len(out) > limit {
		return dst, record.ErrPayloadTooLarge
	}
	return append(dst, out...), nil
}
