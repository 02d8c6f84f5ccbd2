package storagetest

func rlim(n uint64) int64 { return int64(n) }
