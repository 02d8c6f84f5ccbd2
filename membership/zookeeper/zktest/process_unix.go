//go:build unix

package zktest

import "syscall"

const (
	pauseSignal  = syscall.SIGSTOP
	resumeSignal = syscall.SIGCONT
)

// processAttributes put a server into a process group of its own: a Ctrl-C at the terminal is for the program that started it.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
