//go:build !linux

package segmentfile

import "os"

func syncData(f *os.File) error { return f.Sync() }
