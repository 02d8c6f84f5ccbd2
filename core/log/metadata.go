package log

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TopicID is the id of the topic as partition.metadata has it; ok is false when the file doesn't exist yet.
func (l *Log) TopicID() (id [16]byte, ok bool) {
	if p := l.topicID.Load(); p != nil {
		return *p, true
	}
	return id, false
}

// SetTopicID writes partition.metadata, unless it holds that id already. It must be called before the first append.
// ErrTopicID when the file holds another id: the directory belongs to a topic that was deleted.
func (l *Log) SetTopicID(id [16]byte) error {
	if have, ok := l.TopicID(); ok {
		if have != id {
			return l.wrap(fmt.Errorf("%w: %s, not %s", ErrTopicID, FormatTopicID(have), FormatTopicID(id)))
		}
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.Err(); err != nil {
		return err
	}
	return l.failUnlessFull(l.writeTopicID(id))
}

// writeTopicID writes partition.metadata. It is durable with the first sync of the log: without records an id is of no use, and a
// topic of a thousand partitions would wait for as many syncs. A log that isn't new has it synced at once. The caller holds mu.
func (l *Log) writeTopicID(id [16]byte) error {
	path := filepath.Join(l.Dir(), metadataFile)
	if err := os.WriteFile(path+tmpSuffix, formatMetadata(id), 0o644); err != nil {
		return err
	}
	if err := os.Rename(path+tmpSuffix, path); err != nil {
		return err
	}
	l.unsynced, l.newFiles = append(l.unsynced, path), true
	l.topicID.Store(&id)
	if l.end.Load() > 0 {
		return l.syncTopicID()
	}
	return nil
}

// syncTopicID makes partition.metadata durable, where there is one: a log that begins behind offset 0, or has records that count
// as durable, can't be opened when a crash takes it.
func (l *Log) syncTopicID() error {
	if _, ok := l.TopicID(); !ok {
		return nil
	}
	return syncFile(filepath.Join(l.Dir(), metadataFile))
}

func (l *Log) readTopicID() error {
	path := filepath.Join(l.o.Dir, metadataFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	id, err := parseMetadata(b)
	if err != nil && l.o.RecoveryPoint == 0 && !l.o.CleanShutdown {
		return nil // the crash came before it was synced, and so before any record was
	}
	if err != nil {
		return fmt.Errorf("%s: %w (if the topic's id is known from elsewhere, remove the file: it is written again)", path, err)
	}
	l.topicID.Store(&id)
	return nil
}

// FormatTopicID writes a topic id as Kafka does: 22 characters of URL-safe base64.
func FormatTopicID(id [16]byte) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads what FormatTopicID wrote.
func ParseTopicID(s string) (id [16]byte, err error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("topic id %q is not 22 characters of base64", clip(s))
	}
	return [16]byte(b), nil
}

func formatMetadata(id [16]byte) []byte {
	return []byte("version: 0\ntopic_id: " + FormatTopicID(id))
}

func parseMetadata(b []byte) (id [16]byte, err error) {
	lines := strings.Split(string(bytes.TrimRight(b, "\n")), "\n")
	if len(lines) != 2 {
		return id, fmt.Errorf("%w: %d lines, want 2", ErrCorrupt, len(lines))
	}
	if v, ok := strings.CutPrefix(lines[0], "version: "); !ok || strings.TrimSpace(v) != "0" {
		return id, fmt.Errorf("%w: first line %q, want \"version: 0\"", ErrCorrupt, clip(lines[0]))
	}
	v, ok := strings.CutPrefix(lines[1], "topic_id: ")
	if !ok {
		return id, fmt.Errorf("%w: second line %q, want a topic_id", ErrCorrupt, clip(lines[1]))
	}
	if id, err = ParseTopicID(strings.TrimSpace(v)); err != nil {
		return id, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return id, nil
}
