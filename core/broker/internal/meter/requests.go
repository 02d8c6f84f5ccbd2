package meter

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kind is a kind of request: its API key, or one that stands apart.
type Kind int16

// FetchFollower is a Fetch of another broker. Consumers' are counted apart from those: both wait for data, but what makes the one slow
// isn't what makes the other slow.
const FetchFollower Kind = kinds - 1

// kinds is one more than the highest kind: API keys are below 128.
const kinds = 129

// versions is one more than the highest version that is counted by itself; those beyond count as that one.
const versions = 24

// String names the kind, as Kafka names the request.
func (k Kind) String() string {
	if k == FetchFollower {
		return "FetchFollower"
	}
	return kmsg.Key(k).Name()
}

// Requests counts what comes in over all connections of a broker. The zero value isn't ready: see NewRequests. Any goroutine may
// use it.
type Requests struct {
	shards []requestShard // a power of two of them
	failed [kinds]atomic.Pointer[failures]

	unknown atomic.Uint64
	refused [kinds][2]atomic.Uint64 // by kind: with a version that is too old, or too new
	broken  atomic.Uint64
}

// requestShard is what some of the connections count. It stands apart from the others, so that cores needn't share their caches.
type requestShard struct {
	kinds [kinds]atomic.Pointer[requestCounts]
}

// requestCounts is what a shard counts of one kind. It is made when the first request of its kind comes.
type requestCounts struct {
	took      Histogram
	in, out   atomic.Uint64 // bytes
	byVersion [versions]atomic.Uint64
	_         [64]byte // whatever lies behind is somebody else's
}

// maxShards bounds how many shards there are.
const maxShards = 16

// NewRequests makes counters for as many cores as the program may use.
func NewRequests() *Requests {
	n := 1
	for n < runtime.GOMAXPROCS(0) && n < maxShards {
		n *= 2
	}
	return &Requests{shards: make([]requestShard, n)}
}

// Served counts one request that was answered, or needed no answer. shard is any number that stays the same for a connection; took
// is the time from the end of the request to the end of the response, in and out are their bytes, frames included. The kind is that
// of a request that the broker serves.
func (r *Requests) Served(shard uint32, kind Kind, version int16, took time.Duration, in, out int64) {
	s := &r.shards[int(shard)&(len(r.shards)-1)]
	c := s.kinds[kind].Load()
	if c == nil {
		s.kinds[kind].CompareAndSwap(nil, &requestCounts{})
		c = s.kinds[kind].Load()
	}
	c.took.Observe(took)
	c.in.Add(uint64(in))
	c.out.Add(uint64(out))
	c.byVersion[min(max(version, 0), versions-1)].Add(1)
}

// Refused counts a request that isn't served in this version, or not at all. newest is the newest version that is served, negative
// when none is.
func (r *Requests) Refused(key, version, newest int16) {
	switch {
	case newest < 0 || key < 0 || key >= kinds-1:
		r.unknown.Add(1)
	case version > newest:
		r.refused[key][1].Add(1)
	default:
		r.refused[key][0].Add(1)
	}
}

// Broken counts a connection that was closed because of a request that makes no sense, or that failed beyond an answer.
func (r *Requests) Broken() { r.broken.Add(1) }

// Answered is what was counted of one kind of request.
type Answered struct {
	Kind      Kind
	Took      Distribution
	In, Out   uint64   // bytes
	ByVersion []uint64 // by version
}

// Read lists what was counted, by kind; kinds that never came are left out.
func (r *Requests) Read() []Answered {
	var all []Answered
	for k := range Kind(kinds) {
		one := Answered{Kind: k}
		for i := range r.shards {
			c := r.shards[i].kinds[k].Load()
			if c == nil {
				continue
			}
			if one.ByVersion == nil {
				one.ByVersion = make([]uint64, versions)
			}
			c.took.Read(&one.Took)
			one.In += c.in.Load()
			one.Out += c.out.Load()
			for v := range c.byVersion {
				one.ByVersion[v] += c.byVersion[v].Load()
			}
		}
		if one.ByVersion != nil {
			all = append(all, one)
		}
	}
	return all
}

// Refusals is what was refused of one kind.
type Refusals struct {
	Kind           Kind
	TooOld, TooNew uint64 // by version
}

// ReadRefused lists what was refused, by kind, and how many requests had no kind at all; and how many connections ended for requests
// that made no sense.
func (r *Requests) ReadRefused() (all []Refusals, unknown, broken uint64) {
	for k := range Kind(kinds - 1) {
		if old, young := r.refused[k][0].Load(), r.refused[k][1].Load(); old+young > 0 {
			all = append(all, Refusals{Kind: k, TooOld: old, TooNew: young})
		}
	}
	return all, r.unknown.Load(), r.broken.Load()
}
