package scale

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// slowOnes is how many connections are slow, of each kind.
const slowOnes = 50

// connections opens many connections, of which most are idle, and some are slow.
func connections(ctx context.Context, f *field) error {
	n, err := f.start(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { n.Kill() }()
	if err := n.create(ctx, many, 4, 1, nil); err != nil {
		return err
	}
	if err := n.fill(ctx, many, 16<<20); err != nil {
		return err
	}
	p, err := n.probe(ctx)
	if err != nil {
		return err
	}
	defer p.client.Close()
	if _, _, err := p.measure(ctx, 5*time.Second); err != nil { // of which nothing counts
		return err
	}
	_, alone, err := p.measure(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	empty, err := n.settled(ctx)
	if err != nil {
		return err
	}
	if err := n.crowd(ctx, p, alone, empty); err != nil {
		return err
	}
	var h holdings
	err = await(ctx, 30*time.Second, "the connections are gone", func() (bool, error) {
		var err error
		h, err = n.holds(ctx)
		return h.descriptors <= empty.descriptors+2 && h.goroutines <= empty.goroutines+5, err
	})
	if err != nil {
		f.say("%v", err)
	}
	f.atMost(2, float64(h.descriptors-empty.descriptors), "descriptors left after all connections were closed")
	f.atMost(5, float64(h.goroutines-empty.goroutines), "goroutines left after it")
	return n.Stop()
}

// crowd opens the connections, measures, and closes them.
func (n *node) crowd(ctx context.Context, p *probe, alone float64, empty holdings) error {
	f := n.f
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	begin := time.Now()
	for i := range f.Connections {
		c, err := dial(ctx, n.Addr)
		if err == nil {
			defer c.close()
			_, err = c.ask(kmsg.NewPtrApiVersionsRequest())
		}
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, f.Connections, err)
		}
	}
	f.atMost(float64(f.Connections)/1000, time.Since(begin).Seconds(), "s: %d connections opened, one after the other", f.Connections)
	idle, err := n.settled(ctx)
	if err != nil {
		return err
	}
	f.atMost(12, float64(idle.RSSAnon-empty.RSSAnon)/float64(f.Connections)/1e3, "KB of RssAnon for each idle connection")
	_, p99, err := p.measure(ctx, 10*time.Second)
	if err != nil {
		return err
	}
	f.atMost(2*alone+2, p99, "ms: p99 beside idle connections; without them %.2f", alone)
	after, err := n.holds(ctx)
	if err != nil {
		return err
	}
	for range slowOnes {
		reader, err := n.slowReader(ctx)
		if err != nil {
			return err
		}
		defer reader.close()
		writer, err := n.slowWriter(ctx, &running)
		if err != nil {
			return err
		}
		defer writer.close()
	}
	if _, p99, err = p.measure(ctx, 10*time.Second); err != nil {
		return err
	}
	f.atMost(2*alone+2, p99, "ms: p99 beside %d that don't read and %d that write a byte at a time", slowOnes, slowOnes)
	slow, err := n.holds(ctx)
	if err != nil {
		return err
	}
	f.atMost(128, float64(slow.RSSAnon-after.RSSAnon)/(2*slowOnes)/1e3, "KB of RssAnon for each slow one")
	return nil
}

// slowReader is a connection that asks for much, again and again, and takes nothing.
func (n *node) slowReader(ctx context.Context) (*conn, error) {
	c, err := dial(ctx, n.Addr)
	if err != nil {
		return nil, err
	}
	request := kmsg.NewPtrFetchRequest()
	request.SetVersion(11)
	request.ReplicaID, request.MaxBytes, request.SessionEpoch = -1, 4<<20, -1
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic = many
	for i := range int32(4) {
		partition := kmsg.NewFetchRequestTopicPartition()
		partition.Partition, partition.PartitionMaxBytes = i, 1<<20
		topic.Partitions = append(topic.Partitions, partition)
	}
	request.Topics = append(request.Topics, topic)
	b := frame(request)
	for range 10 {
		if _, err := c.Write(b); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// slowWriter is a connection that announces a large request and then writes a byte at a time.
func (n *node) slowWriter(ctx context.Context, running *sync.WaitGroup) (*conn, error) {
	c, err := dial(ctx, n.Addr)
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint32(nil, 50<<20)
	b = append(b, 0, 0, 0, 7, 0, 0, 0, 1) // Produce 7
	running.Go(func() {
		for i := 0; ; i++ {
			next := []byte{0}
			if i < len(b) {
				next[0] = b[i]
			}
			if _, err := c.Write(next); err != nil || pause(ctx, 50*time.Millisecond) != nil {
				return
			}
		}
	})
	return c, nil
}

// fill writes about so many bytes into a topic.
func (n *node) fill(ctx context.Context, topic string, size int) error {
	client, err := n.client(kgo.DefaultProduceTopic(topic), kgo.ProducerBatchMaxBytes(64<<10),
		kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	value := make([]byte, recordSize)
	promise := kgo.AbortingFirstErrPromise(client)
	for range size / recordSize {
		client.Produce(ctx, &kgo.Record{Value: value}, promise.Promise())
	}
	return errors.Join(promise.Err(), client.Flush(ctx))
}
