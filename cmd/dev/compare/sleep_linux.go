package compare

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep waits for about so long; it may be less. Go's own timers are up to a millisecond late, which would count as the broker's.
func sleep(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // a signal ends it early
}
