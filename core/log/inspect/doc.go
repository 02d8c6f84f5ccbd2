// Package inspect reads the files of log directories offline, Apache Kafka's and ours alike, and says what doesn't fit together:
// segments, their indexes, producer snapshots, leader epochs and checkpoints.
//
// It knows the format of the files (core/log/FORMAT.md) and nothing of the code that writes them, so that one may check the other.
// It only ever opens files to read, and takes no lock: a running broker may have the directory. Mending isn't its business, nor is
// what a broker makes of a file.
//
// # What is found
//
// The checksum of a batch covers all but its first 21 bytes. Those are covered by structure:
//
//   - base offset: it can't be below the end of the batch before it, nor so high that the batch reaches into the next batch or the next
//     segment. Offsets above the last batch's own are told only from what else speaks of the end of the log: index entries that name
//     the batch, and the recovery point of a directory whose broker stopped in order. Gaps are no faults: compaction leaves them, also in
//     the log of a follower that copies a compacted one.
//   - length: what follows must be a batch again, and the checksum must match over so many bytes.
//   - leader epoch: it never falls from one batch to the next, and is the one that leader-epoch-checkpoint has for the offset.
//   - magic byte: the other formats have another checksum in another place.
//   - the checksum itself: it is compared.
//
// An entry of a time index may name any offset of its batch, as those of older Kafkas do, and one of an offset index the last offset of
// several batches, as those of followers under Kafka 3.9 do.
//
// So in a directory whose broker stopped in order every changed bit of a segment is found. In one that is in use, or whose broker
// died, a base offset that rose in the very last batch of a log is not; nor is damage told from a torn write when it is in the last
// batch of all, and that ends with zeros. Without leader-epoch-checkpoint, neither is a leader epoch that fell in the first batch, or
// rose in the last.
package inspect
