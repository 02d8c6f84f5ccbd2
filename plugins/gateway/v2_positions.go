package gateway

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
)

type partitionRefV2 struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition" minimum:"0"`
}

func (p partitionRefV2) partition() partition { return partition{p.Topic, p.Partition} }

type partitionListV2 struct {
	Partitions []partitionRefV2 `json:"partitions" nullable:"false"`
}

type partitionOffsetV2 struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition" minimum:"0"`
	Offset    int64   `json:"offset" minimum:"0"`
	Metadata  *string `json:"metadata,omitempty" nullable:"true" doc:"not kept"`
}

type offsetListV2 struct {
	Offsets []partitionOffsetV2 `json:"offsets" nullable:"false"`
}

type committedV2 struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Metadata  string `json:"metadata"`
}

type committedListV2 struct {
	Offsets []committedV2 `json:"offsets" nullable:"false" doc:"of those partitions that have any"`
}

func (g *Gateway) positionsV2() []operation {
	takes := []string{mediaV2, mediaEmbed, mediaBinary, mediaKafka, mediaJSON}
	const one = "/consumers/{group_name}/instances/{instance}"
	return []operation{
		{version: 2, method: "POST", path: one + "/offsets", id: "commitOffsetsV2", summary: "Commit offsets",
			doc:   "Without a body, commits what was consumed: the records in answers so far, and positions that were set.",
			takes: takes, body: offsetListV2{}, optional: true, status: 200, answer: []committedV2{}, fails: []int{404, 409}, handle: g.commitOffsets},
		{version: 2, method: "GET", path: one + "/offsets", id: "getCommittedV2", summary: "Committed offsets",
			takes: takes, body: partitionListV2{}, status: 200, answer: committedListV2{}, fails: []int{404}, handle: g.committed},
		{version: 2, method: "POST", path: one + "/assignments", id: "assignV2", summary: "Take partitions by hand",
			takes: takes, body: partitionListV2{}, status: 204, fails: []int{404, 409}, handle: g.assign},
		{version: 2, method: "GET", path: one + "/assignments", id: "getAssignmentV2", summary: "The partitions that the instance has", status: 200, answer: partitionListV2{}, fails: []int{404}, handle: g.assignment},
		{version: 2, method: "POST", path: one + "/positions", id: "seekV2", summary: "Go to offsets",
			takes: takes, body: offsetListV2{}, status: 204, fails: []int{404, 409}, handle: g.seek},
		{version: 2, method: "POST", path: one + "/positions/beginning", id: "seekToBeginningV2", summary: "Go to the first offsets",
			takes: takes, body: partitionListV2{}, status: 204, fails: []int{404, 409},
			handle: func(c *call) (any, error) { return g.seekTo(c, g.admin.ListStartOffsets) }},
		{version: 2, method: "POST", path: one + "/positions/end", id: "seekToEndV2", summary: "Go to the next offsets",
			takes: takes, body: partitionListV2{}, status: 204, fails: []int{404, 409},
			handle: func(c *call) (any, error) { return g.seekTo(c, g.admin.ListEndOffsets) }},
	}
}

func (g *Gateway) commitOffsets(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		ctx, cancel := c.bound()
		defer cancel()
		var in offsetListV2
		given, err := c.decode(&in)
		if err != nil {
			return nil, err
		}
		out := []committedV2{}
		if !given {
			return out, i.commit(ctx, nil)
		}
		offsets := map[partition]int64{}
		for _, o := range in.Offsets {
			p := partition{o.Topic, o.Partition}
			if _, err := g.topicPartition(ctx, p.topic, p.id); err != nil {
				return nil, err
			}
			offsets[p] = o.Offset
			out = append(out, committedV2{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset})
		}
		return out, i.commit(ctx, offsets)
	})
}

func (g *Gateway) committed(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		ctx, cancel := c.bound()
		defer cancel()
		var in partitionListV2
		if _, err := c.decode(&in); err != nil {
			return nil, err
		}
		for _, p := range in.Partitions {
			if _, err := g.topicPartition(ctx, p.Topic, p.Partition); err != nil {
				return nil, err
			}
		}
		offsets, err := g.admin.FetchOffsets(ctx, i.group)
		if err != nil {
			return nil, err
		}
		out := committedListV2{Offsets: []committedV2{}}
		for _, p := range in.Partitions {
			if o, ok := offsets.Lookup(p.Topic, p.Partition); ok && o.Err == nil && o.At >= 0 {
				out.Offsets = append(out.Offsets, committedV2{Topic: p.Topic, Partition: p.Partition, Offset: o.At, Metadata: o.Metadata})
			}
		}
		return out, nil
	})
}

func (g *Gateway) assign(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		ctx, cancel := c.bound()
		defer cancel()
		var in partitionListV2
		if _, err := c.decode(&in); err != nil {
			return nil, err
		}
		var wanted []partition
		for _, p := range in.Partitions {
			wanted = append(wanted, p.partition())
		}
		return nil, i.assign(ctx, wanted)
	})
}

func (g *Gateway) assignment(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		out := partitionListV2{Partitions: []partitionRefV2{}}
		for _, p := range i.assignment() {
			out.Partitions = append(out.Partitions, partitionRefV2{Topic: p.topic, Partition: p.id})
		}
		return out, nil
	})
}

func (g *Gateway) seek(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		var in offsetListV2
		if _, err := c.decode(&in); err != nil {
			return nil, err
		}
		to := map[partition]int64{}
		for _, o := range in.Offsets {
			to[partition{o.Topic, o.Partition}] = o.Offset
		}
		return nil, i.seek(to)
	})
}

// seekTo goes to one end of partitions.
func (g *Gateway) seekTo(c *call, list func(context.Context, ...string) (kadm.ListedOffsets, error)) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		ctx, cancel := c.bound()
		defer cancel()
		var in partitionListV2
		if _, err := c.decode(&in); err != nil {
			return nil, err
		}
		to := map[partition]int64{}
		for _, p := range in.Partitions {
			to[p.partition()] = 0
		}
		if err := i.owns(to); err != nil {
			return nil, err
		}
		for p := range to {
			at, err := g.offset(ctx, list, p.topic, p.id)
			if err != nil {
				return nil, err
			}
			to[p] = at
		}
		return nil, i.seek(to)
	})
}
