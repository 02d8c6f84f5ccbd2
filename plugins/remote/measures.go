package remote

import (
	"sync/atomic"
	"time"

	"github.com/barnabas-mq/barnabas/core/plugin"
)

// tally counts the calls of a plug-in, over all its processes.
type tally struct {
	calls, failed atomic.Uint64
	took          atomic.Int64 // nanoseconds, of all calls together
}

// count counts one call.
func (t *tally) count(began time.Time, err error) {
	t.calls.Add(1)
	t.took.Add(int64(time.Since(began)))
	if err != nil {
		t.failed.Add(1)
	}
}

var _ plugin.Measured = (*host)(nil)

// Measures implements plugin.Measured.
func (h *host) Measures() []plugin.Measure {
	s := h.Status()
	up := 0.0
	if s.Fault == nil {
		up = 1
	}
	return []plugin.Measure{
		{Name: "process_up", Help: "Whether the plug-in's process answers.", Value: up},
		{Name: "process_restarts", Help: "How often the plug-in's process was started again.", Counter: true, Value: float64(s.Restarts)},
		{Name: "calls", Help: "Calls of the plug-in in a process of its own.", Counter: true, Value: float64(h.tally.calls.Load())},
		{Name: "calls_failed", Help: "Calls of the plug-in that had no answer, or none that can be used.", Counter: true, Value: float64(h.tally.failed.Load())},
		{Name: "call_duration_seconds", Help: "Time that all calls of the plug-in took together.", Counter: true, Value: time.Duration(h.tally.took.Load()).Seconds()},
	}
}
