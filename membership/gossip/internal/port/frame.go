package port

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// magic begins whatever is said in a handshake. A later protocol begins with another.
const magic = "BNC1"

// opening is what a client sends first. It is longer than the header of a TLS record, so that a port with TLS needn't wait for more
// to know that this is none.
const opening = magic + " hello\n"

const (
	maxBody   = 1024
	macSize   = sha256.Size
	nonceSize = 16
)

// Kind is what a connection is for.
type Kind string

const (
	// Raft carries raft's own messages.
	Raft Kind = "raft"
	// Requests carries what brokers ask of the raft leader, and of each other.
	Requests Kind = "requests"
	// Gossip carries the streams of memberlist.
	Gossip Kind = "gossip"
	// Commands carries what operators ask for, and what brokers that form a cluster agree on before there is raft.
	Commands Kind = "commands"
)

// kinds are all kinds.
func kinds() []Kind { return []Kind{Raft, Requests, Gossip, Commands} }

// hello is the server's first frame.
type hello struct {
	Nonce []byte `json:"nonce"`
}

// request is the client's frame.
type request struct {
	Kind    Kind             `json:"kind"`
	Name    string           `json:"name"`           // of the cluster, as it is configured
	Cluster member.ClusterID `json:"cluster"`        // the raft cluster that the client belongs to, or empty
	From    member.ServerID  `json:"from,omitempty"` // empty for a command
	To      member.ServerID  `json:"to,omitempty"`   // the server that is meant; empty for whoever answers
	Nonce   []byte           `json:"nonce"`
}

// answer is the server's last frame.
type answer struct {
	Error   string           `json:"error,omitempty"` // why the connection is refused
	Server  member.ServerID  `json:"server"`
	Cluster member.ClusterID `json:"cluster"`
}

// errGarbage says that the other end doesn't speak this protocol.
var errGarbage = errors.New("no coordination port of Barnabas")

// mac proves that a body was sent by who has the key.
func mac(key []byte, direction string, nonce, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(direction))
	h.Write(nonce)
	h.Write(body)
	return h.Sum(nil)
}

// writeFrame sends v. Without a key its MAC is zero.
func writeFrame(w io.Writer, v any, key []byte, direction string, nonce []byte) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("a frame of %d bytes is too large", len(body))
	}
	frame := make([]byte, 0, len(magic)+2+len(body)+macSize)
	frame = append(frame, magic...)
	frame = binary.BigEndian.AppendUint16(frame, uint16(len(body)))
	frame = append(frame, body...)
	if key != nil {
		frame = append(frame, mac(key, direction, nonce, body)...)
	} else {
		frame = append(frame, make([]byte, macSize)...)
	}
	_, err = w.Write(frame)
	return err
}

// readFrame reads a frame into v, and returns its body and MAC, which are not checked.
func readFrame(r io.Reader, v any) (body, sum []byte, err error) {
	var head [len(magic) + 2]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, nil, err
	}
	if string(head[:len(magic)]) != magic {
		return nil, nil, errGarbage
	}
	n := int(binary.BigEndian.Uint16(head[len(magic):]))
	if n > maxBody {
		return nil, nil, fmt.Errorf("%w: a frame of %d bytes", errGarbage, n)
	}
	rest := make([]byte, n+macSize)
	if _, err := io.ReadFull(r, rest); err != nil {
		return nil, nil, err
	}
	body, sum = rest[:n], rest[n:]
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	return body, sum, nil
}

// keyOf finds the key with which a body was sent. Without keys there must be no MAC; nil is returned then.
func keyOf(keys [][]byte, direction string, nonce, body, sum []byte) (key []byte, ok bool) {
	if len(keys) == 0 {
		return nil, bytes.Equal(sum, make([]byte, macSize))
	}
	for _, key := range keys {
		if hmac.Equal(sum, mac(key, direction, nonce, body)) {
			return key, true
		}
	}
	return nil, false
}

// primary is the key to send with: the first, or nil.
func primary(keys [][]byte) []byte {
	if len(keys) == 0 {
		return nil
	}
	return keys[0]
}
