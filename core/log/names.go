package log

import (
	"fmt"
	"strconv"
	"strings"
)

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// String is the name of the partition's directory.
func (tp TopicPartition) String() string { return tp.Topic + "-" + strconv.Itoa(int(tp.Partition)) }

// check says whether there can be such a partition.
func (tp TopicPartition) check() error {
	if err := CheckTopic(tp.Topic); err != nil {
		return err
	}
	if tp.Partition < 0 {
		return fmt.Errorf("partition %d", tp.Partition)
	}
	if n := len(tp.String()); n > maxName {
		return fmt.Errorf("the directory of partition %d would have a name of %d characters, more than %d", tp.Partition, n, maxName)
	}
	return nil
}

// maxTopic is how long the name of a topic may be.
const maxTopic = 249

// CheckTopic says whether a topic may have that name: 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and
// neither "." nor "..". So the name of its directory never leads out of the log directory.
func CheckTopic(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the name of a topic can't be empty")
	case name == "." || name == "..":
		return fmt.Errorf("the name of a topic can't be %q", name)
	case len(name) > maxTopic:
		return fmt.Errorf("the name of a topic has %d characters, more than %d", len(name), maxTopic)
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return fmt.Errorf("the name of topic %q has other characters than a-z, A-Z, 0-9, '.', '_' and '-'", clip(name))
		}
	}
	return nil
}

// What a directory within a log directory can be.
type dirKind int8

const (
	partitionDir dirKind = iota
	deletedDir           // <topic>-<partition>.<32 hex>-delete: on its way out
	keptDir              // not ours to open: another directory of a replica, or of somebody who may be here
	strangeDir           // has no business here
)

// kindOf judges a directory by its name.
func kindOf(name string) (dirKind, TopicPartition) {
	if whole, ok := uniqueSuffix(name, deleteSuffix); ok {
		if _, ok := parsePartition(whole); ok {
			return deletedDir, TopicPartition{}
		}
		return strangeDir, TopicPartition{}
	}
	for _, suffix := range []string{"-future", "-stray"} {
		if whole, ok := uniqueSuffix(name, suffix); ok {
			if _, ok := parsePartition(whole); ok {
				return keptDir, TopicPartition{}
			}
		}
	}
	if tp, ok := parsePartition(name); ok {
		return partitionDir, tp
	}
	switch {
	case name == "remote-log-index-cache", name == "lost+found", strings.HasPrefix(name, "."):
		return keptDir, TopicPartition{}
	}
	return strangeDir, TopicPartition{}
}

// uniqueSuffix cuts .<32 hex digits> and suffix off the end.
func uniqueSuffix(name, suffix string) (string, bool) {
	const digits = 32
	rest, ok := strings.CutSuffix(name, suffix)
	if !ok || len(rest) < digits+1 || rest[len(rest)-digits-1] != '.' {
		return "", false
	}
	for _, c := range []byte(rest[len(rest)-digits:]) {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return "", false
		}
	}
	return rest[:len(rest)-digits-1], true
}

// parsePartition reads <topic>-<partition>; the last '-' divides them.
func parsePartition(name string) (TopicPartition, bool) {
	at := strings.LastIndexByte(name, '-')
	if at < 1 || CheckTopic(name[:at]) != nil {
		return TopicPartition{}, false
	}
	n, err := strconv.ParseInt(name[at+1:], 10, 32)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != name[at+1:] {
		return TopicPartition{}, false
	}
	return TopicPartition{name[:at], int32(n)}, true
}
