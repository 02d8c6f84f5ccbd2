package explain

import (
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/health"
	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
)

// BrokerFacts are what a broker knows of itself.
type BrokerFacts struct {
	Broker int32 // this one, -1 before it knows its id
	Health health.Facts
	Events []journal.Entry // of this broker
	// Plugins are what plug-ins complained of, the oldest first.
	Plugins []journal.Entry
}

// BrokerState is a broker as an explanation shows it.
type BrokerState struct {
	Ready      bool           `json:"ready"`
	Phase      string         `json:"phase"`
	Since      time.Time      `json:"since"`
	Controller int32          `json:"controller"` // -1: none was heard of
	Led        int            `json:"partitions_led"`
	Checks     []health.Check `json:"checks"`
}

// Broker explains why a broker isn't ready, or what is worth a look though it is.
func Broker(f BrokerFacts) Explanation {
	h := f.Health
	e := begin(journal.OfBroker(f.Broker), f.Broker, h.Now, f.Events)
	checks := health.All(h)
	ready := health.Worst(health.Ready(h)) != health.Fail
	e.State = BrokerState{Ready: ready, Phase: h.Phase, Since: h.Since, Controller: h.Controller, Led: h.Led, Checks: checks}
	trouble := 0
	for _, status := range []health.Status{health.Fail, health.Warn} {
		for _, c := range checks {
			if c.Status == status {
				e.find(c.Name, "%s", c.Reason)
				trouble++
			}
		}
	}
	switch {
	case !ready:
		e.Summary = "not ready: " + e.Findings[0].Text
	case trouble > 0:
		e.Summary = fmt.Sprintf("ready, with %s worth a look", count(trouble, "thing"))
	default:
		e.Summary = fmt.Sprintf("ready, for %s by now", ago(h.Now, h.Since))
	}
	const few = 3
	for i := max(len(f.Plugins)-few, 0); i < len(f.Plugins); i++ {
		p := f.Plugins[i]
		e.find("plugin", "%s ago %s said %s", ago(h.Now, p.At), p.Event.About(), p.Event)
	}
	return e
}
