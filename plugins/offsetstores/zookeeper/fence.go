package zookeeper

import (
	"crypto/rand"
	"encoding/json"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// fenceVersion is the version of the fence's data that is written, and the newest that is read.
const fenceVersion = 1

// fence is what stands in the node that says who owns the shard.
type fence struct {
	Version int    `json:"version"`
	Epoch   int32  `json:"epoch"` // under which it was loaded
	Owner   string `json:"owner"` // made up for each load
	Write   int64  `json:"write"` // the number that the last transaction had for its owner
}

// newOwner makes up a name.
func newOwner() string { return rand.Text() }

func (f fence) encode() []byte {
	f.Version = fenceVersion
	b, err := json.Marshal(f)
	if err != nil {
		panic(err) // numbers and text always can be
	}
	return b
}

// decodeFence reads the node. Empty data says that nobody has owned the shard yet.
func decodeFence(data []byte) (f fence, err error) {
	if len(data) == 0 {
		return fence{Epoch: offsets.None}, nil
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return fence{}, fmt.Errorf("%w: node %s: %w", offsets.ErrCorrupt, fencePath, err)
	}
	if f.Version < 1 || f.Version > fenceVersion {
		return fence{}, fmt.Errorf("%w: node %s has version %d", offsets.ErrUnsupported, fencePath, f.Version)
	}
	return f, nil
}
