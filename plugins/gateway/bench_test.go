package gateway_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/barnabas-mq/barnabas/core/partitioner"
)

// post sends one request and wants it to succeed.
func post(client *http.Client, url, media, body string) error {
	resp, err := client.Post(url, media, strings.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// spread puts keys anywhere, by a hash that costs what those in the box do, and may be used by many goroutines.
type spread struct{}

func (spread) Start(context.Context) error { return nil }
func (spread) Stop(context.Context) error  { return nil }
func (spread) Keyed() bool                 { return true }
func (spread) Partition(_ context.Context, dst []int32, b *partitioner.Batch) ([]int32, error) {
	for _, r := range b.Records {
		dst = append(dst, int32(crc32.ChecksumIEEE(r.Key)%uint32(b.Partitions)))
	}
	return dst, nil
}

func measured(b *testing.B) (*bench, *http.Client) {
	g := start(b, spread{})
	g.topic("t", 4)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(client.CloseIdleConnections)
	return g, client
}

// BenchmarkProduce is throughput: requests of 1000 records of some 100 bytes, from 4 connections. The goal is 100,000 records/s.
func BenchmarkProduce(b *testing.B) {
	g, client := measured(b)
	for name, url := range map[string]string{"v2": "/topics/t", "v3": g.cluster() + "/topics/t/records"} {
		media, body := v2json, manyRecords(1000)
		if name == "v3" {
			media, body = v3, strings.Repeat(`{"key":{"type":"STRING","data":"some key"},"value":{"type":"JSON","data":{"name":"record","padding":"`+strings.Repeat("x", 50)+`"}}}`, 1000)
		}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			var workers sync.WaitGroup
			work := make(chan struct{})
			for range 4 {
				workers.Go(func() {
					for range work {
						if err := post(client, g.base+url, media, body); err != nil {
							b.Error(err)
						}
					}
				})
			}
			for b.Loop() {
				work <- struct{}{}
			}
			close(work)
			workers.Wait()
			b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkLatency is 5,000 records/s in requests of 10, begun on time whether or not the one before has ended. The goal is a
// 99th percentile below 20 ms.
func BenchmarkLatency(b *testing.B) {
	g, client := measured(b)
	body := manyRecords(10)
	var mu sync.Mutex
	var took []time.Duration
	var all sync.WaitGroup
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for b.Loop() {
		due := <-tick.C
		all.Go(func() {
			if err := post(client, g.base+"/topics/t", v2json, body); err != nil {
				b.Error(err)
			}
			mu.Lock()
			took = append(took, time.Since(due))
			mu.Unlock()
		})
	}
	all.Wait()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
