package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of processor times in /proc: USER_HZ, which Linux fixes at 100 for programs.
const tick = time.Second / 100

// Measure reads what a process has used, from /proc.
func Measure(pid int) (Usage, error) {
	var u Usage
	dir := "/proc/" + strconv.Itoa(pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return u, fmt.Errorf("measure process %d: %w", pid, err)
	}
	// The name of the program stands in parentheses and may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return u, fmt.Errorf("measure process %d: %s/stat is not understood", pid, dir)
	}
	for _, f := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return u, fmt.Errorf("measure process %d: %w", pid, err)
		}
		u.System = time.Duration(n) * tick // the second stays
		u.CPU += u.System
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return u, fmt.Errorf("measure process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			u.RSS = n << 10
		case "RssAnon":
			u.RSSAnon = n << 10
		}
	}
	return u, nil
}
