package plugin

// Measured is implemented by components that have something to watch beside what their role says: how often a process was started
// again, which term a vote was for. The broker shows it among its metrics, with the role and the name of the implementation.
type Measured interface {
	// Measures says how things are now. It is called from any goroutine, when metrics are asked for, and must be quick: it
	// waits for nobody outside of this process. What is there once stays there; counters never fall.
	Measures() []Measure
}

// Measure is one number.
type Measure struct {
	// Name is in lower case with underscores, and ends in its unit: restarts, raft_term, call_duration_seconds. Counters get
	// _total behind it where they are shown.
	Name string
	Help string // a sentence
	// Counter says that the number only rises.
	Counter bool
	// Label tells measures of one name apart, empty where there is one only; there are a few values of it at most.
	Label string
	Value float64
}
