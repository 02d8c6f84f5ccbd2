// Package limits measures what the machine itself costs: writing to a file through the page cache, sending a file to a
// socket, sending and receiving memory, answering one small request at a time. No broker can do the same work for less, so these are the bounds that a broker's
// figures are read against.
//
// Each measurement is one thread that does system calls and nothing else, with a second thread at the other end of a loopback
// connection. The processor time is that of the one thread. Brokers, and what they are good for, are not this package's business.
package limits

import (
	"fmt"
	"time"
)

// Sizes of the work. A source as large as this is new to the processor's first two caches each time around, as data from
// a socket is.
const (
	sourceBytes = 8 << 20
	fileBytes   = 1 << 30   // what is sent from, in the page cache
	sinkBuffer  = 256 << 10 // of whoever receives
)

// Cost is what so many bytes took, or so many answers.
type Cost struct {
	Bytes   int64
	Answers int64
	Elapsed time.Duration
	CPU     time.Duration // of the thread that is measured
}

// MiBPerSecond is the throughput.
func (c Cost) MiBPerSecond() float64 {
	if c.Elapsed <= 0 {
		return 0
	}
	return float64(c.Bytes) / (1 << 20) / c.Elapsed.Seconds()
}

// CPUPerGB is the thread's processor time for 10^9 bytes, in seconds.
func (c Cost) CPUPerGB() float64 {
	if c.Bytes <= 0 {
		return 0
	}
	return c.CPU.Seconds() * 1e9 / float64(c.Bytes)
}

// AnswersPerSecond is how many requests were answered, one after the other.
func (c Cost) AnswersPerSecond() float64 {
	if c.Elapsed <= 0 {
		return 0
	}
	return float64(c.Answers) / c.Elapsed.Seconds()
}

// CPUPerAnswer is the thread's processor time for one answer, in microseconds.
func (c Cost) CPUPerAnswer() float64 {
	if c.Answers <= 0 {
		return 0
	}
	return c.CPU.Seconds() * 1e6 / float64(c.Answers)
}

func (c Cost) String() string {
	return fmt.Sprintf("%.0f MiB/s, %.3f CPU-s/GB", c.MiBPerSecond(), c.CPUPerGB())
}
