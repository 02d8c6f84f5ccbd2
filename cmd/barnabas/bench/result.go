package bench

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what one run came to. Sizes are bytes, GB is 10^9 bytes of record values.
type Result struct {
	Name        string  `json:"name"`
	Connections int     `json:"connections"`
	InFlight    int     `json:"in_flight,omitempty"`
	Rate        float64 `json:"rate,omitempty"` // records a second that were wanted, 0 for as many as go
	// What was answered, or end to end has arrived, in the time that was measured. Through a client, a request is a batch.
	Requests int64 `json:"requests"`
	Records  int64 `json:"records"`
	Bytes    int64 `json:"bytes"` // of record values; for fetches of whole batches
	// WireBytes are those of the producers' frames, or of the batches fetched, compressed or not.
	WireBytes int64   `json:"wire_bytes"`
	Seconds   float64 `json:"seconds"`
	// Unsent is how many records were due in that time and couldn't be sent in it. Latency has them, with what they waited.
	Unsent int64 `json:"unsent,omitempty"`
	// Latency is from the writing of a request to the end of its response; with a rate from when it was due. End to end it is
	// of each record, from when its batch was written, with a rate from when it was due, to the end of the response to Fetch
	// that had it.
	Latency Latency `json:"latency"`
	// Ack is the latency of the producers' requests, where Latency is end to end, else nil.
	Ack *Latency `json:"ack_latency,omitempty"`
	// Late is by how much requests were sent later than they were due, nil without a rate: what the window of requests in
	// flight, or a generator that doesn't get the processor, adds to Latency.
	Late *Latency `json:"late,omitempty"`
	// Broker is that of all brokers whose processes were given, nil when none was.
	Broker *Cost `json:"broker,omitempty"`
	// ClientCPU is the processor time of this process in seconds, 0 where the system doesn't tell.
	ClientCPU float64 `json:"client_cpu_seconds"`
	// Timeline has the same figures second by second, or in as many parts as there is room for.
	Timeline []Sample `json:"timeline,omitempty"`
	// Distribution is the whole of Latency.
	Distribution []Quantile `json:"distribution,omitempty"`
}

// Latency has percentiles in microseconds.
type Latency struct {
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P90   float64 `json:"p90_us"`
	P99   float64 `json:"p99_us"`
	P999  float64 `json:"p99_9_us"`
	P9999 float64 `json:"p99_99_us"`
	Max   float64 `json:"max_us"`
}

// Sample is one part of a run.
type Sample struct {
	Second  float64 `json:"second"`  // its end, from the beginning of what was measured
	Seconds float64 `json:"seconds"` // how long it is
	Records int64   `json:"records"`
	Bytes   int64   `json:"bytes"`
	Latency Latency `json:"latency"`
}

// Quantile is a point of a distribution: so many percent of the delays are at most so long.
type Quantile struct {
	Percent float64 `json:"percent"`
	Micros  float64 `json:"us"`
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

// ClientCPUPerGB is the generator's own processor time for 10^9 bytes, in seconds.
func (r *Result) ClientCPUPerGB() float64 { return per(r.ClientCPU, float64(r.Bytes)/1e9) }

// ClientCPUPerRequest is the generator's own processor time for one request, in microseconds.
func (r *Result) ClientCPUPerRequest() float64 { return per(r.ClientCPU*1e6, float64(r.Requests)) }

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

func latencyOf(h *hdrhistogram.Histogram) Latency {
	if h.TotalCount() == 0 {
		return Latency{}
	}
	at := func(quantile float64) float64 { return micros(h.ValueAtQuantile(quantile)) }
	return Latency{Mean: h.Mean() / 1e3, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), P9999: at(99.99), Max: micros(h.Max())}
}

func micros(ns int64) float64 { return float64(ns) / 1e3 }

// distributionOf has more points the further they are out, as far as there are delays to tell them apart.
func distributionOf(h *hdrhistogram.Histogram) []Quantile {
	var all []Quantile
	for rest, n := 100.0, 0; n < 60; n++ { // a quarter of what is left each time: to 99.999 % and beyond
		all = append(all, Quantile{Percent: 100 - rest, Micros: micros(h.ValueAtQuantile(100 - rest))})
		if rest*float64(h.TotalCount()) < 100 {
			break
		}
		rest *= 0.75
	}
	return all
}

// maxSamples is the most that a timeline has.
const maxSamples = 600

// timeline takes samples of a run.
type timeline struct {
	meter   *meter
	every   time.Duration
	last    time.Duration
	before  counts
	samples []Sample
}

// sample takes one when it is time for it, or when it is the last.
func (t *timeline) sample(elapsed time.Duration, last bool) {
	// Progress comes every quarter of a second: what is nearly due is due.
	if !last && elapsed-t.last < t.every-time.Second/8 || last && elapsed == t.last {
		return
	}
	now, delays := t.meter.counts(), t.meter.latency.collect()
	t.samples = append(t.samples, Sample{Second: elapsed.Seconds(), Seconds: (elapsed - t.last).Seconds(),
		Records: now.records - t.before.records, Bytes: now.bytes - t.before.bytes, Latency: delays})
	t.last, t.before = elapsed, now
}

// report fills in what the meter has, once all workers have ended.
func (m *meter) report(r *Result) {
	m.latency.collect() // what came in after the last sample
	c := m.counts()
	r.Requests, r.Records, r.Bytes, r.WireBytes, r.Unsent = c.requests, c.records, c.bytes, c.wire, c.unsent
	r.Latency, r.Distribution = latencyOf(m.latency.total), distributionOf(m.latency.total)
	for _, other := range []struct {
		of   *recorder
		into **Latency
	}{{m.acks, &r.Ack}, {m.late, &r.Late}} {
		if other.of != nil {
			l := other.of.collect()
			*other.into = &l
		}
	}
}
