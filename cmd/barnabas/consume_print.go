package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"
	"time"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kgo"
)

// printer makes what prints one record.
func (f *consumeFlags) printer(w io.Writer) (func(*kgo.Record) error, error) {
	if f.template != "" {
		t, err := template.New("--template").Parse(f.template)
		if err == nil {
			err = t.Execute(io.Discard, shownRecord{Headers: map[string]string{}}) // unknown fields show here, and not at the first record
		}
		if err != nil {
			return nil, wrong(fmt.Errorf("--template: %w", err))
		}
		return func(r *kgo.Record) error {
			if err := t.Execute(w, shown(r)); err != nil {
				return err
			}
			_, err := io.WriteString(w, "\n")
			return err
		}, nil
	}
	switch f.format {
	case "plain":
		return func(r *kgo.Record) error {
			_, err := w.Write(append(r.Value, '\n'))
			return err
		}, nil
	case "json":
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return func(r *kgo.Record) error { return e.Encode(asJSON(r)) }, nil
	}
	return nil, wrong(fmt.Errorf("--format: want plain or json, not %q", f.format))
}

// shownRecord is what a template sees.
type shownRecord struct {
	Topic      string
	Partition  int32
	Offset     int64
	Timestamp  time.Time
	Key, Value string
	Headers    map[string]string
}

func shown(r *kgo.Record) shownRecord {
	s := shownRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp, Key: string(r.Key), Value: string(r.Value), Headers: map[string]string{}}
	for _, h := range r.Headers {
		s.Headers[h.Key] = string(h.Value)
	}
	return s
}

// jsonRecord is a record as JSON has it. What isn't text is given in base64, under another name; null is null.
type jsonRecord struct {
	Topic       string       `json:"topic"`
	Partition   int32        `json:"partition"`
	Offset      int64        `json:"offset"`
	Timestamp   time.Time    `json:"timestamp"`
	Key         *string      `json:"key"`
	KeyBase64   []byte       `json:"key_base64,omitempty"`
	Value       *string      `json:"value"`
	ValueBase64 []byte       `json:"value_base64,omitempty"`
	Headers     []jsonHeader `json:"headers,omitempty"`
}

type jsonHeader struct {
	Key         string  `json:"key"`
	Value       *string `json:"value"`
	ValueBase64 []byte  `json:"value_base64,omitempty"`
}

func asJSON(r *kgo.Record) jsonRecord {
	j := jsonRecord{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UTC()}
	j.Key, j.KeyBase64 = textOrBytes(r.Key)
	j.Value, j.ValueBase64 = textOrBytes(r.Value)
	for _, h := range r.Headers {
		header := jsonHeader{Key: strings.ToValidUTF8(h.Key, "\uFFFD")}
		header.Value, header.ValueBase64 = textOrBytes(h.Value)
		j.Headers = append(j.Headers, header)
	}
	return j
}

func textOrBytes(b []byte) (*string, []byte) {
	switch {
	case b == nil:
		return nil, nil
	case !utf8.Valid(b):
		return nil, b
	}
	text := string(b)
	return &text, nil
}
