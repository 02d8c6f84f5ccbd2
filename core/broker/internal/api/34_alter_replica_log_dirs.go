package api

import (
	"context"
	"path/filepath"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AlterReplicaLogDirs (key 34, KIP-113): v0-2
//
// Behaviour:
//   - Asks for replicas to be in a log directory. LOG_DIR_NOT_FOUND when it isn't one of this broker's, KAFKA_STORAGE_ERROR
//     when it failed, REPLICA_NOT_AVAILABLE for a replica that isn't here.
//   - A replica that is there already stays, without error. Replicas are not moved from one directory to another:
//     UNSUPPORTED_VERSION says so.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: flexible
func (h *handlers) alterReplicaLogDirs(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.AlterReplicaLogDirsRequest)
	resp := kmsg.NewPtrAlterReplicaLogDirsResponse()
	dirs := h.LogDirs.LogDirs()
	at := map[string]int{} // of a topic, its place in the response
	for _, d := range req.Dirs {
		for _, t := range d.Topics {
			for _, p := range t.Partitions {
				i, ok := at[t.Topic]
				if !ok {
					i = len(resp.Topics)
					at[t.Topic] = i
					resp.Topics = append(resp.Topics, kmsg.AlterReplicaLogDirsResponseTopic{Topic: t.Topic})
				}
				resp.Topics[i].Partitions = append(resp.Topics[i].Partitions, kmsg.AlterReplicaLogDirsResponseTopicPartition{
					Partition: p, ErrorCode: code(placed(dirs, d.Dir, t.Topic, p))})
			}
		}
	}
	return r.Answer(resp)
}

// placed says why a replica isn't in a directory, nil when it is.
func placed(dirs []LogDir, dir, topic string, partition int32) error {
	found, err := false, error(kerr.ReplicaNotAvailable)
	for i := range dirs {
		d := &dirs[i]
		here := filepath.IsAbs(dir) && filepath.Clean(dir) == d.Path
		if here && d.Err != nil {
			return kerr.KafkaStorageError
		}
		found = found || here
		for _, p := range d.Replicas {
			if p.Topic == topic && p.Partition == partition && !p.Future {
				if err = kerr.UnsupportedVersion; here {
					return nil
				}
			}
		}
	}
	if !found {
		return kerr.LogDirNotFound
	}
	return err
}
