package acceptance

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/cmd/dev/logcheck"
)

const tailBatches = 10

// tailed is a broker with a topic of equal partitions of ten batches in two segments, one for each case.
func tailed(t *testing.T, storage string, partitions int) *node {
	t.Helper()
	n := begin(t, storage, nil)
	c := n.dial()
	c.createTopic("t", int32(partitions), forever("segment.bytes", "400", "index.interval.bytes", "100"))
	for i := range tailBatches {
		sets := make([][]byte, partitions)
		for p := range sets {
			sets[p] = batch(rec{value: fmt.Appendf(nil, "value%d", i), timestamp: 1000 + int64(i)})
		}
		for _, p := range ask[*kmsg.ProduceResponse](c, 7, produceRequest("t", sets...)).Topics[0].Partitions {
			require.Zero(t, p.ErrorCode)
		}
	}
	return n
}

// lastSegment is the path of a partition's last segment.
func (n *node) lastSegment(partition int) string {
	n.t.Helper()
	logs, err := filepath.Glob(n.data(fmt.Sprintf("t-%d", partition), "*.log"))
	require.NoError(n.t, err)
	require.Greater(n.t, len(logs), 1, "more than one segment")
	slices.Sort(logs)
	return logs[len(logs)-1]
}

// batchesOf cuts a segment at the boundaries of its batches, without what is preallocated behind them.
func batchesOf(segment []byte) (starts []int, end int) {
	for end+12 <= len(segment) && segment[end+16] == 2 {
		starts = append(starts, end)
		end += 12 + int(binary.BigEndian.Uint32(segment[end+8:]))
	}
	return starts, end
}

// wound changes the bytes of a last segment, and says how many of the ten batches are good after that.
type wound struct {
	name  string
	apply func(segment []byte, starts []int) (wounded []byte, good int)
}

// recovers wounds one partition a wound, starts the broker, and sees that each partition has exactly its good batches, takes
// the next one behind them, and has indexes that agree.
func recovers(t *testing.T, storage string, wounds []wound) *node {
	t.Helper()
	n := tailed(t, storage, len(wounds))
	n.kill()
	good := make([]int, len(wounds))
	for p, w := range wounds {
		path := n.lastSegment(p)
		whole := read(t, path)
		starts, end := batchesOf(whole)
		var wounded []byte
		wounded, good[p] = w.apply(bytes.Clone(whole[:end]), starts)
		write(t, path, wounded)
	}
	n.start()
	c := n.dial()
	check := func(when string, extra ...string) {
		for p, w := range wounds {
			var want []string
			for i := range good[p] {
				want = append(want, fmt.Sprintf("value%d", i))
			}
			require.Equal(t, append(want, extra...), texts(c.all("t", int32(p), 0)), "%s: %s", when, w.name)
		}
	}
	check("recovered")
	for p, w := range wounds {
		got := c.produceTo("t", int32(p), batch(values("next")...))
		require.Zero(t, got.ErrorCode, w.name)
		require.Equal(t, int64(good[p]), got.BaseOffset, w.name)
	}
	check("written on", "next")
	n.stop()
	_, err := logcheck.Directory(n.data())
	require.NoError(t, err)
	n.start()
	c = n.dial()
	check("stopped", "next")
	return n
}

// TestA18TornTail: what a crash leaves of the last segment is cut behind the last good batch, whatever it is.
//
// redpanda-data/redpanda#4113, Graylog2/graylog2-server#9305, KAFKA-10101
func TestA18TornTail(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		cut := func(bytes int) wound {
			return wound{fmt.Sprintf("%d bytes cut", bytes), func(b []byte, starts []int) ([]byte, int) {
				return b[:len(b)-bytes], tailBatches - 1
			}}
		}
		appended := func(name string, garbage []byte) wound {
			return wound{name, func(b []byte, _ []int) ([]byte, int) { return append(b, garbage...), tailBatches }}
		}
		flip := func(name string, fromEnd, at int) wound {
			return wound{name, func(b []byte, starts []int) ([]byte, int) {
				b[starts[len(starts)-fromEnd]+at] ^= 4
				return b, tailBatches - fromEnd
			}}
		}
		noise := make([]byte, 5000)
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		wrongEpoch := newBatch(values("x")...)
		wrongEpoch.FirstOffset, wrongEpoch.PartitionLeaderEpoch = 5, 0
		n := recovers(t, storage, []wound{
			cut(1), cut(30), cut(60),
			appended("nothing", nil),
			appended("4096 zeros", make([]byte, 4096)),
			appended("a MiB of zeros", make([]byte, 1<<20)),
			appended("a header that promises 2 GiB", unhex(t, "000000000000000a 7fffffff")),
			appended("a header that promises less than nothing", unhex(t, "000000000000000a ffffffff")),
			appended("noise", noise),
			appended("ff", bytes.Repeat([]byte{0xff}, 300)),
			appended("a batch of older offsets", encode(wrongEpoch)),
			appended("an old message", message(1, 0, 10, 1000, nil, []byte("old"))),
			flip("a bit of the last batch", 1, 65),
			flip("a bit of the last batch's length", 1, 11),
			flip("a bit of the last batch's magic", 1, 16),
			flip("a bit in the middle", 3, 65),
			flip("a bit of the length in the middle", 3, 9),
			{"an empty file", func(_ []byte, starts []int) ([]byte, int) { return nil, tailBatches - len(starts) }},
			{"all zeros", func(b []byte, starts []int) ([]byte, int) { return make([]byte, len(b)), tailBatches - len(starts) }},
		})
		assert.Contains(t, n.log, "level=WARN", "what was cut is said loudly")
	})
}

// TestTornTailAtEveryByte: the last two batches, cut at every byte, zeroed from many places on, and with bits flipped
// where a checksum or the structure protects them.
func TestTornTailAtEveryByte(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		size := len(batch(values("value0")...))
		wholeUpTo := func(b []byte, starts []int, at int) int { // batches that end at or before a position
			good := tailBatches - len(starts)
			for i := range starts {
				if end := append(starts[1:], len(b))[i]; end <= at {
					good++
				}
			}
			return good
		}
		var wounds []wound
		for back := 1; back <= 2*size; back++ {
			wounds = append(wounds, wound{fmt.Sprintf("cut %d bytes before the end", back), func(b []byte, starts []int) ([]byte, int) {
				return b[:len(b)-back], wholeUpTo(slices.Clone(b), slices.Clone(starts), len(b)-back)
			}})
		}
		for back := 1; back <= 2*size; back += 3 {
			wounds = append(wounds, wound{fmt.Sprintf("zero from %d bytes before the end", back), func(b []byte, starts []int) ([]byte, int) {
				zeroed := append(bytes.Clone(b[:len(b)-back]), make([]byte, back)...)
				same := len(b) - back // zeros that were there before
				for same < len(b) && zeroed[same] == b[same] {
					same++
				}
				return zeroed, wholeUpTo(slices.Clone(b), slices.Clone(starts), same)
			}})
		}
		for back := 1; back <= 2*size; back += 2 {
			if in := (2*size - back) % size; in < 8 || in >= 12 && in < 16 {
				continue // the broker stamps base offset and leader epoch, outside of the checksum
			}
			wounds = append(wounds, wound{fmt.Sprintf("flip %d bytes before the end", back), func(b []byte, starts []int) ([]byte, int) {
				b[len(b)-back] ^= byte(1 << (back % 8))
				return b, tailBatches - 1 - (back-1)/size
			}})
		}
		recovers(t, storage, wounds)
	})
}

// TestA19DamagedIndexes: what is wrong with an index is found at the start, after an orderly stop and after a crash, and
// the index is made anew.
//
// liftbridge-io/liftbridge#411, liftbridge#440, bitnami/bitnami-docker-kafka#34, redpanda-data/redpanda#10118,
// edsrzf/mmap-go#16
func TestA19DamagedIndexes(t *testing.T) {
	t.Parallel()
	damages := map[string]func(b []byte) []byte{ // nil removes the file
		"empty":   func([]byte) []byte { return []byte{} },
		"7 bytes": func([]byte) []byte { return []byte{0, 0, 0, 1, 0, 0, 0} },
		"noise": func(b []byte) []byte {
			for i := range b {
				b[i] = byte(rand.Uint32())
			}
			return b
		},
		"ff":      func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) },
		"zeros":   func(b []byte) []byte { return make([]byte, len(b)) },
		"longer":  func(b []byte) []byte { return append(b, make([]byte, 24*100)...) },
		"removed": func([]byte) []byte { return nil },
		"past the end": func(b []byte) []byte { // fits both kinds of entry: a large offset at a position far away
			return append(b, 0, 0, 0, 99, 0, 0xff, 0xff, 0xff, 0, 0, 0, 100, 0, 0xff, 0xff, 0xff, 0, 0, 0, 101, 0, 0xff, 0xff, 0xff)
		},
		"half an entry": func(b []byte) []byte { return b[:len(b)-3] },
	}
	var names []string
	for name := range damages {
		names = append(names, name)
	}
	slices.Sort(names)
	kinds := []string{".index", ".timeindex"}
	bothStorages(t, func(t *testing.T, storage string) {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
				n := tailed(t, storage, len(names)*len(kinds)*2+1)
				n.stop()
				if killed {
					require.NoError(t, os.Remove(n.data(".kafka_cleanshutdown")))
				}
				partition := 0
				var what []string
				for _, name := range names {
					for _, kind := range kinds {
						for _, closed := range []bool{true, false} {
							dir := n.data(fmt.Sprintf("t-%d", partition))
							indexes, err := filepath.Glob(filepath.Join(dir, "*"+kind))
							require.NoError(t, err)
							slices.Sort(indexes)
							path := indexes[len(indexes)-1]
							if closed {
								path = indexes[0]
							}
							if b := damages[name](read(t, path)); b == nil {
								require.NoError(t, os.Remove(path))
							} else {
								write(t, path, b)
							}
							what = append(what, fmt.Sprintf("%s: %s, closed segment %v", name, kind, closed))
							partition++
						}
					}
				}
				orphans := []string{n.data(fmt.Sprintf("t-%d", partition), "00000000000000000777.index"), n.data(fmt.Sprintf("t-%d", partition), "00000000000000000777.timeindex")}
				for _, path := range orphans {
					write(t, path, make([]byte, 24))
				}
				what = append(what, "orphans")

				n.start()
				c := n.dial()
				for p, damage := range what {
					for i := range int64(tailBatches) {
						at := decode(t, c.fetch(11, "t", int32(p), i), i)
						require.NotEmpty(t, at, "%s at %d", damage, i)
						require.Equal(t, i, at[0].Offset, damage)
						require.Equal(t, fmt.Sprintf("value%d", i), string(at[0].Value), damage)
						require.Equal(t, i, c.listOffset(2, "t", int32(p), 1000+i).Offset, "%s: timestamp of %d", damage, i)
					}
					require.Equal(t, int64(-1), c.listOffset(2, "t", int32(p), 1000+tailBatches).Offset, damage)
					got := c.produceTo("t", int32(p), batch(rec{value: []byte("next"), timestamp: 2000}))
					require.Zero(t, got.ErrorCode, damage)
					require.Equal(t, int64(tailBatches), got.BaseOffset, damage)
				}
				for _, path := range orphans {
					require.NoFileExists(t, path)
				}
				n.stop()
				_, err := logcheck.Directory(n.data())
				require.NoError(t, err)
			})
		}
	})
}
