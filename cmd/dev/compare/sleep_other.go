//go:build !linux

package compare

import "time"

// sleep waits for about so long; it may be more.
func sleep(d time.Duration) { time.Sleep(d) }
