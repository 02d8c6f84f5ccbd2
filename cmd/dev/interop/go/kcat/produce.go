package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

// Between key and value and between records on kcat's input; no text has them.
const (
	keyEnd    = "<<barnabas key>>"
	recordEnd = "<<barnabas record>>"
)

// Produce lets the broker create the topic, as it does for whoever asks for one that isn't there.
func (k *kcat) Produce(ctx context.Context, topic, codec string, records []probe.Record) (int64, error) {
	var in bytes.Buffer
	for i, r := range records {
		if i > 0 {
			in.WriteString(recordEnd)
		}
		in.Write(r.Key)
		in.WriteString(keyEnd)
		in.Write(r.Value)
	}
	if n := bytes.Count(in.Bytes(), []byte(recordEnd)) + 1; n != len(records) {
		return 0, fmt.Errorf("a text contains %q", recordEnd)
	}
	cmd := k.command(ctx, "-P", "-t", topic, "-p", "0", "-z", codec, "-K", keyEnd, "-D", recordEnd, "-X", "enable.idempotence=true", "-X", "linger.ms=5")
	cmd.Stdin = &in
	if err := cmd.Run(); err != nil {
		return 0, err
	}
	end, err := k.query(ctx, topic, probe.FromEnd)
	return end - int64(len(records)), err
}

// query asks for the offset of a timestamp, the start or the end of partition 0.
func (k *kcat) query(ctx context.Context, topic string, at int64) (int64, error) {
	cmd := k.command(ctx, "-Q", "-t", fmt.Sprintf("%s:0:%d", topic, at))
	out, err := cmd.Output() // "topic [0] offset 17"
	if err != nil {
		return 0, err
	}
	var offset int64
	if _, err := fmt.Sscanf(strings.TrimSpace(string(out)), topic+" [0] offset %d", &offset); err != nil {
		return 0, fmt.Errorf("kcat -Q says %q: %w", out, err)
	}
	return offset, nil
}
