package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

func TestNextReadsKcatsFormat(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("0 7 1000 3 5\nkeya\nb\nc\n2 8 2000 -1 0\n\n0 9 x 1 1\nab\n"))
	r, partition, err := next(in)
	require.NoError(t, err)
	require.Zero(t, partition)
	require.Equal(t, probe.Record{Key: []byte("key"), Value: []byte("a\nb\nc"), Time: time.UnixMilli(1000), Offset: 7}, r)
	r, partition, err = next(in)
	require.NoError(t, err)
	require.Equal(t, int32(2), partition)
	require.Empty(t, r.Key)
	require.Empty(t, r.Value)
	_, _, err = next(in)
	require.ErrorContains(t, err, "kcat prints")
	_, _, err = next(bufio.NewReader(strings.NewReader("0 7 1000 3 50\nkeya")))
	require.Error(t, err)
}

func TestAssignments(t *testing.T) {
	var got []probe.Event
	assignments(strings.NewReader(`% Waiting for group rebalance
% Group g rebalanced (memberid rdkafka-1): assigned: t [0], t [3]
% Reached end of topic t [0] at offset 5
% Group g rebalanced (memberid rdkafka-1): revoked: t [0], t [3]
`), func(e probe.Event) { got = append(got, e) })
	require.Equal(t, []probe.Event{{Event: probe.EventAssigned, Partitions: []int32{0, 3}}, {Event: probe.EventAssigned}}, got)
}

func TestVersion(t *testing.T) {
	program := filepath.Join(t.TempDir(), "kcat")
	text := "#!/bin/sh\necho 'kcat - Apache Kafka producer and consumer tool'\necho 'Version 1.7.1 (JSON, librdkafka 2.0.2 builtin.features=gzip)'\n"
	require.NoError(t, os.WriteFile(program, []byte(text), 0o755))
	require.Equal(t, "1.7.1/librdkafka 2.0.2", version(program))
	require.Equal(t, "unknown", version(program+"-missing"))
}
