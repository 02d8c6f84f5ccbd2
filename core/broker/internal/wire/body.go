package wire

import (
	"bytes"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AppendBody encodes a request as Kafka has it: as kmsg does, but for what kmsg has wrong.
func AppendBody(dst []byte, req kmsg.Request) []byte {
	begin := len(dst)
	dst = req.AppendTo(dst)
	if swapped(req) {
		toKafka(dst[begin:])
	}
	return dst
}

// ReadBody decodes a request as Kafka has it. What is decoded may point into body, which stays as it is.
func ReadBody(req kmsg.Request, body []byte) error {
	if swapped(req) && len(body) >= swapEnd {
		body = bytes.Clone(body)
		fromKafka(body)
	}
	return req.ReadFrom(body)
}

// In StopReplica 4 kmsg has the controller's epoch before the flag that says whether the controller is one of KRaft (KIP-866);
// in Kafka's StopReplicaRequest.json the flag comes first. Both follow the controller's id.
const (
	swapBegin = 4
	swapEnd   = swapBegin + 4 + 1
)

func swapped(req kmsg.Request) bool {
	stop, ok := req.(*kmsg.StopReplicaRequest)
	return ok && stop.Version >= 4
}

func toKafka(body []byte) {
	flag := body[swapEnd-1]
	copy(body[swapBegin+1:swapEnd], body[swapBegin:swapEnd-1])
	body[swapBegin] = flag
}

func fromKafka(body []byte) {
	flag := body[swapBegin]
	copy(body[swapBegin:swapEnd-1], body[swapBegin+1:swapEnd])
	body[swapEnd-1] = flag
}
