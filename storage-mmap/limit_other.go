//go:build unix && !linux

package storagemmap

const systemMaps = ""

// mapLimit is how many maps there may be: as many as are wanted. Systems other than Linux don't count them.
func mapLimit(wanted int64, _ string) int64 { return wanted }
