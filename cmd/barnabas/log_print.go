package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
	"github.com/barnabas-mq/barnabas/core/record"
)

// moment is a timestamp for people.
func moment(ms int64) string {
	if ms < 0 {
		return "no time"
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

type shownFile struct {
	head
	Bytes int64 `json:"bytes"`
}

func (s *shownFile) text() string { return fmt.Sprintf("%s: %d bytes", s.File, s.Bytes) }

type shownDamage struct {
	head
	Position     int64  `json:"position"` // -1 for the file as a whole
	Reason       string `json:"reason"`
	Preallocated bool   `json:"preallocated,omitempty"`
}

func (s *shownDamage) text() string {
	mark := "  DAMAGE"
	if s.Preallocated {
		mark = "  behind it"
	}
	if s.Position >= 0 {
		mark += fmt.Sprintf(" at %d", s.Position)
	}
	return mark + ": " + s.Reason
}

type shownBatch struct {
	head
	Position      int64  `json:"position"`
	Bytes         int    `json:"bytes"`
	BaseOffset    int64  `json:"base_offset"`
	LastOffset    int64  `json:"last_offset"`
	Records       int32  `json:"records"`
	Magic         int8   `json:"magic"`
	Codec         string `json:"codec"`
	LeaderEpoch   int32  `json:"leader_epoch"`
	MaxTimestamp  int64  `json:"max_timestamp"`
	AppendTime    bool   `json:"log_append_time"`
	ProducerID    int64  `json:"producer_id"`
	ProducerEpoch int16  `json:"producer_epoch"`
	BaseSequence  int32  `json:"base_sequence"`
	Transactional bool   `json:"transactional"`
	Control       bool   `json:"control"`
	DeleteHorizon *int64 `json:"delete_horizon,omitempty"`
	CRC           string `json:"crc"`
}

func newShownBatch(b inspect.Batch) *shownBatch {
	s := &shownBatch{
		Position: b.Position, Bytes: b.Size(), BaseOffset: b.BaseOffset, LastOffset: b.LastOffset(), Records: b.Count, Magic: b.Magic,
		Codec: b.Attributes.Codec().String(), LeaderEpoch: b.LeaderEpoch, MaxTimestamp: b.MaxTimestamp, AppendTime: b.Attributes.LogAppendTime(),
		ProducerID: b.ProducerID, ProducerEpoch: b.ProducerEpoch, BaseSequence: b.BaseSequence, Transactional: b.Attributes.Transactional(),
		Control: b.Attributes.Control(), CRC: fmt.Sprintf("%08x", b.CRC),
	}
	if at, ok := b.DeleteHorizonMs(); ok {
		s.DeleteHorizon = &at
	}
	return s
}

func (s *shownBatch) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  offsets %d to %d at %d: %d bytes, %s, %s, epoch %d, %s", s.BaseOffset, s.LastOffset, s.Position, s.Bytes,
		counted(int(s.Records), "record"), s.Codec, s.LeaderEpoch, moment(s.MaxTimestamp))
	if s.AppendTime {
		b.WriteString(" (of the append)")
	}
	if s.ProducerID >= 0 {
		fmt.Fprintf(&b, ", producer %d epoch %d sequence %d", s.ProducerID, s.ProducerEpoch, s.BaseSequence)
	}
	switch {
	case s.Control:
		b.WriteString(", control")
	case s.Transactional:
		b.WriteString(", transactional")
	}
	if s.DeleteHorizon != nil {
		fmt.Fprintf(&b, ", delete horizon %s", moment(*s.DeleteHorizon))
	}
	if s.Magic < record.Magic {
		fmt.Fprintf(&b, ", message format %d", s.Magic)
	}
	fmt.Fprintf(&b, ", crc %s", s.CRC)
	return b.String()
}

type shownLogRecord struct {
	head
	Offset      int64        `json:"offset"`
	Timestamp   int64        `json:"timestamp"`
	Marker      string       `json:"marker,omitempty"` // of control records: commit, abort, or unknown
	Key         *string      `json:"key"`
	KeyBase64   []byte       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

func newShownLogRecord(r record.Record, control bool) *shownLogRecord {
	s := &shownLogRecord{Offset: r.Offset, Timestamp: r.Timestamp}
	s.Key, s.KeyBase64 = textOrBytes(r.Key)
	s.Value, s.ValueBase64 = textOrBytes(r.Value)
	for key, value := range r.Headers() {
		h := jsonHeader{Key: strings.ToValidUTF8(string(key), "\uFFFD")}
		h.Value, h.ValueBase64 = textOrBytes(value)
		s.Headers = append(s.Headers, h)
	}
	if control {
		s.Marker = "unknown"
		if m, ok, err := record.ParseEndTxnMarker(r); err == nil && ok {
			s.Marker = "abort"
			if m.Commit {
				s.Marker = "commit"
			}
		}
	}
	return s
}

func (s *shownLogRecord) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "    offset %d, %s, ", s.Offset, moment(s.Timestamp))
	if s.Marker != "" {
		return b.String() + "marker: " + s.Marker
	}
	fmt.Fprintf(&b, "key %s, value %s", quoted(s.Key, s.KeyBase64), quoted(s.Value, s.ValueBase64))
	for _, h := range s.Headers {
		fmt.Fprintf(&b, ", header %q %s", h.Key, quoted(h.Value, h.ValueBase64))
	}
	return b.String()
}

// quoted is text in quotes, bytes that are none escaped, or null.
func quoted(text *string, raw []byte) string {
	switch {
	case text != nil:
		return fmt.Sprintf("%q", *text)
	case raw != nil:
		return fmt.Sprintf("%q", raw)
	}
	return "null"
}

type shownOffset struct {
	head
	inspect.OffsetEntry
}

func (s *shownOffset) text() string { return fmt.Sprintf("  offset %d at %d", s.Offset, s.Position) }

type shownTime struct {
	head
	inspect.TimeEntry
}

func (s *shownTime) text() string {
	return fmt.Sprintf("  %s (%d) offset %d", moment(s.Timestamp), s.Timestamp, s.Offset)
}

type shownTxn struct {
	head
	inspect.TxnEntry
}

func (s *shownTxn) text() string {
	return fmt.Sprintf("  producer %d aborted offsets %d to %d, last stable offset %d", s.ProducerID, s.FirstOffset, s.LastOffset, s.LastStableOffset)
}

type shownProducer struct {
	head
	inspect.Producer
}

func (s *shownProducer) text() string {
	text := fmt.Sprintf("  producer %d epoch %d: sequence %d at offset %d, %d records before it in its batch, %s, coordinator epoch %d",
		s.ID, s.Producer.Epoch, s.LastSequence, s.LastOffset, s.OffsetDelta, moment(s.Timestamp), s.CoordinatorEpoch)
	if s.TxnFirstOffset >= 0 {
		text += fmt.Sprintf(", transaction open from offset %d on", s.TxnFirstOffset)
	}
	return text
}

type shownEpoch struct {
	head
	inspect.Epoch
}

func (s *shownEpoch) text() string {
	return fmt.Sprintf("  leader epoch %d from offset %d on", s.Epoch.Epoch, s.Start)
}

type shownMetadata struct {
	head
	TopicID string `json:"topic_id"`
}

func (s *shownMetadata) text() string { return "  topic id " + s.TopicID }

type shownCheckpoint struct {
	head
	inspect.Offset
}

func (s *shownCheckpoint) text() string {
	return fmt.Sprintf("  %s: offset %d", s.Name(), s.Offset.Offset)
}
