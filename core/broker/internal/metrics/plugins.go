package metrics

import (
	"math"

	"github.com/barnabas-mq/barnabas/core/plugin"
)

// infinite is where there is no limit.
var infinite = math.Inf(1)

// pluginFamilies are about the implementations that the broker is made of, and what they tell of themselves.
type pluginFamilies struct {
	info, misplaced family
}

func newPluginFamilies() pluginFamilies {
	return pluginFamilies{
		info: gauge("barnabas_plugin_info", "The implementations that the broker is made of; always 1.", "role", "plugin"),
		misplaced: counter("barnabas_misplaced_records_total", "Records with a key that clients put into another partition than the topic's partitioner would, by what became of them; "+
			"unchecked are those of which the partitioner didn't say.", "topic", "software", "version", "outcome"),
	}
}

func (f *pluginFamilies) show(o out, v *view) {
	for _, p := range v.Plugins {
		o.put(f.info, 1, p.Role, p.Name)
		if p.Measured == nil {
			continue
		}
		for _, m := range p.Measured.Measures() {
			o.put(measured(p.Role, m), m.Value, p.Role, p.Name, m.Label)
		}
	}
	for _, c := range v.Placement.Counts() {
		for outcome, n := range map[string]int64{"appended": c.Appended, "refused": c.Refused, "unchecked": c.Unchecked} {
			o.put(f.misplaced, float64(n), c.Topic, label(c.Software), label(c.Version), outcome)
		}
	}
}

// measured is the family of what an implementation tells. Measures of processes and of coordinations differ by nature, so each role
// has families of its own.
func measured(role string, m plugin.Measure) family {
	name := "barnabas_" + role + "_" + m.Name
	labels := []string{"role", "plugin", "kind"}
	if m.Counter {
		return counter(name+"_total", m.Help, labels...)
	}
	return gauge(name, m.Help, labels...)
}
