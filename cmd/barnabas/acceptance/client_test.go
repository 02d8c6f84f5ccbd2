package acceptance

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// conn is one connection of a client that takes nothing for granted.
type conn struct {
	net.Conn
	t    *testing.T
	corr int32
}

// dial connects to a broker.
func (n *node) dial() *conn {
	n.t.Helper()
	return dialTo(n.t, n.options.Addr)
}

func dialTo(t *testing.T, addr string) *conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(5*time.Minute)))
	return &conn{Conn: c, t: t}
}

// frame is a request as it is sent, with its length in front.
func (c *conn) frame(req kmsg.Request) []byte {
	c.corr++
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("acceptance")).AppendRequest(nil, req, c.corr)
}

// rawFrame is a request with any key, version and body, with the header of an old client (version 1).
func (c *conn) rawFrame(key, version int16, body []byte) []byte {
	c.corr++
	b := binary.BigEndian.AppendUint32(nil, uint32(10+1+len(body)))
	b = binary.BigEndian.AppendUint16(b, uint16(key))
	b = binary.BigEndian.AppendUint16(b, uint16(version))
	b = binary.BigEndian.AppendUint32(b, uint32(c.corr))
	b = append(b, 0, 1, 'x')
	return append(b, body...)
}

func (c *conn) send(b []byte) {
	c.t.Helper()
	_, err := c.Write(b)
	require.NoError(c.t, err)
}

// payload reads the next frame.
func (c *conn) payload() []byte {
	c.t.Helper()
	var size [4]byte
	_, err := io.ReadFull(c, size[:])
	require.NoError(c.t, err, "where a response should be")
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err = io.ReadFull(c, b)
	require.NoError(c.t, err)
	return b
}

// receive reads the response of a request that was sent as number corr.
func receive[R kmsg.Response](c *conn, corr int32, req kmsg.Request) R {
	c.t.Helper()
	b := c.payload()
	require.Equal(c.t, corr, int32(binary.BigEndian.Uint32(b)), "correlation id")
	b = b[4:]
	if req.IsFlexible() && req.Key() != 18 {
		require.Zero(c.t, b[0], "tags in the response header")
		b = b[1:]
	}
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	require.NoError(c.t, resp.ReadFrom(b))
	return resp.(R)
}

// ask sends a request and reads its response.
func ask[R kmsg.Response](c *conn, version int16, req kmsg.Request) R {
	c.t.Helper()
	req.SetVersion(version)
	c.send(c.frame(req))
	return receive[R](c, c.corr, req)
}

// closed demands that the broker closes the connection without a byte.
func (c *conn) closed(why string) {
	c.t.Helper()
	n, err := c.Read(make([]byte, 1))
	require.Zero(c.t, n, "%s: an answer", why)
	require.False(c.t, errors.Is(err, os.ErrDeadlineExceeded), "%s: the connection is still open", why)
}

// alive demands that the connection, or another one, is served as usual.
func (c *conn) alive() {
	c.t.Helper()
	require.Zero(c.t, ask[*kmsg.ApiVersionsResponse](c, 0, kmsg.NewPtrApiVersionsRequest()).ErrorCode)
}

// createTopic creates a topic on one broker and fails when that fails.
func (c *conn) createTopic(name string, partitions int32, configs props) {
	c.t.Helper()
	require.Zero(c.t, c.tryCreate(name, partitions, configs), "create %s", name)
}

// tryCreate creates a topic and gives the error code.
func (c *conn) tryCreate(name string, partitions int32, configs props) int16 {
	c.t.Helper()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for k, v := range configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = k, &v
		topic.Configs = append(topic.Configs, config)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = 20_000, append(req.Topics, topic)
	return ask[*kmsg.CreateTopicsResponse](c, 4, req).Topics[0].ErrorCode
}

// deleteTopic deletes a topic and gives the error code.
func (c *conn) deleteTopic(name string) int16 {
	c.t.Helper()
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames = 20_000, []string{name}
	return ask[*kmsg.DeleteTopicsResponse](c, 3, req).Topics[0].ErrorCode
}

// metadata asks for one topic.
func (c *conn) metadata(name string) kmsg.MetadataResponseTopic {
	c.t.Helper()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = append(req.Topics, topic)
	return ask[*kmsg.MetadataResponse](c, 7, req).Topics[0]
}

// produceRequest is a request of acks=all with one record set a partition, from 0 on.
func produceRequest(topic string, sets ...[]byte) *kmsg.ProduceRequest {
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	for i, set := range sets {
		p := kmsg.NewProduceRequestTopicPartition()
		p.Partition, p.Records = int32(i), set
		t.Partitions = append(t.Partitions, p)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 10_000, append(req.Topics, t)
	return req
}

// produce sends one record set to a topic's partition 0.
func (c *conn) produce(version int16, topic string, set []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	return ask[*kmsg.ProduceResponse](c, version, produceRequest(topic, set)).Topics[0].Partitions[0]
}

// produceTo sends one record set to a partition with the newest version that names topics.
func (c *conn) produceTo(topic string, partition int32, set []byte) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	req := produceRequest(topic, set)
	req.Topics[0].Partitions[0].Partition = partition
	return ask[*kmsg.ProduceResponse](c, 9, req).Topics[0].Partitions[0]
}

// accepted produces to partition 0 and demands an offset.
func (c *conn) accepted(topic string, offset int64, set []byte) {
	c.t.Helper()
	got := c.produceTo(topic, 0, set)
	require.Zero(c.t, got.ErrorCode)
	require.Equal(c.t, offset, got.BaseOffset)
}

// fetchRequest is a request for one partition that takes what is there, and returns at once.
func fetchRequest(topic string, partition int32, offset int64) *kmsg.FetchRequest {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 64<<20
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.SessionEpoch, req.MaxBytes, req.Topics = -1, 64<<20, append(req.Topics, t)
	return req
}

// fetch gets one partition's answer.
func (c *conn) fetch(version int16, topic string, partition int32, offset int64) kmsg.FetchResponseTopicPartition {
	c.t.Helper()
	return ask[*kmsg.FetchResponse](c, version, fetchRequest(topic, partition, offset)).Topics[0].Partitions[0]
}

// listOffset asks for one timestamp.
func (c *conn) listOffset(version int16, topic string, partition int32, timestamp int64) kmsg.ListOffsetsResponseTopicPartition {
	c.t.Helper()
	p := kmsg.NewListOffsetsRequestTopicPartition()
	p.Partition, p.Timestamp, p.MaxNumOffsets = partition, timestamp, 1
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrListOffsetsRequest()
	req.Topics = append(req.Topics, t)
	return ask[*kmsg.ListOffsetsResponse](c, version, req).Topics[0].Partitions[0]
}

// end is the high watermark of a partition.
func (c *conn) end(topic string, partition int32) int64 {
	c.t.Helper()
	got := c.listOffset(2, topic, partition, -1)
	require.Zero(c.t, got.ErrorCode)
	return got.Offset
}

// set is an admin's change of a topic's configuration.
func (c *conn) set(topic, key, value string) {
	c.t.Helper()
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = key, &value
	r := kmsg.NewIncrementalAlterConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.Configs = kmsg.ConfigResourceTypeTopic, topic, append(r.Configs, config)
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, r)
	require.Zero(c.t, ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, req).Resources[0].ErrorCode)
}

// deleteRecords moves a partition's start and gives the error code.
func (c *conn) deleteRecords(topic string, partition int32, before int64) int16 {
	c.t.Helper()
	p := kmsg.NewDeleteRecordsRequestTopicPartition()
	p.Partition, p.Offset = partition, before
	t := kmsg.NewDeleteRecordsRequestTopic()
	t.Topic, t.Partitions = topic, append(t.Partitions, p)
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.TimeoutMillis, req.Topics = 10_000, append(req.Topics, t)
	return ask[*kmsg.DeleteRecordsResponse](c, 2, req).Topics[0].Partitions[0].ErrorCode
}

// long is a name of n characters.
func long(n int) string { return strings.Repeat("a", n) }
