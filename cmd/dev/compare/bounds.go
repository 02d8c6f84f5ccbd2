package compare

import (
	"context"

	"github.com/barnabas-mq/barnabas/cmd/dev/limits"
)

// The limits of the machine, by the name that reports give them.
const (
	appendSmall = "append to a file, CRC-32C and write(2) of 64 KiB"
	appendLarge = "append to a file, CRC-32C and write(2) of 1 MiB"
	rawSendfile = "raw sendfile" // in calls of 64 KiB
	rawSend     = "send of one buffer of 1 MiB"
	rawReceive  = "receive into one buffer of 256 KiB"
	rawAnswer   = "read(2) a request of 1 KB and write(2) an answer, one at a time"
)

// How much is written and sent to measure a limit once.
const (
	boundAppended = 1 << 30
	boundSent     = 2 << 30
	boundAnswered = 50_000
)

// A Produce request of one record of 1,000 bytes is about as long, and so is its answer.
const (
	requestBytes = 1100
	answerBytes  = 70
)

// bounds are the limits of the machine as they were measured, once a round of each load that they bound.
type bounds map[string][]limits.Cost

// measure measures the limits of these names, and returns their costs.
func (b bounds) measure(ctx context.Context, dir string, names []string) (map[string]limits.Cost, error) {
	now := map[string]limits.Cost{}
	for _, name := range names {
		if _, done := now[name]; done {
			continue
		}
		var err error
		switch name {
		case appendSmall:
			now[name], err = limits.Append(ctx, dir, 64<<10, boundAppended)
		case appendLarge:
			now[name], err = limits.Append(ctx, dir, 1<<20, boundAppended)
		case rawSendfile:
			now[name], err = limits.Sendfile(ctx, dir, 64<<10, boundSent)
		case rawSend, rawReceive:
			now[rawSend], now[rawReceive], err = limits.Send(ctx, 1<<20, boundSent)
		case rawAnswer:
			now[name], err = limits.Answer(ctx, requestBytes, answerBytes, boundAnswered)
		}
		if err != nil {
			return nil, err
		}
	}
	for name, cost := range now {
		b[name] = append(b[name], cost)
	}
	return now, nil
}

// report lists the limits that were measured.
func (b bounds) report() []Limit {
	var all []Limit
	for _, name := range []string{appendSmall, appendLarge, rawReceive, rawSend, rawSendfile} {
		l := Limit{Name: name, SpeedUnit: "MiB/s", CostUnit: "CPU-s/GB"}
		for _, c := range b[name] {
			l.Speed, l.Cost = append(l.Speed, c.MiBPerSecond()), append(l.Cost, c.CPUPerGB())
		}
		if len(l.Cost) > 0 {
			all = append(all, l)
		}
	}
	l := Limit{Name: rawAnswer, SpeedUnit: "requests/s", CostUnit: "CPU µs/request"}
	for _, c := range b[rawAnswer] {
		l.Speed, l.Cost = append(l.Speed, c.AnswersPerSecond()), append(l.Cost, c.CPUPerAnswer())
	}
	if len(l.Cost) > 0 {
		all = append(all, l)
	}
	return all
}

// What no broker can do for less, of the limits that a round measured. Whoever produces is received from, summed and
// appended; whoever consumes is sent to, in the cheapest of ways.

func receivedAndAppended(chunk string) func(map[string]limits.Cost) float64 {
	return func(now map[string]limits.Cost) float64 { return now[chunk].CPUPerGB() + now[rawReceive].CPUPerGB() }
}

func sent(now map[string]limits.Cost) float64 {
	return min(now[rawSendfile].CPUPerGB(), now[rawSend].CPUPerGB())
}

func answered(now map[string]limits.Cost) float64 { return now[rawAnswer].CPUPerAnswer() }

func answersPerSecond(now map[string]limits.Cost) float64 { return now[rawAnswer].AnswersPerSecond() }

func sendfileSpeed(now map[string]limits.Cost) float64 { return now[rawSendfile].MiBPerSecond() }
