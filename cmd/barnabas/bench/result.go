package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one run came to. Sizes are bytes, GB is 10^9 bytes of record values.
type Result struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	InFlight    int     `json:"in_flight"`
	Requests    int64   `json:"requests"`
	Records     int64   `json:"records"`
	Bytes       int64   `json:"bytes"`      // of record values; for fetches of whole batches
	WireBytes   int64   `json:"wire_bytes"` // of the frames that carry them, compressed or not
	Seconds     float64 `json:"seconds"`
	// Latency is from the writing of a request to the end of its response.
	Latency Latency `json:"latency"`
	// Broker is that of all brokers whose processes were given, nil when none was.
	Broker *Cost `json:"broker,omitempty"`
	// ClientCPU is the processor time of this process in seconds, 0 where the system doesn't tell.
	ClientCPU float64 `json:"client_cpu_seconds"`
}

// Latency has percentiles in microseconds.
type Latency struct {
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p99_9_us"`
	Max  float64 `json:"max_us"`
}

// Cost is what a run cost the brokers' processes, together.
type Cost struct {
	CPU     float64 `json:"cpu_seconds"`
	System  float64 `json:"system_seconds"` // of CPU, what the kernel used on their behalf
	RSS     int64   `json:"rss_bytes"`      // at the end
	RSSAnon int64   `json:"rss_anon_bytes"` // at the end
}

// MiBPerSecond is the throughput.
func (r *Result) MiBPerSecond() float64 { return per(float64(r.Bytes)/(1<<20), r.Seconds) }

// RequestsPerSecond is the rate of requests.
func (r *Result) RequestsPerSecond() float64 { return per(float64(r.Requests), r.Seconds) }

// RecordsPerSecond is the rate of records.
func (r *Result) RecordsPerSecond() float64 { return per(float64(r.Records), r.Seconds) }

// CPUPerGB is the brokers' processor time for 10^9 bytes, in seconds.
func (r *Result) CPUPerGB() float64 {
	if r.Broker == nil {
		return 0
	}
	return per(r.Broker.CPU, float64(r.Bytes)/1e9)
}

// CPUPerRequest is the brokers' processor time for one request, in microseconds.
func (r *Result) CPUPerRequest() float64 {
	if r.Broker == nil {
		return 0
	}
	return per(r.Broker.CPU*1e6, float64(r.Requests))
}

func per(x, of float64) float64 {
	if of == 0 {
		return 0
	}
	return x / of
}

// The range of latencies that are told apart.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, 3) }

// note takes one latency in. What is out of range counts as the end of it.
func note(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(min(max(int64(d), shortest), longest))
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	return Latency{P50: us(h.ValueAtQuantile(50)), P99: us(h.ValueAtQuantile(99)), P999: us(h.ValueAtQuantile(99.9)), Max: us(h.Max())}
}
