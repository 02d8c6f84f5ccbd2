package api

import "bytes"

// produceRequest is a Produce request, decoded in place: its slices point into the frame. It is kept and used again.
type produceRequest struct {
	version       int16
	transactional bool // there is a transactional id, be it empty
	txnID         []byte
	acks          int16
	timeoutMs     int32
	topics        []produceTopic
	partitions    []producePartition // of all topics, in order
}

// produceTopic is one topic, by name up to version 12 and by id from 13 on, and its partitions[from:to].
type produceTopic struct {
	name     []byte
	id       [16]byte
	from, to int
}

type producePartition struct {
	partition int32
	records   []byte // nil when null
}

// decode reads a request body, and tidies what it asks for. What follows the last field is ignored.
func (q *produceRequest) decode(version int16, body []byte) error {
	if err := q.parse(version, body); err != nil {
		return err
	}
	q.merge()
	return nil
}

func (q *produceRequest) parse(version int16, body []byte) error {
	*q = produceRequest{version: version, topics: q.topics[:0], partitions: q.partitions[:0]}
	d := decoder{b: body, flexible: version >= 9}
	if version >= 3 {
		q.txnID, q.transactional = d.nullableString()
	}
	q.acks = d.int16()
	q.timeoutMs = d.int32()
	minTopic := 2 // bytes: empty name, no partitions
	if version >= 13 {
		minTopic = 17
	}
	for range d.arrayLen(minTopic) {
		t := produceTopic{from: len(q.partitions)}
		if version >= 13 {
			t.id = d.uuid()
		} else {
			t.name = d.string()
		}
		for range d.arrayLen(5) {
			p := producePartition{partition: d.int32()}
			p.records = d.nullableBytes()
			d.skipTags()
			if d.bad {
				return errMalformed
			}
			q.partitions = append(q.partitions, p)
		}
		d.skipTags()
		if d.bad {
			return errMalformed
		}
		t.to = len(q.partitions)
		q.topics = append(q.topics, t)
	}
	d.skipTags()
	if d.bad {
		return errMalformed
	}
	return nil
}

// forget drops the references into the frame.
func (q *produceRequest) forget() {
	q.txnID = nil
	clear(q.topics)
	clear(q.partitions)
	if cap(q.partitions) > 4096 || cap(q.topics) > 4096 {
		*q = produceRequest{}
	}
}

// merge makes of topics and partitions that are given more than once a single one: the last records count, as in Kafka.
// Topics without partitions are dropped. Clients don't send such requests, so all it does for theirs is to look.
func (q *produceRequest) merge() {
	if q.tidy() {
		return
	}
	type key struct {
		name      string
		id        [16]byte
		partition int32
	}
	var topics []produceTopic
	parts := map[int][]producePartition{}
	topicAt := map[key]int{}
	partAt := map[key]int{}
	for _, t := range q.topics {
		if t.from == t.to {
			continue
		}
		k := key{name: string(t.name), id: t.id, partition: -1 << 31}
		at, ok := topicAt[k]
		if !ok {
			at = len(topics)
			topicAt[k] = at
			topics = append(topics, t)
		}
		for _, p := range q.partitions[t.from:t.to] {
			k := key{name: string(t.name), id: t.id, partition: p.partition}
			if i, ok := partAt[k]; ok {
				parts[at][i] = p
				continue
			}
			partAt[k] = len(parts[at])
			parts[at] = append(parts[at], p)
		}
	}
	q.topics, q.partitions = append(q.topics[:0], topics...), nil
	for i := range q.topics {
		q.topics[i].from = len(q.partitions)
		q.partitions = append(q.partitions, parts[i]...)
		q.topics[i].to = len(q.partitions)
	}
}

// tidy reports whether every topic has partitions, and topics and partitions are surely given once. It may say no for a
// tidy request of many topics.
func (q *produceRequest) tidy() bool {
	if len(q.topics) > 32 {
		return false
	}
	for i := range q.topics {
		t := &q.topics[i]
		if t.from == t.to {
			return false
		}
		for j := range i {
			if bytes.Equal(q.topics[j].name, t.name) && q.topics[j].id == t.id {
				return false
			}
		}
		parts := q.partitions[t.from:t.to]
		if len(parts) > 32 && !ascending(parts) {
			return false
		}
		if len(parts) <= 32 && !distinct(parts) {
			return false
		}
	}
	return true
}

func ascending(parts []producePartition) bool {
	for i := 1; i < len(parts); i++ {
		if parts[i-1].partition >= parts[i].partition {
			return false
		}
	}
	return true
}

func distinct(parts []producePartition) bool {
	for i := range parts {
		for j := range i {
			if parts[i].partition == parts[j].partition {
				return false
			}
		}
	}
	return true
}

// produceResult is the answer for one partition.
type produceResult struct {
	partition     int32
	code          int16
	baseOffset    int64
	logAppendTime int64
	logStart      int64
	records       []recordError // v8+
	message       string        // v8+; "" is null
	leader        int32         // v10+, with NOT_LEADER_OR_FOLLOWER; -1 unknown
	leaderEpoch   int32
}

// recordError says what is wrong with one record of a batch (KIP-467).
type recordError struct {
	index   int32
	message string
}

// endpoint is where a broker is reached (KIP-951).
type endpoint struct {
	id   int32
	host string
	port int32
	rack string
}

// appendProduceTopic begins a topic of the response: partitions results follow.
func appendProduceTopic(dst []byte, version int16, t *produceTopic, partitions int) []byte {
	if version >= 13 {
		dst = append(dst, t.id[:]...)
	} else {
		dst = appendString(dst, t.name, version >= 9)
	}
	return appendArrayLen(dst, partitions, version >= 9)
}

// appendProduceResult appends one partition of the response. codeAt is where its error code lies in dst.
func appendProduceResult(dst []byte, version int16, r *produceResult) (out []byte, codeAt int) {
	flexible := version >= 9
	dst = appendInt32(dst, r.partition)
	codeAt = len(dst)
	dst = appendInt16(dst, r.code)
	dst = appendInt64(dst, r.baseOffset)
	if version >= 2 {
		dst = appendInt64(dst, r.logAppendTime)
	}
	if version >= 5 {
		dst = appendInt64(dst, r.logStart)
	}
	if version >= 8 {
		dst = appendArrayLen(dst, len(r.records), flexible)
		for i := range r.records {
			dst = appendInt32(dst, r.records[i].index)
			dst = appendNullableString(dst, r.records[i].message, flexible)
			if flexible {
				dst = append(dst, 0)
			}
		}
		dst = appendNullableString(dst, r.message, flexible)
	}
	if flexible {
		dst = appendLeaderTag(dst, 0, version >= 10 && r.leader >= 0, r.leader, r.leaderEpoch)
	}
	return dst, codeAt
}

// appendLeaderTag appends the tagged fields of a partition when the current leader is the only one there can be.
func appendLeaderTag(dst []byte, tag byte, known bool, leader, epoch int32) []byte {
	if !known {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	return appendTag(dst, tag, func(dst []byte) []byte { return append(appendInt32(appendInt32(dst, leader), epoch), 0) })
}

// appendProduceEnd ends a topic of the response.
func appendProduceEnd(dst []byte, version int16) []byte {
	if version >= 9 {
		dst = append(dst, 0)
	}
	return dst
}

// appendProduceTail appends what follows the topics.
func appendProduceTail(dst []byte, version int16, nodes []endpoint) []byte {
	if version >= 1 {
		dst = appendInt32(dst, 0) // throttle time
	}
	if version >= 9 {
		dst = appendEndpointsTag(dst, nodes)
	}
	return dst
}

// appendEndpointsTag appends the tagged fields of a response that can only have endpoints, under tag 0 (KIP-951).
func appendEndpointsTag(dst []byte, nodes []endpoint) []byte {
	if len(nodes) == 0 {
		return append(dst, 0)
	}
	body := appendArrayLen(nil, len(nodes), true)
	for _, n := range nodes {
		body = appendInt32(body, n.id)
		body = appendString(body, n.host, true)
		body = appendInt32(body, n.port)
		body = appendNullableString(body, n.rack, true)
		body = append(body, 0)
	}
	dst = append(dst, 1, 0)
	dst = appendArrayLen(dst, len(body)-1, true) // a plain varint
	return append(dst, body...)
}
