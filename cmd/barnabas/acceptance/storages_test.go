package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/logcheck"
)

// TestStoragesShareADirectory: what one storage has written the other serves, byte for byte, writes on, and gives back; after
// orderly stops and after kills.
func TestStoragesShareADirectory(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			t.Parallel()
			n := begin(t, "mmap", nil)
			c := n.dial()
			topics := map[string]props{
				"plain": forever("segment.bytes", "2000", "index.interval.bytes", "200"), "one": forever(),
				"packed": forever("compression.type", "zstd"), "synced": forever("flush.messages", "1", "segment.bytes", "3000"),
				"big": forever("segment.bytes", "1000000", "preallocate", "true"), "empty": forever(),
			}
			for topic, configs := range topics {
				c.createTopic(topic, 2, configs)
			}
			next := 0
			add := func() {
				for range 30 {
					for topic := range topics {
						if topic == "empty" {
							continue
						}
						size := 1 + next%50
						if topic == "big" {
							size *= 1000
						}
						got := c.produceTo(topic, int32(next%2), batch(rec{value: []byte(strings.Repeat("v", size)), timestamp: int64(1000 + next)}, rec{value: fmt.Append(nil, next), timestamp: 5}))
						require.Zero(t, got.ErrorCode)
						next++
					}
				}
			}
			// everything is all bytes that fetches bring, from every offset, and where timestamps lie.
			everything := func() map[string]string {
				all := map[string]string{}
				for topic := range topics {
					for partition := range int32(2) {
						end := c.end(topic, partition)
						var b strings.Builder
						for offset := int64(0); offset < end; offset += 2 {
							got := c.fetch(11, topic, partition, offset)
							require.Zero(t, got.ErrorCode)
							size := 12 + int(got.RecordBatches[8])<<24 + int(got.RecordBatches[9])<<16 + int(got.RecordBatches[10])<<8 + int(got.RecordBatches[11])
							b.Write(got.RecordBatches[:size])
						}
						for timestamp := int64(990); timestamp < int64(1000+next+5); timestamp += 7 {
							fmt.Fprint(&b, " ", c.listOffset(2, topic, partition, timestamp).Offset)
						}
						fmt.Fprint(&b, " end ", end)
						all[fmt.Sprint(topic, partition)] = b.String()
					}
				}
				return all
			}
			add()
			for _, storage := range []string{"sendfile", "mmap", "sendfile"} {
				before := everything()
				if killed {
					n.kill()
				} else {
					n.stop()
					_, err := logcheck.Directory(n.data())
					require.NoError(t, err)
				}
				n.options.Storage = storage
				n.start()
				c = n.dial()
				require.Equal(t, before, everything(), "under %s", storage)
				add()
			}
			n.stop()
			_, err := logcheck.Directory(n.data())
			require.NoError(t, err)
		})
	}
}

// TestSoak: segments roll and are deleted, keys are compacted and clients come and go, and nothing piles up: no files, no
// descriptors, no mappings, no memory.
func TestSoak(t *testing.T) {
	t.Parallel()
	long := 12 * time.Second
	if testing.Short() {
		long = 3 * time.Second
	}
	bothStorages(t, func(t *testing.T, storage string) {
		p := swift()
		p["log.cleaner.backoff.ms"] = "200"
		n := begin(t, storage, p)
		c := n.dial()
		rolling := props{"segment.bytes": "20000", "retention.bytes": "60000", "file.delete.delay.ms": "100"}
		c.createTopic("rolling", 2, rolling)
		c.createTopic("compacted", 1, props{"cleanup.policy": "compact", "segment.bytes": "20000", "min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "100"})
		value := []byte(strings.Repeat("v", 400))
		round := func(i int) {
			visitor := n.dial()
			now := time.Now().UnixMilli()
			for partition := range int32(2) {
				require.Zero(t, visitor.produceTo("rolling", partition, batch(rec{value: value, timestamp: now}, rec{value: value, timestamp: now})).ErrorCode)
			}
			keyed := rec{key: fmt.Append(nil, i%20), value: value, timestamp: now}
			require.Zero(t, visitor.produceTo("compacted", 0, batch(keyed, keyed)).ErrorCode)
			visitor.fetch(11, "rolling", 0, visitor.start("rolling", 0))
			visitor.fetch(2, "compacted", 0, 0)
			_ = visitor.Close()
		}
		files := func() int {
			found, err := filepath.Glob(n.data("*", "*"))
			require.NoError(t, err)
			return len(found)
		}
		type level struct {
			files, descriptors, maps int
			memory                   int64
		}
		measure := func() level { return level{files(), n.descriptors(), n.maps(), n.memory()} }
		rounds := 0
		for ; rounds < 300; rounds++ { // until the level is reached
			round(rounds)
		}
		eventually(t, func() bool { return c.start("rolling", 0) > 0 }, "deletion by size")
		low := measure()
		high := low
		for end := time.Now().Add(long); time.Now().Before(end); rounds++ {
			round(rounds)
			if rounds%50 == 0 {
				m := measure()
				high = level{max(high.files, m.files), max(high.descriptors, m.descriptors), max(high.maps, m.maps), max(high.memory, m.memory)}
			}
		}
		t.Logf("%d rounds; from %+v up to %+v", rounds, low, high)
		eventually(t, func() bool { // what waits to be deleted, or compacted, is soon gone
			m := measure()
			return m.files <= low.files+40 && m.descriptors <= low.descriptors+40 && m.maps <= low.maps+60
		}, "files, descriptors and mappings to come down: %+v, now %+v", low, measure())
		require.Less(t, high.memory-low.memory, int64(64<<20))
		eventually(t, func() bool { return len(c.all("compacted", 0, 0)) < 1000 }, "compaction of %d records of 20 keys", 2*rounds)
		eventually(t, func() bool {
			left, err := filepath.Glob(n.data("*", "*.deleted"))
			return err == nil && len(left) == 0
		}, "what was deleted to be gone")
		n.stop()
		_, err := logcheck.Directory(n.data())
		require.NoError(t, err)
		_, err = os.Stat(n.data(".kafka_cleanshutdown"))
		require.NoError(t, err)
	})
}
