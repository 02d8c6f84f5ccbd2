package meter

import "sync/atomic"

// The error codes that are counted by themselves are from -1, the unknown error, on.
const (
	firstCode = -1
	codes     = 160
)

// failures counts error codes of one kind of request. It is made when the first one comes.
type failures [codes]atomic.Uint64

// Failed counts an error code in a response. One response may have several, for the several things that were asked for. 0, which is
// no error, isn't counted, and codes that Kafka doesn't have count as the unknown error.
func (r *Requests) Failed(kind Kind, code int16) {
	if code == 0 {
		return
	}
	f := r.failed[kind].Load()
	if f == nil {
		r.failed[kind].CompareAndSwap(nil, &failures{})
		f = r.failed[kind].Load()
	}
	if code < firstCode || code >= codes+firstCode {
		code = firstCode
	}
	f[code-firstCode].Add(1)
}

// Failures is how often a code was answered to a kind of request.
type Failures struct {
	Kind  Kind
	Code  int16
	Count uint64
}

// ReadFailed lists the codes that were answered, by kind and code.
func (r *Requests) ReadFailed() []Failures {
	var all []Failures
	for k := range Kind(kinds) {
		f := r.failed[k].Load()
		if f == nil {
			continue
		}
		for i := range f {
			if n := f[i].Load(); n > 0 {
				all = append(all, Failures{Kind: k, Code: int16(i + firstCode), Count: n})
			}
		}
	}
	return all
}
