package remote

import (
	"os"
	"syscall"
)

// attributes puts the process into a group of its own, so that all of it can be ended, and has the kernel kill it when we
// are gone, whatever the reason.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // ESRCH: all of it has gone
}
