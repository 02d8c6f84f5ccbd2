//go:build !linux && unix

package remote

import (
	"os"
	"syscall"
)

// attributes puts the process into a group of its own, so that all of it can be ended. That it ends when we are killed is up
// to the end of its standard input.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // ESRCH: all of it has gone
}
