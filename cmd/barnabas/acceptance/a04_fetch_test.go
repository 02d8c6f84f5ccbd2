package acceptance

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestA04FetchLimits: a batch that is larger than every limit of a fetch still comes, whole.
//
// redpanda-data/redpanda#1532, confluentinc/kafka-rest#111, KIP-74
func TestA04FetchLimits(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 3, forever())
		big := batch(rec{value: bytes.Repeat([]byte("x"), 300_000), timestamp: 1000})
		for partition := range int32(2) { // partition 2 stays empty
			for range 3 {
				require.Zero(t, c.produceTo("t", partition, big).ErrorCode)
			}
		}
		tiny := func(version int16, offset int64, partitions ...int32) []int {
			req := fetchRequest("t", 0, offset)
			req.MaxBytes, req.MinBytes = 1, 1
			req.Topics[0].Partitions = nil
			for _, number := range partitions {
				p := kmsg.NewFetchRequestTopicPartition()
				p.Partition, p.FetchOffset, p.PartitionMaxBytes = number, offset, 1
				if number == 2 {
					p.FetchOffset = 0
				}
				req.Topics[0].Partitions = append(req.Topics[0].Partitions, p)
			}
			var sizes []int
			for _, p := range ask[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions {
				require.Zero(t, p.ErrorCode)
				sizes = append(sizes, len(p.RecordBatches))
			}
			return sizes
		}
		for version := int16(4); version <= 12; version++ {
			for offset := range int64(3) {
				assert.Equal(t, []int{len(big)}, tiny(version, offset, 0), "v%d at %d", version, offset)
			}
			assert.Equal(t, []int{len(big), 0}, tiny(version, 1, 0, 1), "v%d: only the first is above the limit", version)
			assert.Equal(t, []int{0, len(big), 0}, tiny(version, 0, 2, 1, 0), "v%d: the first that has data", version)
		}
		for version := range int16(3) {
			assert.LessOrEqual(t, tiny(version, 0, 0)[0], 1, "v%d has a hard limit", version)
		}
		// Room for one batch and a half: whatever comes begins with whole ones.
		req := fetchRequest("t", 0, 0)
		req.Topics[0].Partitions[0].PartitionMaxBytes = int32(len(big) * 3 / 2)
		got := ask[*kmsg.FetchResponse](c, 11, req).Topics[0].Partitions[0]
		assert.Len(t, decode(t, got, 0), 1)
		for _, limit := range []int32{0, -1, math.MinInt32} { // no client means these
			req := fetchRequest("t", 0, 0)
			req.MaxBytes, req.Topics[0].Partitions[0].PartitionMaxBytes = limit, limit
			ask[*kmsg.FetchResponse](c, 11, req)
		}
	})
}

// TestA05FetchWaits: a fetch without data waits, in a session too, and ends when data come.
//
// redpanda-data/redpanda#1115, redpanda#1123, redpanda#4620
func TestA05FetchWaits(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	admin := n.dial()
	admin.createTopic("t", 1, forever())
	patient := func(minBytes int32) *kmsg.FetchRequest {
		req := fetchRequest("t", 0, admin.end("t", 0))
		req.MaxWaitMillis, req.MinBytes = 500, minBytes
		return req
	}
	waited := func(c *conn, req *kmsg.FetchRequest) (*kmsg.FetchResponse, time.Duration) {
		begin := time.Now()
		resp := ask[*kmsg.FetchResponse](c, 11, req)
		require.Zero(t, resp.ErrorCode)
		return resp, time.Since(begin)
	}
	within := func(t *testing.T, took time.Duration) {
		t.Helper()
		assert.Greater(t, took, 450*time.Millisecond)
		assert.Less(t, took, 30*time.Second)
	}

	c := n.dial()
	for range 3 {
		resp, took := waited(c, patient(1))
		within(t, took)
		assert.Empty(t, resp.Topics[0].Partitions[0].RecordBatches)
	}
	atOnce := patient(0)
	atOnce.MaxWaitMillis = 50_000
	_, took := waited(c, atOnce)
	assert.Less(t, took, 30*time.Second, "min_bytes 0 doesn't wait")

	// A session whose partitions don't change, and one that is empty.
	full := patient(1)
	full.SessionEpoch = 0
	resp, took := waited(c, full)
	within(t, took)
	session := resp.SessionID
	require.NotZero(t, session)
	incremental := func(epoch int32) *kmsg.FetchRequest {
		req := patient(1)
		req.Topics, req.SessionID, req.SessionEpoch = nil, session, epoch
		return req
	}
	for epoch := int32(1); epoch <= 4; epoch++ {
		resp, took := waited(c, incremental(epoch))
		within(t, took)
		assert.Empty(t, resp.Topics, "nothing changed")
	}

	// A record ends the wait, of the session and of the simple fetch.
	for _, req := range []*kmsg.FetchRequest{incremental(5), patient(1)} {
		req.MaxWaitMillis = 20_000
		done := make(chan *kmsg.FetchResponse, 1)
		go func() {
			resp, _ := waited(c, req)
			done <- resp
		}()
		end := admin.end("t", 0)
		time.Sleep(50 * time.Millisecond) // so that the fetch waits already; it must end either way
		admin.accepted("t", end, batch(values("wake")...))
		select {
		case resp := <-done:
			require.Len(t, resp.Topics, 1)
			assert.NotEmpty(t, resp.Topics[0].Partitions[0].RecordBatches)
		case <-time.After(time.Minute):
			require.Fail(t, "the fetch doesn't wake up")
		}
	}

	// Less than min_bytes comes when the time is over.
	req := fetchRequest("t", 0, 0)
	req.MaxWaitMillis, req.MinBytes = 500, 1_000_000
	resp, took = waited(c, req)
	within(t, took)
	assert.NotEmpty(t, resp.Topics[0].Partitions[0].RecordBatches)

	// Waiting costs no processor time to speak of.
	var waiting []*conn
	for range 20 {
		idle := n.dial()
		req := patient(1)
		req.MaxWaitMillis = 1000
		req.SetVersion(11)
		idle.send(idle.frame(req))
		waiting = append(waiting, idle)
	}
	before := n.cpu()
	for _, idle := range waiting {
		idle.payload()
	}
	assert.Less(t, n.cpu()-before, 300*time.Millisecond)
}

// TestA06FetchOffsets: which offsets may be fetched.
//
// redpanda-data/redpanda#4201, redpanda#10799, redpanda#10802
func TestA06FetchOffsets(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 1, forever("segment.bytes", "200"))
		for i := range int64(10) {
			c.accepted("t", i, batch(values(fmt.Sprint(i))...))
		}
		code := func(version int16, offset int64, wait int32) (int16, time.Duration) {
			req := fetchRequest("t", 0, offset)
			req.MaxWaitMillis, req.MinBytes = wait, 1
			begin := time.Now()
			p := ask[*kmsg.FetchResponse](c, version, req).Topics[0].Partitions[0]
			return p.ErrorCode, time.Since(begin)
		}
		const outOfRange = 1
		for version := range int16(13) {
			for _, offset := range []int64{11, -1, -2, math.MinInt64, 1 << 62, math.MaxInt64} {
				got, took := code(version, offset, 50_000)
				assert.Equal(t, int16(outOfRange), got, "v%d at %d", version, offset)
				assert.Less(t, took, 30*time.Second, "v%d at %d: there is nothing to wait for", version, offset)
			}
		}
		got, took := code(11, 10, 500)
		assert.Zero(t, got, "the end of the log is in range")
		assert.Greater(t, took, 450*time.Millisecond)

		require.Zero(t, c.deleteRecords("t", 0, 5))
		check := func(when string) {
			for offset := range int64(5) {
				got, _ := code(11, offset, 500)
				assert.Equal(t, int16(outOfRange), got, "%s: %d is deleted", when, offset)
			}
			records := c.all("t", 0, 5)
			require.Len(t, records, 5, when)
			assert.Equal(t, int64(5), records[0].Offset, when)
		}
		check("after DeleteRecords")
		n.stop()
		n.start()
		c = n.dial()
		check("after a restart")
		n.kill()
		n.start()
		c = n.dial()
		check("after kill -9")

		for version := range int16(13) {
			for _, p := range []kmsg.FetchResponseTopicPartition{c.fetch(version, "t", 1, 0), c.fetch(version, "t", -1, 0), c.fetch(version, "u", 0, 0)} {
				assert.Equal(t, int16(3), p.ErrorCode, "v%d: no such partition", version)
				assert.Equal(t, int64(-1), p.HighWatermark)
			}
		}
	})
}

// TestA20EveryOffset: a read at an offset brings that offset, across many segments and inside of batches.
//
// travisjeffery/jocko#145, jocko#124
func TestA20EveryOffset(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		small := forever("segment.bytes", "1024", "index.interval.bytes", "100")
		c.createTopic("single", 1, small)
		c.createTopic("seven", 1, small)
		value := func(i int) string { return fmt.Sprintf("%040d", i) }
		for i := range 100 {
			c.accepted("single", int64(i), batch(values(value(i))...))
		}
		for i := 0; i < 105; i += 7 {
			var vs []string
			for k := range 7 {
				vs = append(vs, value(i+k))
			}
			c.accepted("seven", int64(i), batch(values(vs...)...))
		}
		check := func(when string) {
			for topic, end := range map[string]int{"single": 100, "seven": 105} {
				for at := range end {
					for _, version := range []int16{2, 3, 11, 12} {
						records := decode(t, c.fetch(version, topic, 0, int64(at)), int64(at))
						require.NotEmpty(t, records, "%s: %s at %d, v%d", when, topic, at, version)
						require.Equal(t, int64(at), records[0].Offset, "%s: %s, v%d", when, topic, version)
						require.Equal(t, value(at), string(records[0].Value), "%s: %s, v%d", when, topic, version)
					}
				}
				require.Empty(t, c.fetch(11, topic, 0, int64(end)).RecordBatches)
				require.Len(t, c.all(topic, 0, 0), end, "%s: %s", when, topic)
			}
		}
		check("as written")
		n.stop()
		n.start()
		c = n.dial()
		check("after a stop")
		n.kill()
		n.start()
		c = n.dial()
		check("after kill -9")
	})
}
