package scale

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/bench"
)

// holdings are what a broker's process has at one moment, and what it has used so far.
type holdings struct {
	bench.Usage
	at          time.Time
	descriptors int
	maps        int // of the whole process: libraries and Go's memory, too
	segmentMaps int // of files of logs
	threads     int
	goroutines  int
	heap        int64 // bytes that Go's heap has in use
	majorFaults int64 // pages that had to be read from the disk
	minorFaults int64
}

// holds reads what the broker has. Linux only: elsewhere there is no /proc.
func (n *node) holds(ctx context.Context) (holdings, error) {
	h := holdings{at: time.Now()}
	var err error
	pid := n.Pid()
	if h.Usage, err = bench.Measure(pid); err != nil {
		return h, err
	}
	dir := "/proc/" + strconv.Itoa(pid)
	count := func(name string) int {
		entries, e := os.ReadDir(dir + name)
		if e != nil && err == nil {
			err = e
		}
		return len(entries)
	}
	h.descriptors, h.threads = count("/fd"), count("/task")
	if err != nil {
		return h, err
	}
	maps, err := os.ReadFile(dir + "/maps")
	if err != nil {
		return h, err
	}
	for line := range bytes.Lines(maps) {
		h.maps++
		if bytes.Contains(line, []byte(n.options.Dir)) && bytes.Contains(line, []byte(".log")) {
			h.segmentMaps++
		}
	}
	if h.minorFaults, h.majorFaults, err = faults(dir); err != nil {
		return h, err
	}
	values, err := n.metrics(ctx)
	h.goroutines, h.heap = int(values["go_goroutines"]), int64(values["go_memstats_heap_inuse_bytes"])
	return h, err
}

// faults reads how many page faults a process had.
func faults(dir string) (minor, major int64, err error) {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 10 {
		return 0, 0, fmt.Errorf("%s/stat is not understood", dir)
	}
	if minor, err = strconv.ParseInt(fields[7], 10, 64); err == nil {
		major, err = strconv.ParseInt(fields[9], 10, 64)
	}
	return minor, major, err
}

// metrics reads the broker's metrics without labels.
func (n *node) metrics(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.admin+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", request.URL, response.Status)
	}
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			values[name] = v
		}
	}
	return values, lines.Err()
}

// settled reads what the broker has once it has had a moment.
func (n *node) settled(ctx context.Context) (holdings, error) {
	if err := pause(ctx, 3*time.Second); err != nil {
		return holdings{}, err
	}
	return n.holds(ctx)
}
