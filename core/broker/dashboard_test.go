package broker_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/brokertest"
	"github.com/barnabas-mq/barnabas/plugins/sdk/testbroker"
)

// selector is what a query takes from the metrics.
type selector struct {
	name     string
	matchers []matcher
}

// matcher is a condition on a label.
type matcher struct{ label, op, value string }

// query is what a query of a dashboard is made of, as far as it says which metrics and labels there must be.
type query struct {
	selectors []selector
	by        []string // the labels that results are told apart by
}

// tokens are a query's words: numbers and ranges, texts, names, operators.
var tokens = regexp.MustCompile(`\s+|\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[a-zA-Z_:][a-zA-Z0-9_:]*|[0-9.]+|=~|!~|!=|==|>=|<=|[-+*/(){},=<>]`)

// parseQuery reads the part of PromQL that dashboards are written in. What it doesn't know is an error, so that nothing goes unchecked.
func parseQuery(text string) (q query, err error) {
	var words []string
	at := 0
	for _, place := range tokens.FindAllStringIndex(text, -1) {
		if place[0] != at {
			return q, fmt.Errorf("don't understand %q", text[at:])
		}
		at = place[1]
		if word := text[place[0]:place[1]]; strings.TrimSpace(word) != "" {
			words = append(words, word)
		}
	}
	if at != len(text) {
		return q, fmt.Errorf("don't understand %q", text[at:])
	}
	next := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	name := regexp.MustCompile(`^[a-zA-Z_:]`)
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case !name.MatchString(word):
		case word == "by":
			if next(i+1) != "(" {
				return q, fmt.Errorf("by without labels in %q", text)
			}
			for i += 2; next(i) != ")"; i++ {
				if words[i] != "," {
					q.by = append(q.by, words[i])
				}
				if i+1 >= len(words) {
					return q, fmt.Errorf("no end of labels in %q", text)
				}
			}
		case word == "or", next(i+1) == "(", next(i+1) == "by":
			// an operator or a function
		default:
			s := selector{name: word}
			if next(i+1) == "{" {
				for i += 2; next(i) != "}"; i++ {
					if next(i) == "," {
						continue
					}
					if i+2 >= len(words) {
						return q, fmt.Errorf("no end of conditions in %q", text)
					}
					s.matchers = append(s.matchers, matcher{words[i], words[i+1], strings.Trim(words[i+2], `"`)})
					i += 2
				}
			}
			q.selectors = append(q.selectors, s)
		}
	}
	if len(q.selectors) == 0 {
		return q, fmt.Errorf("%q asks for nothing", text)
	}
	return q, nil
}

// finds says whether a broker's metrics have what a selector asks for, with all of the labels.
func (s scrape) finds(want selector, by []string) error {
	name, parts := want.name, []string{}
	if _, ok := s.families[name]; !ok { // the parts of a histogram
		for _, part := range []string{"_bucket", "_count", "_sum"} {
			if cut, ok := strings.CutSuffix(name, part); ok && s.families[cut].GetType().String() == "HISTOGRAM" {
				if name = cut; part == "_bucket" {
					parts = append(parts, "le")
				}
			}
		}
	}
	family, ok := s.families[name]
	if !ok {
		return fmt.Errorf("there is no %s", want.name)
	}
	for _, m := range family.GetMetric() {
		labels := map[string]string{"instance": "here:9644"} // which Prometheus adds
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		fits := true
		for _, w := range want.matchers {
			value := strings.NewReplacer("$instance", ".*", "$topic", ".*", "$group", ".*").Replace(w.value)
			is, err := regexp.MatchString("^(?:"+value+")$", labels[w.label])
			if err != nil {
				return err
			}
			if w.op == "=" {
				is = labels[w.label] == value
			}
			fits = fits && is && labels[w.label] != ""
		}
		for _, label := range by {
			_, there := labels[label]
			fits = fits && (there || slices.Contains(parts, label))
		}
		if fits {
			return nil
		}
	}
	return fmt.Errorf("no %s has %v by %v", want.name, want.matchers, by)
}

// TestDashboardsShowData: each query of each panel, and each list to choose from, finds data in a broker that is at work.
func TestDashboardsShowData(t *testing.T) {
	b := testbroker.Start(t, brokertest.Admin())
	admin := kadm.NewClient(client(t, b.Addr()))
	_, err := admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.NoError(t, err)
	_, err = admin.CreateTopic(t.Context(), 1, 1, nil, "t")
	require.Error(t, err) // so that there is one
	produce(t, b, "t", 3, time.Now())
	consumer := client(t, b.Addr(), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("t"), kgo.DisableAutoCommit())
	require.NotZero(t, consumer.PollFetches(t.Context()).NumRecords())
	require.NoError(t, consumer.CommitUncommittedOffsets(t.Context()))
	once(t, b, "Produce", 1)
	s := once(t, b, "Fetch", 1)

	text, err := os.ReadFile("../../configs/grafana/barnabas.json")
	require.NoError(t, err)
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	queries := 0
	for _, p := range dashboard.Panels {
		assert.True(t, p.Type == "row" || len(p.Targets) > 0, "%s has no query", p.Title)
		for _, target := range p.Targets {
			queries++
			q, err := parseQuery(strings.ReplaceAll(target.Expr, "[$__rate_interval]", "[5m]"))
			require.NoError(t, err, p.Title)
			for _, want := range q.selectors {
				assert.NoError(t, s.finds(want, q.by), "%s: %s", p.Title, target.Expr)
			}
		}
	}
	assert.Greater(t, queries, 25)
	lists := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	for _, v := range dashboard.Templating.List {
		if v.Type == "query" {
			parts := lists.FindStringSubmatch(v.Definition)
			require.Len(t, parts, 3, v.Definition)
			assert.NoError(t, s.finds(selector{name: parts[1]}, parts[2:]), v.Name)
		}
	}
	// Queries that find nothing are noticed.
	for _, expr := range []string{`rate(barnabas_records_total[5m])`, `sum by (partition) (barnabas_topic_replicas)`, `barnabas_topic_replicas{topic="none"}`,
		`barnabas_topic_replicas{topik=~".*"}`, `sum by (le) (rate(barnabas_topic_replicas_bucket[5m]))`} {
		q, err := parseQuery(expr)
		require.NoError(t, err)
		assert.Error(t, s.finds(q.selectors[0], q.by), expr)
	}
	for _, expr := range []string{`1 + 1`, `sum by x`, `a{b=`, `a $ b`} {
		_, err := parseQuery(expr)
		assert.Error(t, err, expr)
	}
}
