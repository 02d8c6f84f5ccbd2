package broker

// coordinateGroups makes this broker the coordinator of all groups when it has become controller, and ends that when another one
// has, for offsets stores without a topic: nobody's leadership says there who coordinates. Clients are told the same controller
// by FindCoordinator. The shard's epoch is the controller's, so that a store can tell an old coordinator from a new one; one
// that doesn't know yet that it has a successor is stopped by the store.
func (b *Broker) coordinateGroups() {
	if b.groups.Topic() != "" {
		return
	}
	if id, epoch := b.cache.Snapshot().Controller(); id == b.id {
		b.groups.Lead(0, epoch)
	} else {
		b.groups.Resign(0)
	}
}
