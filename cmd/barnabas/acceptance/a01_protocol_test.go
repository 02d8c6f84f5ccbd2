package acceptance

import (
	"encoding/binary"
	"fmt"
	"math"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestA01ApiVersionsFallback: a client that opens with a newer ApiVersions than the broker knows is told, in the oldest
// form, what the broker knows.
//
// confluentinc/librdkafka#3090, streamnative/kop#176, kroxylicious/kroxylicious#1611, KAFKA-3652, KIP-511
func TestA01ApiVersionsFallback(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	for _, frame := range []string{
		"00000011 0012 0063 00000007 0001 78 00 02 61 02 62 00", // version 99
		"00000011 0012 7fff 00000007 0001 78 00 02 61 02 62 00", // 32767
		"0000000d 0012 0063 00000007 0001 78 00 ff",             // a body that no version has
		"0000000a 0012 0063 00000007 ffff",                      // nothing behind the header of version 1
	} {
		c.send(unhex(t, frame))
		b := c.payload()
		require.GreaterOrEqual(t, len(b), 16)
		assert.Equal(t, []byte{0, 0, 0, 7, 0, 35}, b[:6], "correlation id and UNSUPPORTED_VERSION, without tags between them")
		resp := kmsg.NewPtrApiVersionsResponse()
		require.NoError(t, resp.ReadFrom(b[4:]), "the layout is version 0")
		var own *kmsg.ApiVersionsResponseApiKey
		for i := range resp.ApiKeys {
			if resp.ApiKeys[i].ApiKey == 18 {
				own = &resp.ApiKeys[i]
			}
		}
		require.NotNil(t, own, "its own range")
		assert.Less(t, own.MaxVersion, int16(99))
		assert.Equal(t, resp.AppendTo(nil), b[4:], "nothing behind")
		c.alive()
	}
	for version := range int16(5) {
		req := kmsg.NewPtrApiVersionsRequest()
		req.ClientSoftwareName, req.ClientSoftwareVersion = "a", "1"
		resp := ask[*kmsg.ApiVersionsResponse](c, version, req) // receive takes no tags for the header's
		assert.Zero(t, resp.ErrorCode)
		assert.NotEmpty(t, resp.ApiKeys)
	}
}

// TestA01UnknownKeysAndVersions: other requests that aren't served end the connection, as in Kafka, and no other one.
func TestA01UnknownKeysAndVersions(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	witness := n.dial()
	listed := map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, k := range ask[*kmsg.ApiVersionsResponse](witness, 0, kmsg.NewPtrApiVersionsRequest()).ApiKeys {
		listed[k.ApiKey] = k
	}
	for _, key := range []int16{-32768, -1, 93, 999, 32767} {
		c := n.dial()
		c.send(c.rawFrame(key, 0, nil))
		c.closed(fmt.Sprintf("key %d", key))
	}
	for key := range int16(93) {
		k, ok := listed[key]
		for _, version := range []int16{k.MinVersion - 1, k.MaxVersion + 1, -32768, math.MaxInt16} {
			if key == 18 || ok && version >= k.MinVersion && version <= k.MaxVersion {
				continue
			}
			c := n.dial()
			c.send(c.rawFrame(key, version, nil))
			c.closed(fmt.Sprintf("key %d version %d", key, version))
		}
	}
	witness.alive()
}

// TestA02BadLengthPrefix: what isn't Kafka's protocol at all, or promises more than it sends, costs a connection and no
// memory.
//
// redpanda-data/redpanda#9466, quarkusio/quarkus-quickstarts#1088, dpkp/kafka-python#3014
func TestA02BadLengthPrefix(t *testing.T) {
	t.Parallel()
	n := begin(t, "", props{"connections.max.idle.ms": "4000"})
	witness := n.dial()
	before := n.memory()
	for _, prefix := range []string{
		"474554202f20485454502f312e310d0a0d0a",                     // GET / HTTP/1.1
		"160301020001000001fc0303",                                 // TLS client hello
		"5353482d322e300d0a",                                       // SSH-2.0
		"7fffffff", "ffffffff", "80000000", "00000000", "06400001", // one over 100 MiB
		"00000001 00", "00000009 000000000000000000", // shorter than any header
	} {
		c := n.dial()
		c.send(unhex(t, prefix))
		c.closed(prefix)
		witness.alive()
	}
	var silent []*conn
	for _, prefix := range []string{"", "06", "064000"} {
		c := n.dial()
		c.send(unhex(t, prefix))
		silent = append(silent, c)
	}
	for range 200 {
		c := n.dial()
		c.send(unhex(t, "06400000"))
		silent = append(silent, c)
	}
	for range 20 {
		begin := time.Now()
		witness.alive()
		assert.Less(t, time.Since(begin), 20*time.Second)
	}
	assert.Less(t, n.memory()-before, int64(32<<20), "20 GB were promised and 800 bytes came")
	for _, c := range silent {
		c.closed("a silent connection after connections.max.idle.ms")
	}
	n.dial().alive()
}

// TestA03PipelinedRequests: responses come in the order of their requests, however much cheaper the later ones are.
//
// redpanda-data/redpanda#25636, redpanda#1496, streamnative/kop#199, kop#200, IBM/sarama#992
func TestA03PipelinedRequests(t *testing.T) {
	t.Parallel()
	bothStorages(t, func(t *testing.T, storage string) {
		n := begin(t, storage, nil)
		c := n.dial()
		c.createTopic("t", 1, forever("flush.messages", "1"))
		c.coordinator("none")

		fetch := fetchRequest("t", 0, 0)
		fetch.MaxWaitMillis, fetch.MinBytes = 2000, 1
		metadata := kmsg.NewPtrMetadataRequest()
		list := kmsg.NewPtrListOffsetsRequest()
		heartbeat := kmsg.NewPtrHeartbeatRequest()
		heartbeat.Group, heartbeat.MemberID = "none", "none"
		first := c.corr + 1
		begin := time.Now()
		c.send(frames(c, []kmsg.Request{fetch, metadata, list, heartbeat}, 4))
		assert.Empty(t, receive[*kmsg.FetchResponse](c, first, fetch).Topics[0].Partitions[0].RecordBatches)
		assert.Greater(t, time.Since(begin), 1500*time.Millisecond, "nothing overtakes a fetch that waits")
		receive[*kmsg.MetadataResponse](c, first+1, metadata)
		receive[*kmsg.ListOffsetsResponse](c, first+2, list)
		assert.Equal(t, int16(25), receive[*kmsg.HeartbeatResponse](c, first+3, heartbeat).ErrorCode)

		// 50 produce requests in one write; some fail and take their turn all the same.
		var requests []kmsg.Request
		for i := range 50 {
			set := batch(values(fmt.Sprint(i))...)
			if i%10 == 5 {
				set = unhex(t, va2)
			}
			requests = append(requests, produceRequest("t", set))
		}
		requests = append(requests, kmsg.NewPtrMetadataRequest())
		first = c.corr + 1
		c.send(frames(c, requests, 7))
		offset := int64(0)
		for i, req := range requests[:50] {
			got := receive[*kmsg.ProduceResponse](c, first+int32(i), req).Topics[0].Partitions[0]
			if i%10 == 5 {
				assert.Equal(t, int16(2), got.ErrorCode)
				continue
			}
			assert.Zero(t, got.ErrorCode)
			assert.Equal(t, offset, got.BaseOffset)
			offset++
		}
		receive[*kmsg.MetadataResponse](c, first+50, requests[50])
		assert.Equal(t, offset, c.end("t", 0))

		// Without acks there is no answer, and the next request's comes first.
		silent := produceRequest("t", batch(values("silent")...))
		silent.Acks = 0
		c.send(frames(c, []kmsg.Request{silent}, 7))
		c.alive()
		eventually(t, func() bool { return c.end("t", 0) == offset+1 }, "the record without acks")

		// One that can't be read ends the connection, after the answers to those before it.
		good := kmsg.NewPtrMetadataRequest()
		good.SetVersion(4)
		b := c.frame(good)
		corr := c.corr
		b = append(b, c.rawFrame(0, 7, []byte{0xff})...)
		c.send(append(b, c.frame(good)...))
		receive[*kmsg.MetadataResponse](c, corr, good)
		c.closed("a body that can't be read")
	})
}

// frames is several requests of one version in one piece.
func frames(c *conn, requests []kmsg.Request, version int16) (b []byte) {
	for _, req := range requests {
		req.SetVersion(min(version, req.MaxVersion()))
		b = append(b, c.frame(req)...)
	}
	return b
}

// TestByteByByte: a request may come in any pieces.
func TestByteByByte(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	require.NoError(t, c.Conn.(*net.TCPConn).SetNoDelay(true))
	c.createTopic("t", 1, forever())
	req := produceRequest("t", batch(values("slowly")...))
	req.SetVersion(9)
	for _, b := range c.frame(req) {
		c.send([]byte{b})
		time.Sleep(200 * time.Microsecond) // so that the pieces aren't joined on the way
	}
	got := receive[*kmsg.ProduceResponse](c, c.corr, req)
	assert.Zero(t, got.Topics[0].Partitions[0].ErrorCode)
	assert.Equal(t, []string{"slowly"}, texts(c.all("t", 0, 0)))

	// The other end may close in the middle, and half close after a whole request.
	cut := n.dial()
	cut.send(binary.BigEndian.AppendUint32(nil, 100))
	_ = cut.Close()
	half := n.dial()
	versions := kmsg.NewPtrApiVersionsRequest()
	half.send(half.frame(versions))
	require.NoError(t, half.Conn.(*net.TCPConn).CloseWrite())
	receive[*kmsg.ApiVersionsResponse](half, half.corr, versions)
	half.closed("after the last answer")
	c.alive()
}
