//go:build !unix

package zktest

import "syscall"

// Signals that such a system has not: sending them gives an error that says so.
const (
	pauseSignal  = syscall.Signal(19)
	resumeSignal = syscall.Signal(18)
)

func processAttributes() *syscall.SysProcAttr { return nil }
