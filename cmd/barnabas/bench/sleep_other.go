//go:build !linux

package bench

import "time"

// coarse is nothing: these systems' timers are exact, in Go too.
const coarse = 0

func sleepExactly(d time.Duration) { time.Sleep(d) }
