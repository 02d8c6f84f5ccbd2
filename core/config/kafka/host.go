package kafka

import (
	"context"
	"net"
	"os"
	"time"
)

// RoutableHost gives a name or address of this machine for clients to connect to when none was configured: the host
// name if it can be looked up, else the first address that isn't a loopback, else 127.0.0.1. It waits two seconds at
// most, and no longer than ctx.
func RoutableHost(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if name, err := os.Hostname(); err == nil && name != "" {
		if addresses, err := net.DefaultResolver.LookupHost(ctx, name); err == nil && len(addresses) > 0 {
			return name
		}
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return "127.0.0.1"
}
