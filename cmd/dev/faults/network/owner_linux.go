package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Processes makes an Owner of processes by name. names is asked for the living ones at each connection.
func Processes(names func() map[int]string) Owner {
	return func(local, remote netip.AddrPort) string {
		socket := socketOf(local, remote)
		if socket == "" {
			return ""
		}
		for pid, name := range names() {
			files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
			for _, f := range files {
				if to, err := os.Readlink(f); err == nil && to == socket {
					return name
				}
			}
		}
		return ""
	}
}

// socketOf finds a connection's end in the system's table. It returns what /proc calls the socket, "" when there is none.
func socketOf(local, remote netip.AddrPort) string {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 9 && f[1] == tableAddr(local) && f[2] == tableAddr(remote) {
			return "socket:[" + f[9] + "]"
		}
	}
	return ""
}

// tableAddr writes an IPv4 address as the table does: hexadecimal, in the order of this machine.
func tableAddr(a netip.AddrPort) string {
	b := a.Addr().As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), a.Port())
}
