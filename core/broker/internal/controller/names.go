package controller

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
)

// The topics that brokers keep for themselves.
const (
	OffsetsTopic      = "__consumer_offsets"
	TransactionsTopic = "__transaction_state"
)

// Internal says whether a topic is one that brokers keep for themselves.
func Internal(topic string) bool { return topic == OffsetsTopic || topic == TransactionsTopic }

// maxTopicName is Kafka's limit: with "-" and a partition number a file system's 255 bytes hold it.
const maxTopicName = 249

// CheckTopicName refuses, with INVALID_TOPIC_EXCEPTION, what can't be a topic's name. Topics are directories: what passes
// here never leads out of the data directory.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: it is empty")
	case name == "." || name == "..":
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: it is %q", name)
	case len(name) > maxTopicName:
		return refuse(kerr.InvalidTopicException, "Topic name is invalid: it is longer than %d characters", maxTopicName)
	}
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-') {
			return refuse(kerr.InvalidTopicException, "Topic name %q is invalid: it has characters other than letters, digits, '.', '_' and '-'", name)
		}
	}
	return nil
}

// unified is a name as metrics write it, where dots become underscores: topics must differ in it too.
func unified(name string) string { return strings.ReplaceAll(name, ".", "_") }

// tp names a partition.
type tp struct {
	topic     string
	partition int32
}

func (k tp) String() string { return fmt.Sprintf("%s-%d", k.topic, k.partition) }
