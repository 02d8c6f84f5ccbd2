//go:build !unix

package storagetest

import "time"

// cpuTime isn't known here.
func cpuTime() time.Duration { return 0 }
