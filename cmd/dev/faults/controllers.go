package faults

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// elected is what a broker says of itself when it has become controller.
var elected = regexp.MustCompile(`elected controller.*\bbroker=(\d+)\b.*\bepoch=(\d+)\b`)

// oneController holds what brokers have printed against the promise that an epoch has one controller: nobody may have been
// elected under an epoch that another one had, or that the same one had before. It returns how many elections there were.
func oneController(logs ...string) (elections int, err error) {
	type election struct{ log, line string }
	var faults []error
	of := map[int64]election{}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			return elections, err
		}
		for line := range strings.Lines(string(text)) {
			found := elected.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			elections++
			epoch, err := strconv.ParseInt(found[2], 10, 64)
			if err != nil {
				return elections, err
			}
			if first, ok := of[epoch]; ok {
				faults = append(faults, fmt.Errorf("epoch %d has two controllers: %s: %s and %s: %s", epoch, first.log, first.line, path, strings.TrimSpace(line)))
				continue
			}
			of[epoch] = election{path, strings.TrimSpace(line)}
		}
	}
	if elections == 0 {
		faults = append(faults, errors.New("no broker says that it was elected controller"))
	}
	return elections, errors.Join(faults...)
}

// controllers holds a cluster's brokers, all lives of each, against that promise.
func (c *Cluster) controllers() error {
	var logs []string
	for _, b := range c.brokers() {
		if b.kafka == nil {
			logs = append(logs, b.log())
		}
	}
	if len(logs) == 0 {
		return nil // Apache Kafka's don't say it like this
	}
	slices.Sort(logs)
	_, err := oneController(logs...)
	return err
}
