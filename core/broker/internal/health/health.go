package health

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Status is the outcome of a check.
type Status string

// The outcomes, from good to bad.
const (
	Pass Status = "pass"
	Warn Status = "warn" // worth a look; nothing is refused because of it
	Fail Status = "fail"
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"` // empty when it passes
}

// Facts are what is known of a broker at one moment.
type Facts struct {
	Now     time.Time
	Failure error // why the broker can't go on, nil while it can
	// Phase is what a start is at, or "serving", or "stopping"; Since when.
	Phase   string
	Since   time.Time
	Serving bool // clients are answered

	Registered bool      // in the cluster, under an epoch that holds
	LostAt     time.Time // when an earlier registration was lost; zero when none was, or the broker is registered again

	Controller int32 // the controller's broker id, -1 when none was heard of
	Dirs       []Dir
	Loading    []int32 // shards of consumer groups that are being read

	// Partitions as this broker knows them.
	Led             int // by this broker
	UnderReplicated int // of those led here
	UnderMinISR     int // of those led here: acks=all is refused
	Leaderless      int // in the cluster: nobody serves them
	Unserved        int // replicas here whose log directory failed
}

// Dir is a log directory.
type Dir struct {
	Path string
	Err  error // why it failed, or nil
}

// Live answers whether the process is of use: its check fails only when a restart is needed.
func Live(f Facts) []Check {
	return []Check{process(f)}
}

func process(f Facts) Check {
	if f.Failure != nil {
		return Check{"process", Fail, "the broker can't go on: " + f.Failure.Error()}
	}
	return Check{"process", Pass, ""}
}

// Ready answers whether the broker serves clients.
func Ready(f Facts) []Check {
	return []Check{process(f), started(f), registration(f), directories(f)}
}

// All answers with everything that is worth a look.
func All(f Facts) []Check {
	return append(Ready(f), controller(f), coordinator(f), partitions(f))
}

// Worst is the worst outcome of checks.
func Worst(checks []Check) Status {
	worst := Pass
	for _, c := range checks {
		switch {
		case c.Status == Fail:
			return Fail
		case c.Status == Warn:
			worst = Warn
		}
	}
	return worst
}

func started(f Facts) Check {
	if f.Serving && f.Phase == "serving" {
		return Check{"started", Pass, ""}
	}
	return Check{"started", Fail, fmt.Sprintf("%s, for %s by now", f.Phase, ago(f.Now, f.Since))}
}

func registration(f Facts) Check {
	switch {
	case f.Registered:
		return Check{"registration", Pass, ""}
	case !f.LostAt.IsZero():
		return Check{"registration", Fail, fmt.Sprintf("the coordination lost sight of this broker %s ago, and it hasn't been able to register again: others lead its partitions meanwhile", ago(f.Now, f.LostAt))}
	}
	return Check{"registration", Fail, "not registered in the cluster yet"}
}

func directories(f Facts) Check {
	var failed []string
	for _, d := range f.Dirs {
		if d.Err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", d.Path, d.Err))
		}
	}
	switch {
	case len(failed) == 0:
		return Check{"log-dirs", Pass, ""}
	case len(failed) == len(f.Dirs):
		return Check{"log-dirs", Fail, "all log directories failed: " + strings.Join(failed, "; ")}
	}
	return Check{"log-dirs", Warn, fmt.Sprintf("%d of %d log directories failed (%s): what lies there isn't served; mend the disk and restart this broker",
		len(failed), len(f.Dirs), strings.Join(failed, "; "))}
}

func controller(f Facts) Check {
	if f.Controller >= 0 {
		return Check{"controller", Pass, ""}
	}
	return Check{"controller", Warn, "no controller is known: topics and leaders can't change until one is elected"}
}

func coordinator(f Facts) Check {
	if len(f.Loading) == 0 {
		return Check{"group-coordinator", Pass, ""}
	}
	const few = 5
	numbers := make([]string, 0, few)
	for _, n := range slices.Sorted(slices.Values(f.Loading)) {
		if len(numbers) == few {
			numbers = append(numbers, "…")
			break
		}
		numbers = append(numbers, fmt.Sprint(n))
	}
	return Check{"group-coordinator", Warn, fmt.Sprintf("%s of consumer groups being read (%s): clients of those groups are told to try again",
		count(len(f.Loading), "shard"), strings.Join(numbers, ", "))}
}

func partitions(f Facts) Check {
	var what []string
	if f.Unserved > 0 {
		what = append(what, count(f.Unserved, "replica")+" here not served, because their log directory failed")
	}
	if f.Leaderless > 0 {
		what = append(what, count(f.Leaderless, "partition")+" of the cluster without a leader")
	}
	if f.UnderMinISR > 0 {
		what = append(what, count(f.UnderMinISR, "partition")+" led here with fewer replicas in sync than min.insync.replicas (acks=all is refused)")
	}
	if f.UnderReplicated > 0 {
		what = append(what, fmt.Sprintf("%d of %s led here under-replicated", f.UnderReplicated, count(f.Led, "partition")))
	}
	if len(what) == 0 {
		return Check{"partitions", Pass, ""}
	}
	return Check{"partitions", Warn, strings.Join(what, "; ")}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// ago is the time since then, in a precision that people want.
func ago(now, then time.Time) time.Duration {
	d := max(now.Sub(then), 0)
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Second)
}
