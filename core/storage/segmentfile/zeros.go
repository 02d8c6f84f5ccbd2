package segmentfile

import "os"

// writeZeros allocates the hard way, where the file system has no call for it.
func writeZeros(f *os.File, pos, n int64) error {
	zeros := make([]byte, min(n, 256<<10))
	for n > 0 {
		part := zeros[:min(n, int64(len(zeros)))]
		if _, err := f.WriteAt(part, pos); err != nil {
			return err
		}
		pos += int64(len(part))
		n -= int64(len(part))
	}
	return nil
}
