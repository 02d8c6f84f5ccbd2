package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// coarse is by how much Go's own timers may be late: those of Linux's epoll have milliseconds.
const coarse = 2 * time.Millisecond

// sleepExactly waits for about so long, and blocks a thread for it. A timer that is a millisecond late would count as the
// broker's delay.
func sleepExactly(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&t, nil) // that a signal ends it early doesn't matter: the caller looks at the clock
}
