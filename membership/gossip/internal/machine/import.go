package machine

import "github.com/barnabas-mq/barnabas/core/election/state"

// Of makes a cluster that keeps a state, in which nobody is alive.
func Of(kept *state.State) *Machine {
	m := New()
	m.kept = kept
	return m
}
