package interop

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJudgePlacing plants faults into what two clients were told, and into what the broker counted.
func TestJudgePlacing(t *testing.T) {
	placers := []placer{{name: "a", software: "lib-a", partitioner: "p"}, {name: "b", software: "lib-b", partitioner: "q"}}
	// Both put x into 1; y is a's in 1 and b's in 2.
	at := func(y string, elsewhere string) map[string]map[string]placed {
		all := map[string]map[string]placed{}
		for _, topic := range []string{"p-count", "q-count", "p-reject", "q-reject"} {
			all[topic] = map[string]placed{"x": {"1", true}, "y": {y, topic != elsewhere}}
		}
		return all
	}
	for name, tt := range map[string]struct {
		plant func(told map[string]map[string]map[string]placed, counted map[source]outcome)
		fault string
	}{
		"none": {func(map[string]map[string]map[string]placed, map[source]outcome) {}, ""},
		"kept elsewhere": {func(told map[string]map[string]map[string]placed, _ map[source]outcome) {
			told["b"]["p-reject"]["y"] = placed{"2", true}
		}, "y of partition 2, which belongs into 1: kept is true"},
		"refused at home": {func(told map[string]map[string]map[string]placed, _ map[source]outcome) {
			told["a"]["p-reject"]["x"] = placed{"1", false}
		},
			"x of partition 1, which belongs into 1: kept is false"},
		"refused where it counts": {func(told map[string]map[string]map[string]placed, _ map[source]outcome) {
			told["b"]["q-count"]["x"] = placed{"1", false}
		}, "x was refused"},
		"one too many": {func(_ map[string]map[string]map[string]placed, counted map[source]outcome) {
			counted[source{"p-count", "lib-b"}] = outcome{appended: 2}
		},
			"counted {appended:2 refused:0 unchecked:0}: want {appended:1 refused:0 unchecked:0}"},
		"another client's": {func(_ map[string]map[string]map[string]placed, counted map[source]outcome) {
			counted[source{"q-reject", "lib-c"}] = counted[source{"q-reject", "lib-a"}]
			delete(counted, source{"q-reject", "lib-a"})
		}, "want {appended:0 refused:1 unchecked:0}"},
		"nothing checked": {func(told map[string]map[string]map[string]placed, counted map[source]outcome) {
			told["b"] = at("1", "")
			clear(counted)
		}, "0 of 2 keys are elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			told := map[string]map[string]map[string]placed{"a": at("1", "q-reject"), "b": at("2", "p-reject")}
			counted := elsewhere(`time=1 level=WARN msg="records were produced to other partitions than the topic's partitioner chooses" broker=1 topic=p-count client=lib-b version=1 appended=1 refused=0 unchecked=0
time=1 level=WARN msg="records were produced to other partitions than the topic's partitioner chooses" broker=1 topic=p-reject client=lib-b version=1 appended=0 refused=1 unchecked=0
time=1 level=WARN msg="records were produced to other partitions than the topic's partitioner chooses" broker=1 topic=q-count client=lib-a version=1 appended=1 refused=0 unchecked=0
time=1 level=WARN msg="records were produced to other partitions than the topic's partitioner chooses" broker=1 topic=q-reject client=lib-a version=1 appended=0 refused=1 unchecked=0
`)
			tt.plant(told, counted)
			details, failed := "", 0
			for _, r := range judgePlacing(placers, told, counted) {
				details += r.Detail
				if !r.OK {
					failed++
				}
			}
			require.Equal(t, tt.fault != "", failed > 0, details)
			require.Contains(t, details, tt.fault)
		})
	}
}
