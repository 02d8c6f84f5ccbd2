package verify

import (
	"slices"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// Report is what a run found.
type Report struct {
	OK      bool          `json:"ok"`      // no fault, or only such as are tolerated
	Topic   string        `json:"topic"`   //
	Started time.Time     `json:"started"` //
	Took    time.Duration `json:"took_ns"` // all of it

	Sent         int64 `json:"sent"`
	Acknowledged int64 `json:"acknowledged"`
	Sessions     int   `json:"sessions"` // of producers: more than there are producers when some had to begin anew
	Committed    int   `json:"transactions_committed"`
	Aborted      int   `json:"transactions_aborted"`
	Unknown      int   `json:"transactions_unknown"`

	// Silence is the longest time in which a partition acknowledged nothing of what was sent to it.
	Silence   time.Duration `json:"longest_silence_ns"`
	SilentOne int32         `json:"longest_silence_partition"`
	SilentAt  time.Duration `json:"longest_silence_from_ns"` // since Started

	Views      []ViewReport         `json:"views"`
	Unread     []string             `json:"unread"`     // what couldn't be read, and so wasn't judged
	Complaints map[string]int       `json:"complaints"` // what clients were refused meanwhile, and how often; no faults
	Counts     map[history.Kind]int `json:"faults"`
	Faults     []history.Fault      `json:"examples"` // at most history.PerKind of each kind
}

// ViewReport sums up what readers of one kind saw.
type ViewReport struct {
	Name       string `json:"name"`
	Partitions int    `json:"partitions"`
	Records    int    `json:"records"` // of the run, without markers
}

// report judges and sums up. The book is closed.
func (r *Run) report(unread []string) *Report {
	h := r.book.history(!r.made)
	judged := history.Check(h)
	rep := &Report{
		OK: judged.OK(r.options.Tolerate...), Topic: r.topic, Started: r.started, Took: time.Since(r.started).Round(time.Millisecond),
		Sessions: int(r.book.producers), Unread: unread, Complaints: r.book.complaints, Counts: judged.Counts, Faults: judged.Faults,
	}
	rep.Sent, rep.Acknowledged = r.book.counts()
	rep.Silence, rep.SilentOne, rep.SilentAt = r.book.silence()
	rep.SilentAt += r.book.start.Sub(r.started)
	for _, t := range h.Transactions {
		switch t.Outcome {
		case history.WasCommitted:
			rep.Committed++
		case history.WasAborted:
			rep.Aborted++
		default:
			rep.Unknown++
		}
	}
	for _, p := range h.Partitions {
		for _, v := range p.Views {
			i := slices.IndexFunc(rep.Views, func(old ViewReport) bool { return old.Name == v.Name })
			if i < 0 {
				i = len(rep.Views)
				rep.Views = append(rep.Views, ViewReport{Name: v.Name})
			}
			rep.Views[i].Partitions++
			for _, s := range v.Seen {
				if s.What == history.Record {
					rep.Views[i].Records++
				}
			}
		}
	}
	return rep
}
