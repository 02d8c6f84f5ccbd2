package api

import (
	"github.com/barnabas-mq/barnabas/core/storage"
)

// fetchRequest is a Fetch request, decoded in place: its slices point into the frame. It is kept and used again.
type fetchRequest struct {
	version      int16
	replicaID    int32
	maxWaitMs    int32
	minBytes     int32
	maxBytes     int32
	isolation    int8
	sessionID    int32
	sessionEpoch int32
	topics       []fetchTopic
	partitions   []fetchPartition // of all topics, in order
	forgotten    []forgottenPartition
	rack         []byte
}

// fetchTopic is one topic, by name up to version 12 and by id from 13 on, and its partitions[from:to].
type fetchTopic struct {
	name     []byte
	id       [16]byte
	from, to int
}

// fetchPartition is what is wanted of one partition. Epochs and the log start are -1 when the version or the client doesn't
// say.
type fetchPartition struct {
	partition        int32
	leaderEpoch      int32
	offset           int64
	lastFetchedEpoch int32
	logStart         int64
	maxBytes         int32
}

// forgottenPartition leaves a fetch session.
type forgottenPartition struct {
	name      []byte
	id        [16]byte
	partition int32
}

// Versions of Fetch from which something is there.
const (
	fetchFlexible   = 12
	fetchTopicIDs   = 13
	fetchReplicaTag = 15
)

// decode reads a request body. What follows the last field is ignored.
func (q *fetchRequest) decode(version int16, body []byte) error {
	*q = fetchRequest{version: version, replicaID: -1, maxBytes: 1<<31 - 1, sessionEpoch: -1,
		topics: q.topics[:0], partitions: q.partitions[:0], forgotten: q.forgotten[:0]}
	d := decoder{b: body, flexible: version >= fetchFlexible}
	if version < fetchReplicaTag {
		q.replicaID = d.int32()
	}
	q.maxWaitMs = d.int32()
	q.minBytes = d.int32()
	if version >= 3 {
		q.maxBytes = d.int32()
	}
	if version >= 4 {
		q.isolation = d.int8()
	}
	if version >= 7 {
		q.sessionID = d.int32()
		q.sessionEpoch = d.int32()
	}
	q.decodeTopics(&d)
	if version >= 7 {
		q.decodeForgotten(&d)
	}
	if version >= 11 {
		q.rack = d.string()
	}
	q.requestTags(&d)
	if d.bad {
		return errMalformed
	}
	return nil
}

func (q *fetchRequest) minTopic() int {
	if q.version >= fetchTopicIDs {
		return 17
	}
	return 2
}

func (q *fetchRequest) topicOf(d *decoder) (name []byte, id [16]byte) {
	if q.version >= fetchTopicIDs {
		return nil, d.uuid()
	}
	return d.string(), id
}

func (q *fetchRequest) decodeTopics(d *decoder) {
	for range d.arrayLen(q.minTopic()) {
		t := fetchTopic{from: len(q.partitions)}
		t.name, t.id = q.topicOf(d)
		for range d.arrayLen(16) {
			p := fetchPartition{partition: d.int32(), leaderEpoch: -1, lastFetchedEpoch: -1, logStart: -1}
			if q.version >= 9 {
				p.leaderEpoch = d.int32()
			}
			p.offset = d.int64()
			if q.version >= 12 {
				p.lastFetchedEpoch = d.int32()
			}
			if q.version >= 5 {
				p.logStart = d.int64()
			}
			p.maxBytes = d.int32()
			q.partitionTags(d)
			if d.bad {
				return
			}
			q.partitions = append(q.partitions, p)
		}
		d.skipTags()
		if d.bad {
			return
		}
		t.to = len(q.partitions)
		q.topics = append(q.topics, t)
	}
}

func (q *fetchRequest) decodeForgotten(d *decoder) {
	for range d.arrayLen(q.minTopic()) {
		name, id := q.topicOf(d)
		for range d.arrayLen(4) {
			q.forgotten = append(q.forgotten, forgottenPartition{name: name, id: id, partition: d.int32()})
		}
		d.skipTags()
		if d.bad {
			return
		}
	}
}

// requestTags reads the cluster id (0), which only KRaft's voters look at, and the replica's state (1). Known tags in versions
// which don't have them are refused, as Kafka does.
func (q *fetchRequest) requestTags(d *decoder) {
	for n := d.tagCount(); n > 0 && !d.bad; n-- {
		switch tag, v := d.tag(); tag {
		case 0:
			v.nullableString()
			d.tagged(&v)
		case 1:
			q.replicaID = v.int32()
			v.int64() // the follower's broker epoch
			v.skipTags()
			d.tagged(&v)
			if q.version < fetchReplicaTag {
				d.fail()
			}
		}
	}
}

// partitionTags reads the follower's directory id (0, v17) and high watermark (1, v18), which nothing here needs.
func (q *fetchRequest) partitionTags(d *decoder) {
	for n := d.tagCount(); n > 0 && !d.bad; n-- {
		switch tag, v := d.tag(); tag {
		case 0:
			v.uuid()
			d.tagged(&v)
			if q.version < 17 {
				d.fail()
			}
		case 1:
			v.int64()
			d.tagged(&v)
			if q.version < 18 {
				d.fail()
			}
		}
	}
}

// forget drops the references into the frame.
func (q *fetchRequest) forget() {
	clear(q.topics)
	clear(q.forgotten)
	if cap(q.partitions) > 4096 || cap(q.topics) > 4096 || cap(q.forgotten) > 4096 {
		*q = fetchRequest{}
	}
}

// fetchResult is the answer for one partition.
type fetchResult struct {
	partition   int32
	code        int16
	hw          int64
	lastStable  int64
	logStart    int64
	hasAborted  bool // else null
	aborted     []abortedTransaction
	nullRecords bool
	converted   []byte       // records of an older format; or
	view        storage.View // records, nil for none
	diverging   bool
	divergeAt   int32 // the epoch
	divergeEnd  int64
	preferred   int32 // v11+, the replica that a consumer should read from; -1 for this one
	leader      int32 // v16+, with errors about the leader; -1 unknown
	leaderEpoch int32
}

// abortedTransaction is one whose records a consumer that reads committed ones must leave out (KIP-98).
type abortedTransaction struct{ producerID, firstOffset int64 }

func (r *fetchResult) recordBytes() int {
	if r.view != nil {
		return int(r.view.Len())
	}
	return len(r.converted)
}

// appendFetchHead appends what precedes the topics.
func appendFetchHead(dst []byte, version, code int16, sessionID int32, topics int) []byte {
	if version >= 1 {
		dst = appendInt32(dst, 0) // throttle time
	}
	if version >= 7 {
		dst = appendInt16(dst, code)
		dst = appendInt32(dst, sessionID)
	}
	return appendArrayLen(dst, topics, version >= fetchFlexible)
}

// appendFetchTopic begins a topic: partitions results follow.
func appendFetchTopic(dst []byte, version int16, name string, id [16]byte, partitions int) []byte {
	if version >= fetchTopicIDs {
		dst = append(dst, id[:]...)
	} else {
		dst = appendString(dst, name, version >= fetchFlexible)
	}
	return appendArrayLen(dst, partitions, version >= fetchFlexible)
}

// appendFetchResult appends one partition up to and including the length of its records, and those of an older format. When
// r has a view, it comes next, and appendFetchResultEnd after it.
func appendFetchResult(dst []byte, version int16, r *fetchResult) []byte {
	flexible := version >= fetchFlexible
	dst = appendInt32(dst, r.partition)
	dst = appendInt16(dst, r.code)
	dst = appendInt64(dst, r.hw)
	if version >= 4 {
		dst = appendInt64(dst, r.lastStable)
	}
	if version >= 5 {
		dst = appendInt64(dst, r.logStart)
	}
	if version >= 4 {
		if r.hasAborted {
			dst = appendArrayLen(dst, len(r.aborted), flexible)
		} else {
			dst = appendArrayLen(dst, -1, flexible)
		}
		for _, a := range r.aborted {
			dst = appendInt64(appendInt64(dst, a.producerID), a.firstOffset)
			if flexible {
				dst = append(dst, 0)
			}
		}
	}
	if version >= 11 {
		dst = appendInt32(dst, r.preferred)
	}
	if r.nullRecords {
		return appendArrayLen(dst, -1, flexible)
	}
	dst = appendArrayLen(dst, r.recordBytes(), flexible)
	return append(dst, r.converted...)
}

// appendFetchResultEnd appends the tagged fields of a partition.
func appendFetchResultEnd(dst []byte, version int16, r *fetchResult) []byte {
	if version < fetchFlexible {
		return dst
	}
	leader := version >= 16 && r.leader >= 0
	if !r.diverging {
		return appendLeaderTag(dst, 1, leader, r.leader, r.leaderEpoch)
	}
	n := byte(1)
	if leader {
		n++
	}
	dst = append(dst, n)
	dst = appendTag(dst, 0, func(dst []byte) []byte { return append(appendInt64(appendInt32(dst, r.divergeAt), r.divergeEnd), 0) })
	if leader {
		dst = appendTag(dst, 1, func(dst []byte) []byte { return append(appendInt32(appendInt32(dst, r.leader), r.leaderEpoch), 0) })
	}
	return dst
}

// appendFetchTopicEnd ends a topic.
func appendFetchTopicEnd(dst []byte, version int16) []byte {
	if version >= fetchFlexible {
		dst = append(dst, 0)
	}
	return dst
}

// appendFetchTail appends what follows the topics.
func appendFetchTail(dst []byte, version int16, nodes []endpoint) []byte {
	if version >= fetchFlexible {
		dst = appendEndpointsTag(dst, nodes)
	}
	return dst
}
