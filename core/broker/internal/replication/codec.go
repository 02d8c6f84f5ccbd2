package replication

import (
	"encoding/binary"
	"errors"
)

// fetchKey is Fetch's API key. Its versions from 12 on are what brokers of inter.broker.protocol.version 2.8 and later speak; 13 brought
// topic ids.
const (
	fetchKey       int16 = 1
	fetchByName    int16 = 12
	fetchByID      int16 = 13
	fetchReplica   int16 = 15 // the follower's id went into a tag, with its broker epoch (KIP-903)
	readEverything       = 0  // isolation level: followers take all there is
)

var errMalformed = errors.New("malformed response")

// fetchRequest is what a Fetch request says besides its partitions.
type fetchRequest struct {
	version     int16
	replica     int32
	brokerEpoch int64
	maxWaitMs   int32
	minBytes    int32
	maxBytes    int32
	session     int32
	epoch       int32
	perPart     int32 // bytes of each partition
}

// append appends the body of a request for partitions as they are told, and for those that leave the session.
func (q *fetchRequest) append(dst []byte, asked []*follower, gone []sessionKey) []byte {
	be := binary.BigEndian
	if q.version < fetchReplica {
		dst = be.AppendUint32(dst, uint32(q.replica))
	}
	dst = be.AppendUint32(dst, uint32(q.maxWaitMs))
	dst = be.AppendUint32(dst, uint32(q.minBytes))
	dst = be.AppendUint32(dst, uint32(q.maxBytes))
	dst = append(dst, readEverything)
	dst = be.AppendUint32(dst, uint32(q.session))
	dst = be.AppendUint32(dst, uint32(q.epoch))

	dst = appendLen(dst, topics(len(asked), func(i int) *sessionKey { return &asked[i].key }))
	for i := 0; i < len(asked); {
		end := i + 1
		for end < len(asked) && sameTopic(&asked[i].key, &asked[end].key) {
			end++
		}
		dst = q.appendTopic(dst, &asked[i].key, end-i)
		for ; i < end; i++ {
			t := &asked[i].told
			dst = be.AppendUint32(dst, uint32(asked[i].key.partition))
			dst = be.AppendUint32(dst, uint32(t.leaderEpoch))
			dst = be.AppendUint64(dst, uint64(t.offset))
			dst = be.AppendUint32(dst, uint32(t.lastEpoch))
			dst = be.AppendUint64(dst, uint64(t.start))
			dst = be.AppendUint32(dst, uint32(q.perPart))
			dst = append(dst, 0)
		}
		dst = append(dst, 0)
	}
	dst = appendLen(dst, topics(len(gone), func(i int) *sessionKey { return &gone[i] }))
	for i := 0; i < len(gone); {
		end := i + 1
		for end < len(gone) && sameTopic(&gone[i], &gone[end]) {
			end++
		}
		dst = q.appendTopic(dst, &gone[i], end-i)
		for ; i < end; i++ {
			dst = be.AppendUint32(dst, uint32(gone[i].partition))
		}
		dst = append(dst, 0)
	}
	dst = appendLen(dst, 0) // rack: only consumers care
	if q.version < fetchReplica {
		return append(dst, 0)
	}
	dst = append(dst, 1, 1, 13) // one tag: the replica's state, of 13 bytes
	dst = be.AppendUint32(dst, uint32(q.replica))
	dst = be.AppendUint64(dst, uint64(q.brokerEpoch))
	return append(dst, 0)
}

func (q *fetchRequest) appendTopic(dst []byte, k *sessionKey, partitions int) []byte {
	if q.version >= fetchByID {
		dst = append(dst, k.id[:]...)
	} else {
		dst = append(appendLen(dst, len(k.topic)), k.topic...)
	}
	return appendLen(dst, partitions)
}

// appendLen appends the length of a compact array, string or the like.
func appendLen(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)+1) }

// topics counts how often the topic changes from one partition to the next. A topic may come several times.
func topics(n int, key func(int) *sessionKey) int {
	count := 0
	for i := range n {
		if i == 0 || !sameTopic(key(i-1), key(i)) {
			count++
		}
	}
	return count
}

func sameTopic(a, b *sessionKey) bool { return a.id == b.id && a.topic == b.topic }

// fetchResult is the leader's answer for one partition. Its slices point into the response.
type fetchResult struct {
	topic     []byte // up to version 12
	id        [16]byte
	partition int32

	code      int16
	hw        int64
	logStart  int64
	diverging bool
	divergeAt int32 // the leader's largest epoch up to the one asked for …
	divergeTo int64 // … and where it ends
	records   []byte
}

// fetchResponse reads a Fetch response, version 12 to 18, partition by partition.
type fetchResponse struct {
	d       decoder
	version int16

	code    int16
	session int32

	topics, partitions int // left to read
	topic              []byte
	id                 [16]byte
}

// read begins with the body of a response.
func (r *fetchResponse) read(version int16, body []byte) error {
	*r = fetchResponse{version: version, d: decoder{b: body}}
	r.d.int32() // throttle time; brokers aren't throttled
	r.code = r.d.int16()
	r.session = r.d.int32()
	r.topics = r.d.length(3)
	return r.err()
}

// next reads the next partition. ok is false at the end.
func (r *fetchResponse) next(p *fetchResult) (ok bool, err error) {
	for r.partitions == 0 {
		if r.topics == 0 || r.d.bad {
			return false, r.err()
		}
		r.topics--
		if r.topic = nil; r.version < fetchByID {
			r.topic = r.d.bytes()
		} else {
			copy(r.id[:], r.d.take(16))
		}
		if r.partitions = r.d.length(36); r.partitions == 0 {
			r.d.skipTags()
		}
	}
	*p = fetchResult{topic: r.topic, id: r.id}
	p.partition = r.d.int32()
	p.code = r.d.int16()
	p.hw = r.d.int64()
	r.d.int64() // last stable offset
	p.logStart = r.d.int64()
	for range r.d.length(17) { // aborted transactions
		r.d.take(16)
		r.d.skipTags()
	}
	r.d.int32() // preferred read replica
	p.records = r.d.bytes()
	for n := r.d.uvarint(); n > 0 && !r.d.bad; n-- {
		tag := r.d.uvarint()
		v := decoder{b: r.d.take(r.d.uvarint())}
		if tag == 0 {
			p.diverging, p.divergeAt, p.divergeTo = true, v.int32(), v.int64()
			r.d.bad = r.d.bad || v.bad
			// Apache Kafka leaves the tag out when there is nothing to tell; others may send its default.
			p.diverging = p.divergeAt >= 0 || p.divergeTo >= 0
		}
	}
	if r.partitions--; r.partitions == 0 {
		r.d.skipTags()
	}
	return !r.d.bad, r.err()
}

func (r *fetchResponse) err() error {
	if r.d.bad {
		return errMalformed
	}
	return nil
}

// decoder reads from the front of b. Behind its end, and after a mistake, it reads zeros and is bad.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.bad, d.b = true, nil
	}
	if d.bad {
		return nil
	}
	b := d.b[:n:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) int16() int16 {
	if b := d.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if b := d.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if b := d.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) uvarint() int {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || n > 5 || v > 1<<32-1 {
		d.bad, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return int(v)
}

// length reads the length of a compact array whose elements have at least so many bytes; that of null is 0.
func (d *decoder) length(least int) int {
	n := d.uvarint() - 1
	if n > len(d.b)/least {
		d.bad, d.b = true, nil
	}
	if n < 0 || d.bad {
		return 0
	}
	return n
}

// bytes reads compact bytes or a compact string; null is nil.
func (d *decoder) bytes() []byte {
	if n := d.uvarint() - 1; n > 0 {
		return d.take(n)
	}
	return nil
}

func (d *decoder) skipTags() {
	for n := d.uvarint(); n > 0 && !d.bad; n-- {
		d.uvarint()
		d.take(d.uvarint())
	}
}
