package kafkatools

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The kinds of records of `__consumer_offsets`, by the version of the key.
const (
	offsetRecords      = 1 // and 0
	groupRecords       = 2
	transactionRecords = 0 // of `__transaction_state`
)

// coordinatorRecord is a record of a coordinator's topic, as Kafka's JSON has it. A value of nil is a deletion.
type coordinatorRecord struct {
	kind    int16
	key     any
	version int16
	value   any
}

type (
	offsetKey struct {
		Group     string `json:"group"`
		Topic     string `json:"topic"`
		Partition int32  `json:"partition"`
	}
	offsetValue struct {
		Offset          int64  `json:"offset"`
		LeaderEpoch     *int32 `json:"leaderEpoch,omitempty"`
		Metadata        string `json:"metadata"`
		CommitTimestamp int64  `json:"commitTimestamp"`
		ExpireTimestamp *int64 `json:"expireTimestamp,omitempty"`
	}
	groupKey struct {
		Group string `json:"group"`
	}
	groupValue struct {
		ProtocolType          string        `json:"protocolType"`
		Generation            int32         `json:"generation"`
		Protocol              *string       `json:"protocol"`
		Leader                *string       `json:"leader"`
		CurrentStateTimestamp *int64        `json:"currentStateTimestamp,omitempty"`
		Members               []groupMember `json:"members"`
	}
	groupMember struct {
		MemberID         string `json:"memberId"`
		GroupInstanceID  any    `json:"groupInstanceId,omitempty"`
		ClientID         string `json:"clientId"`
		ClientHost       string `json:"clientHost"`
		RebalanceTimeout *int32 `json:"rebalanceTimeout,omitempty"`
		SessionTimeout   int32  `json:"sessionTimeout"`
		Subscription     any    `json:"subscription"`
		Assignment       any    `json:"assignment"`
	}
	namedPartitions struct {
		Topic      string  `json:"topic"`
		Partitions []int32 `json:"partitions"`
	}
	subscription struct {
		Topics          []string           `json:"topics"`
		UserData        []byte             `json:"userData"`
		OwnedPartitions *[]namedPartitions `json:"ownedPartitions,omitempty"`
		GenerationID    *int32             `json:"generationId,omitempty"`
		RackID          any                `json:"rackId,omitempty"`
	}
	memberAssignment struct {
		AssignedPartitions []namedPartitions `json:"assignedPartitions"`
		UserData           []byte            `json:"userData"`
	}
	transactionKey struct {
		TransactionalID string `json:"transactionalId"`
	}
	transactionPartitions struct {
		Topic        string  `json:"topic"`
		PartitionIDs []int32 `json:"partitionIds"`
	}
	transactionValue struct {
		ProducerID                    int64                    `json:"producerId"`
		ProducerEpoch                 int16                    `json:"producerEpoch"`
		TransactionTimeoutMs          int32                    `json:"transactionTimeoutMs"`
		TransactionStatus             int8                     `json:"transactionStatus"`
		TransactionPartitions         *[]transactionPartitions `json:"transactionPartitions"`
		TransactionLastUpdateTimestMs int64                    `json:"transactionLastUpdateTimestampMs"`
		TransactionStartTimestampMs   int64                    `json:"transactionStartTimestampMs"`
	}
)

// keyVersion is the version in front of a key or value; negative where it is missing.
func keyVersion(b []byte) int16 {
	if len(b) < 2 {
		return -1
	}
	return int16(binary.BigEndian.Uint16(b))
}

// decodeGroupRecord reads a record of `__consumer_offsets` of a classic group. known is false for keys of other kinds.
func decodeGroupRecord(key, value []byte) (r coordinatorRecord, known bool, err error) {
	r.kind, r.version = keyVersion(key), keyVersion(value)
	switch r.kind {
	case 0, offsetRecords:
		var k kmsg.OffsetCommitKey
		if err := k.ReadFrom(key); err != nil {
			return r, true, err
		}
		r.key = offsetKey{k.Group, k.Topic, k.Partition}
		if value == nil {
			return r, true, nil
		}
		var v kmsg.OffsetCommitValue
		if err := v.ReadFrom(value); err != nil {
			return r, true, err
		}
		o := offsetValue{Offset: v.Offset, Metadata: v.Metadata, CommitTimestamp: v.CommitTimestamp}
		if r.version >= 3 {
			o.LeaderEpoch = &v.LeaderEpoch
		}
		if r.version == 1 {
			o.ExpireTimestamp = &v.ExpireTimestamp
		}
		r.value = o
	case groupRecords:
		var k kmsg.GroupMetadataKey
		if err := k.ReadFrom(key); err != nil {
			return r, true, err
		}
		r.key = groupKey{k.Group}
		if value == nil {
			return r, true, nil
		}
		var v kmsg.GroupMetadataValue
		if err := v.ReadFrom(value); err != nil {
			return r, true, err
		}
		r.value = groupData(v, r.version)
	default:
		return r, false, nil
	}
	return r, true, nil
}

func groupData(v kmsg.GroupMetadataValue, version int16) groupValue {
	g := groupValue{ProtocolType: v.ProtocolType, Generation: v.Generation, Protocol: v.Protocol, Leader: v.Leader, Members: []groupMember{}}
	if version >= 2 {
		g.CurrentStateTimestamp = &v.CurrentStateTimestamp
	}
	for _, m := range v.Members {
		member := groupMember{
			MemberID: m.MemberID, ClientID: m.ClientID, ClientHost: m.ClientHost, SessionTimeout: m.SessionTimeoutMillis,
			Subscription: m.Subscription, Assignment: m.Assignment,
		}
		if version >= 1 {
			member.RebalanceTimeout = &m.RebalanceTimeoutMillis
		}
		if version >= 3 {
			member.GroupInstanceID = orNull(m.InstanceID)
		}
		if v.ProtocolType == "consumer" { // whose bytes are known; what isn't understood stays as it is
			if s, ok := subscriptionOf(m.Subscription); ok {
				member.Subscription = s
			}
			if a, ok := assignmentOf(m.Assignment); ok {
				member.Assignment = a
			}
		}
		g.Members = append(g.Members, member)
	}
	return g
}

// orNull is for fields that are left out where there are none, and null in versions that have them.
func orNull(text *string) any {
	if text == nil {
		return json.RawMessage("null")
	}
	return *text
}

func subscriptionOf(b []byte) (subscription, bool) {
	var m kmsg.ConsumerMemberMetadata
	if err := m.ReadFrom(b); err != nil {
		return subscription{}, false
	}
	s := subscription{Topics: append([]string{}, m.Topics...), UserData: m.UserData}
	if m.Version >= 1 {
		owned := []namedPartitions{}
		for _, o := range m.OwnedPartitions {
			owned = append(owned, namedPartitions{o.Topic, append([]int32{}, o.Partitions...)})
		}
		s.OwnedPartitions = &owned
	}
	if m.Version >= 2 {
		s.GenerationID = &m.Generation
	}
	if m.Version >= 3 {
		s.RackID = orNull(m.Rack)
	}
	return s, true
}

func assignmentOf(b []byte) (memberAssignment, bool) {
	var m kmsg.ConsumerMemberAssignment
	if err := m.ReadFrom(b); err != nil {
		return memberAssignment{}, false
	}
	a := memberAssignment{AssignedPartitions: []namedPartitions{}, UserData: m.UserData}
	for _, t := range m.Topics {
		a.AssignedPartitions = append(a.AssignedPartitions, namedPartitions{t.Topic, append([]int32{}, t.Partitions...)})
	}
	return a, true
}

// decodeTransactionRecord reads a record of `__transaction_state`.
func decodeTransactionRecord(key, value []byte) (r coordinatorRecord, known bool, err error) {
	r.kind, r.version = keyVersion(key), keyVersion(value)
	if r.kind != transactionRecords {
		return r, false, nil
	}
	var k kmsg.TxnMetadataKey
	if err := k.ReadFrom(key); err != nil {
		return r, true, err
	}
	r.key = transactionKey{k.TransactionalID}
	if value == nil {
		return r, true, nil
	}
	var v kmsg.TxnMetadataValue
	if err := v.ReadFrom(value); err != nil {
		return r, true, err
	}
	t := transactionValue{
		ProducerID: v.ProducerID, ProducerEpoch: v.ProducerEpoch, TransactionTimeoutMs: v.TimeoutMillis, TransactionStatus: int8(v.State),
		TransactionLastUpdateTimestMs: v.LastUpdateTimestamp, TransactionStartTimestampMs: v.StartTimestamp,
	}
	if v.Topics != nil {
		all := []transactionPartitions{}
		for _, topic := range v.Topics {
			all = append(all, transactionPartitions{topic.Topic, append([]int32{}, topic.Partitions...)})
		}
		t.TransactionPartitions = &all
	}
	r.value = t
	return r, true, nil
}

// compact is a value as JSON in one line, with its characters as they are.
func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // which can't be: these are our own
		return "null"
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// coordinatorFormatter prints the records of one kind of `__consumer_offsets`, and leaves the others out.
func coordinatorFormatter(kind int16) func(*bufio.Writer, *kgo.Record) error {
	type part struct {
		Type    *int16 `json:"type,omitempty"`
		Version *int16 `json:"version,omitempty"`
		Data    any    `json:"data"`
	}
	return func(w *bufio.Writer, r *kgo.Record) error {
		if r.Key == nil {
			return nil
		}
		c, known, err := decodeGroupRecord(r.Key, r.Value)
		if err != nil {
			return fmt.Errorf("Could not read record at offset %d due to: %w", r.Offset, err) //nolint:staticcheck // Kafka's words
		}
		if !known || (c.kind == groupRecords) != (kind == groupRecords) {
			return nil
		}
		line := struct {
			Key   part  `json:"key"`
			Value *part `json:"value"`
		}{Key: part{Type: &c.kind, Data: c.key}}
		if c.value != nil {
			line.Value = &part{Version: &c.version, Data: c.value}
		}
		_, err = fmt.Fprintln(w, compact(line))
		return err
	}
}
