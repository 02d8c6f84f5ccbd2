package storagemmap

import (
	"os"
	"strconv"
	"strings"
)

// systemMaps is the file that says how many maps the system allows a process.
const systemMaps = "/proc/sys/vm/max_map_count"

// mapLimit is how many maps there may be: as many as are wanted, but at most half of what the file allows the process, which needs
// maps for its own memory, too. A file that can't be read allows all.
func mapLimit(wanted int64, file string) int64 {
	b, err := os.ReadFile(file)
	if err != nil {
		return wanted
	}
	allowed, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || allowed < 0 {
		return wanted
	}
	return min(wanted, allowed/2)
}
