package znode

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/core/election"
)

type clusterNode struct {
	Version string `json:"version"` // a string, here alone
	ID      string `json:"id"`
}

// EncodeClusterID writes what /cluster/id holds.
func EncodeClusterID(id string) []byte { return encode(clusterNode{"1", id}) }

// DecodeClusterID reads it.
func DecodeClusterID(data []byte) (string, error) {
	o, err := decode("cluster id", data)
	if err != nil {
		return "", err
	}
	id, err := member[string](o, "cluster id", "id")
	if err == nil && id == "" {
		err = fmt.Errorf("cluster id: %w: it is empty", ErrMalformed)
	}
	return id, err
}

// importNode stands where the cluster's id belongs while a dump is being imported. It has no id, so that no broker starts on what is only
// there in parts: neither this one nor Apache Kafka's takes it for a cluster's.
type importNode struct {
	Version string `json:"version"`
	Import  string `json:"import"` // which; no two have the same
}

// EncodeImport writes what /cluster/id holds while an import is under way.
func EncodeImport(name string) []byte { return encode(importNode{"1", name}) }

// IsImport says whether a node is that of an import.
func IsImport(data []byte) bool {
	o, err := decode("cluster id", data)
	return err == nil && o.has("import") && !o.has("id")
}

type controllerNode struct {
	Version    int    `json:"version"`
	Broker     int32  `json:"brokerid"`
	Timestamp  string `json:"timestamp"`
	KRaftEpoch int32  `json:"kraftControllerEpoch"`
}

// EncodeController writes what /controller holds, version 2.
func EncodeController(broker int32, now time.Time) []byte {
	return encode(controllerNode{2, broker, strconv.FormatInt(now.UnixMilli(), 10), -1})
}

// DecodeController reads it: who is controller, and under which epoch of KRaft when the node belongs to a controller of KRaft that
// is migrating the cluster, otherwise -1.
func DecodeController(data []byte) (broker, kraftEpoch int32, err error) {
	o, err := decode("controller", data)
	if err != nil {
		return 0, 0, err
	}
	if broker, err = member[int32](o, "controller", "brokerid"); err != nil {
		return 0, 0, err
	}
	if broker < 0 {
		return 0, 0, fmt.Errorf("controller: %w: broker %d", ErrMalformed, broker)
	}
	kraftEpoch = -1
	if o.has("kraftControllerEpoch") {
		if kraftEpoch, err = member[int32](o, "controller", "kraftControllerEpoch"); err != nil {
			return 0, 0, err
		}
	}
	return broker, kraftEpoch, nil
}

type featureNode struct {
	Version  int      `json:"version"`
	Status   int      `json:"status"`
	Features struct{} `json:"features"`
}

// EncodeFeatures writes what /feature holds: version 2, features enabled, and none of them.
func EncodeFeatures() []byte { return encode(featureNode{Version: 2, Status: 1}) }

type producerNode struct {
	Version int    `json:"version"`
	Broker  int32  `json:"broker"`
	First   string `json:"block_start"`
	Last    string `json:"block_end"`
}

// EncodeProducerIDs writes what /latest_producer_id_block holds.
func EncodeProducerIDs(broker int32, b election.ProducerIDBlock) []byte {
	return encode(producerNode{1, broker, strconv.FormatInt(b.First, 10), strconv.FormatInt(b.First+int64(b.Count)-1, 10)})
}

// DecodeProducerIDs reads it, and returns the first id that isn't given: 0 for an empty node, which is what there is before the
// first block.
func DecodeProducerIDs(data []byte) (next int64, err error) {
	const what = "producer ids"
	if len(data) == 0 {
		return 0, nil
	}
	o, err := decode(what, data)
	if err != nil {
		return 0, err
	}
	text, err := member[string](o, what, "block_end")
	if err != nil {
		return 0, err
	}
	last, err := strconv.ParseInt(text, 10, 64)
	if err != nil || last < 0 || last == math.MaxInt64 {
		return 0, fmt.Errorf("%s: %w: block_end %q", what, ErrMalformed, clip(text))
	}
	return last + 1, nil
}
