package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/partitioner"
	"github.com/barnabas-mq/barnabas/core/partitioner/partitionertest"
)

func TestSuite(t *testing.T) {
	partitionertest.Run(t, func(*testing.T) partitioner.Partitioner {
		return New(Options{Header: "region", Regions: map[string][]int32{"eu": {0, 3, 11}}, Default: []int32{1, 2}})
	})
}

func record(key, region string) partitioner.Record {
	r := partitioner.Record{Headers: []partitioner.Header{{Key: "other", Value: []byte("us")}}}
	if key != "" {
		r.Key = []byte(key)
	}
	if region != "" {
		r.Headers = append(r.Headers, partitioner.Header{Key: "region", Value: []byte("nowhere")}, partitioner.Header{Key: "region", Value: []byte(region)})
	}
	return r
}

func TestPlaces(t *testing.T) {
	p := New(Options{Header: "region", Regions: map[string][]int32{"eu": {0, 1, 7}, "us": {4, 5}, "far": {20}}, Default: []int32{6}})
	place := func(partitions int32, available []int32, records ...partitioner.Record) []int32 {
		got, err := p.Partition(t.Context(), nil, &partitioner.Batch{Topic: "t", Partitions: partitions, Available: available, Records: records})
		require.NoError(t, err)
		return got
	}
	eu := place(8, nil, record("a", "eu"), record("b", "eu"), record("c", "eu"), record("d", "eu"), record("a", "eu"))
	require.Subset(t, []int32{0, 1, 7}, eu)
	require.Equal(t, eu[0], eu[4], "equal keys of one region meet")
	require.NotEqual(t, []int32{eu[0], eu[0], eu[0]}, eu[1:4], "keys are spread")

	require.Equal(t, []int32{6, 6, 6}, place(8, nil, record("a", "asia"), record("a", ""), record("a", "far")))
	require.Equal(t, []int32{0}, place(1, nil, record("a", "us")), "the topic has none of them")
	require.ElementsMatch(t, []int32{4, 5}, place(8, nil, record("", "us"), record("", "us")), "without a key they take turns")
	require.Equal(t, []int32{5, 5}, place(8, []int32{2, 5}, record("", "us"), record("", "us")), "and go where a leader is")
	require.ElementsMatch(t, []int32{4, 5}, place(8, []int32{2}, record("", "us"), record("", "us")), "and nowhere else when none has one")
}

func TestOptions(t *testing.T) {
	root, err := config.Parse("x.yaml", []byte("regions: {eu: [], us: [-1]}\nheader: ''\ndefault: [-2]\n"))
	require.NoError(t, err)
	err = NewFactory().Check(root)
	require.ErrorContains(t, err, "header: must not be empty")
	require.ErrorContains(t, err, "regions.eu: must list at least one partition")
	require.ErrorContains(t, err, "regions.us: there is no partition -1")
	require.ErrorContains(t, err, "default: there is no partition -2")
}

func BenchmarkPartition(b *testing.B) {
	p := New(Options{Header: "region", Regions: map[string][]int32{"eu": {0, 1, 2}, "us": {3, 4, 5}}})
	batch := &partitioner.Batch{Topic: "t", Partitions: 12}
	for i := range 500 {
		batch.Records = append(batch.Records, record(string(rune('a'+i%26)), []string{"eu", "us"}[i%2]))
	}
	var dst []int32
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = p.Partition(b.Context(), dst[:0], batch)
	}
}
