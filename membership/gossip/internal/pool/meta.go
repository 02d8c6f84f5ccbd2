package pool

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/member"
)

// Format is the version of what servers say of themselves and to each other. One that says a higher number is refused.
const Format = 1

// Meta is what a server says of itself.
type Meta struct {
	Format  int              `json:"format"`
	Server  member.ServerID  `json:"server"`
	Cluster member.ClusterID `json:"cluster,omitempty"` // that it belongs to, or has promised to
	Address string           `json:"address"`           // HOST:PORT of its coordination port
	Store   bool             `json:"store,omitempty"`   // it has a raft log or snapshot
	Version string           `json:"version,omitempty"` // of the program, for people
}

// ErrNewer says that a server speaks a later format than this one.
var ErrNewer = errors.New("speaks a later version of the protocol")

// encode gives the bytes that gossip carries, at most limit.
func (m Meta) encode(limit int) []byte {
	b, err := json.Marshal(m)
	if err != nil || len(b) > limit {
		return nil // what nobody accepts; New has checked that it fits
	}
	return b
}

// decodeMeta reads what a server says of itself. Members that later versions add are ignored.
func decodeMeta(b []byte) (Meta, error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(b, &version); err != nil {
		return Meta{}, errors.New("it says nothing of itself that can be read")
	}
	if version.Format > Format {
		return Meta{}, fmt.Errorf("it %w (%d, this broker %d)", ErrNewer, version.Format, Format)
	}
	var m Meta
	if err := json.Unmarshal(b, &m); err != nil || version.Format < 1 || !m.Server.Valid() || !m.Cluster.Valid() {
		return Meta{}, errors.New("what it says of itself makes no sense")
	}
	host, port, err := net.SplitHostPort(m.Address)
	if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 || host == "" || len(host) > 255 {
		return Meta{}, fmt.Errorf("its address %.64q makes no sense", m.Address)
	}
	if len(m.Version) > 64 {
		m.Version = m.Version[:64]
	}
	return m, nil
}
