package bench

import "time"

// Usage is what a process has used so far, and holds now.
type Usage struct {
	CPU     time.Duration // user and system
	System  time.Duration // of CPU, what the kernel used on its behalf
	RSS     int64         // bytes of memory, page cache that it has mapped included
	RSSAnon int64         // bytes of memory of its own
}
