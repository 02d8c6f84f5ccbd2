//go:build unix && !freebsd

package storagetest

func rlim(n uint64) uint64 { return n }
