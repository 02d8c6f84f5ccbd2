package acceptance

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOldClientsReadCompacted: clients that move on by the messages they get reach the end of a topic whose segments
// compaction has emptied one after the other.
func TestOldClientsReadCompacted(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		p := swift()
		p["log.cleaner.backoff.ms"] = "100"
		n := begin(t, storage, p)
		c := n.dial()
		c.createTopic("t", 1, props{"cleanup.policy": "compact", "segment.bytes": "2000", "min.cleanable.dirty.ratio": "0.01", "file.delete.delay.ms": "100"})
		now := time.Now().UnixMilli()
		value := []byte(strings.Repeat("v", 400))
		for i := range 100 {
			c.accepted("t", int64(i), batch(rec{key: fmt.Append(nil, i%3), value: value, timestamp: now}))
		}
		eventually(t, func() bool { return len(c.all("t", 0, 0)) < 20 }, "compaction")
		for _, version := range []int16{0, 1, 2, 3, 4, 11} {
			offset, read := int64(0), 0
			for round := 0; offset < 100; round++ {
				require.Less(t, round, 200, "v%d hangs at %d", version, offset)
				got := c.fetch(version, "t", 0, offset)
				for _, r := range decode(t, got, offset) {
					offset = r.Offset + 1
					read++
				}
				if version >= 4 { // these see batches
					for b := got.RecordBatches; len(b) >= 61; b = b[12+binary.BigEndian.Uint32(b[8:]):] {
						offset = max(offset, int64(binary.BigEndian.Uint64(b))+int64(binary.BigEndian.Uint32(b[23:]))+1)
					}
				}
			}
			assert.GreaterOrEqual(t, read, 3, "v%d: the last of each key", version)
		}
	})
}
