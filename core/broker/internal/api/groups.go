package api

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// addGroups adds the requests of the group coordinator to the table.
func (h *handlers) addGroups(t *Table) {
	t.add(kmsg.OffsetCommit, 0, 10, h.offsetCommit)
	t.add(kmsg.OffsetFetch, 0, 10, h.offsetFetch)
	t.add(kmsg.FindCoordinator, 0, 6, h.findCoordinator)
	t.add(kmsg.JoinGroup, 0, 9, h.joinGroup)
	t.add(kmsg.Heartbeat, 0, 4, h.heartbeat)
	t.add(kmsg.LeaveGroup, 0, 5, h.leaveGroup)
	t.add(kmsg.SyncGroup, 0, 5, h.syncGroup)
	t.add(kmsg.DescribeGroups, 0, 6, h.describeGroups)
	t.add(kmsg.ListGroups, 0, 5, h.listGroups)
	t.add(kmsg.DeleteGroups, 0, 3, h.deleteGroups)
	t.add(kmsg.OffsetDelete, 0, 0, h.offsetDelete)
}

// oldGroup is the name under which the offsets of OffsetCommit and OffsetFetch version 0 are kept. Kafka keeps those in
// ZooKeeper, under /consumers, where later versions don't see them: a group of the same name is another group.
func oldGroup(group string) string { return oldGroups + group }

const oldGroups = "/consumers/"

// hasPartition says whether a partition exists.
func (h *handlers) hasPartition(topic string, partition int32) bool {
	t, ok := h.Cluster.Metadata.Snapshot().Topic(topic)
	if ok {
		_, ok = t.Partition(partition)
	}
	return ok
}

func pointer[T any](v T) *T { return &v }
