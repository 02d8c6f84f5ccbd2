package gateway

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kgo"
)

// createConsumerV2 creates an instance. Numbers and booleans may be written as texts, as clients of REST Proxy do.
type createConsumerV2 struct {
	ID         *string         `json:"id,omitempty" nullable:"true" doc:"taken as the name when there is none"`
	Name       *string         `json:"name,omitempty" nullable:"true" maxLength:"249" doc:"the instance's name; one is made up when absent"`
	Format     *string         `json:"format,omitempty" nullable:"true" doc:"binary or json: how keys and values are embedded in answers; binary when absent"`
	Reset      *string         `json:"auto.offset.reset,omitempty" nullable:"true" doc:"earliest, latest or none: where to begin when the group has committed nothing; latest when absent"`
	AutoCommit json.RawMessage `json:"auto.commit.enable,omitempty" doc:"true or false; true when absent"`
	MinBytes   json.RawMessage `json:"fetch.min.bytes,omitempty" doc:"how many bytes of keys and values are worth an answer before its timeout"`
	Timeout    json.RawMessage `json:"consumer.request.timeout.ms,omitempty" doc:"how long a request for records waits that doesn't say so; 5000 when absent"`
}

type consumerV2 struct {
	InstanceID string `json:"instance_id"`
	BaseURI    string `json:"base_uri" doc:"the address of the instance"`
}

type subscriptionV2 struct {
	Topics  []string `json:"topics,omitempty" nullable:"true" doc:"names; either these or a pattern"`
	Pattern *string  `json:"topic_pattern,omitempty" nullable:"true" doc:"a regular expression that matches whole names, in RE2's syntax"`
}

type subscribedV2 struct {
	Topics []string `json:"topics" nullable:"false"`
}

type consumedV2 struct {
	Topic     string          `json:"topic"`
	Key       json.RawMessage `json:"key" doc:"in the instance's format; null when there is none"`
	Value     json.RawMessage `json:"value"`
	Partition int32           `json:"partition"`
	Offset    int64           `json:"offset"`
}

func (g *Gateway) consumersV2() []operation {
	takes := []string{mediaV2, mediaEmbed, mediaBinary, mediaKafka, mediaJSON}
	const one = "/consumers/{group_name}/instances/{instance}"
	query := func(name, doc string) *huma.Param {
		return &huma.Param{Name: name, In: "query", Description: doc, Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: new(float64(-1))}}
	}
	return []operation{
		{version: 2, method: "POST", path: "/consumers/{group_name}", id: "createConsumerV2", summary: "Create a consumer instance",
			doc:   "An instance lives in the gateway's memory until it is deleted, or left alone for the configured time. One that is lost may be created again under its name, and goes on from what was committed.",
			takes: takes, body: createConsumerV2{}, shown: showCreateConsumer, optional: true, status: 200, answer: consumerV2{}, fails: []int{409, 429}, handle: g.createConsumer},
		{version: 2, method: "DELETE", path: one, id: "deleteConsumerV2", summary: "Delete a consumer instance", status: 204, fails: []int{404}, handle: g.deleteConsumer},
		{version: 2, method: "POST", path: one + "/subscription", id: "subscribeV2", summary: "Subscribe to topics", doc: "It replaces an earlier subscription.",
			takes: takes, body: subscriptionV2{}, shown: showSubscription, status: 204, fails: []int{404, 409}, handle: g.subscribe},
		{version: 2, method: "GET", path: one + "/subscription", id: "getSubscriptionV2", summary: "The topics subscribed to", status: 200, answer: subscribedV2{}, fails: []int{404}, handle: g.subscription},
		{version: 2, method: "DELETE", path: one + "/subscription", id: "unsubscribeV2", summary: "End the subscription", status: 204, fails: []int{404}, handle: g.unsubscribe},
		{version: 2, method: "GET", path: one + "/records", id: "fetchRecordsV2", summary: "Consume records",
			doc:    "Answers as soon as there are records, and with none when the timeout is over. A record that isn't in the instance's format is answered with 40601 when it comes first, and stays there: seek past it.",
			query:  []*huma.Param{query("timeout", "how many milliseconds to wait for records; -1 is as absent"), query("max_bytes", "most bytes of keys and values, if that is more than one record; -1 is as absent")},
			status: 200, answer: []consumedV2{}, fails: []int{400, 404, 409}, handle: g.fetchRecords},
	}
}

// withInstance runs f with the instance that the path names.
func (g *Gateway) withInstance(c *call, f func(i *instance) (any, error)) (any, error) {
	i, done, err := g.consumers.use(c.r.Context(), c.param("group_name"), c.param("instance"))
	if err != nil {
		return nil, err
	}
	defer done()
	return f(i)
}

func (g *Gateway) createConsumer(c *call) (any, error) {
	var in createConsumerV2
	if _, err := c.decode(&in); err != nil {
		return nil, err
	}
	config, err := in.config()
	if err != nil {
		return nil, err
	}
	group := c.param("group_name")
	i, err := g.consumers.create(group, config)
	if err != nil {
		return nil, err
	}
	return consumerV2{
		InstanceID: i.config.name,
		BaseURI:    link(c.base(), "consumers", group, "instances", i.config.name),
	}, nil
}

// showSubscription shows that there must be topics or a pattern.
func showSubscription(s *huma.Schema) {
	topicName(s.Properties["topics"].Items)
	oneGiven(s, map[string]*huma.Schema{
		"topics":        {Type: huma.TypeArray, MinItems: new(1)},
		"topic_pattern": {Type: huma.TypeString, MinLength: new(1)},
	})
}

// showCreateConsumer shows which words and numbers mean something.
func showCreateConsumer(s *huma.Schema) {
	p := s.Properties
	oneOfWords(p["format"], "binary", "json")
	oneOfWords(p["auto.offset.reset"], "earliest", "latest", "none")
	orText(p["auto.commit.enable"], &huma.Schema{Type: huma.TypeBoolean}, anyCase("true", "false"))
	orText(p["fetch.min.bytes"], between(-1, mostMinBytes), `^(-1|[0-9]{1,7})$`)
	orText(p["consumer.request.timeout.ms"], between(0, math.MaxInt32), `^[0-9]{1,9}$`)
}

// mostMinBytes is the most that fetch.min.bytes may be.
const mostMinBytes = 10_000_000

func (in createConsumerV2) config() (instanceConfig, error) {
	config := instanceConfig{autoCommit: true, wait: usualPoll, reset: kgo.NewOffset().AtEnd()}
	invalid := func(key, want string) error {
		return fail(codeConsumerConfig, "Invalid consumer configuration: %s: want %s", key, want)
	}
	for _, name := range []*string{in.ID, in.Name} {
		if name != nil {
			config.name = *name
		}
	}
	if in.Format != nil {
		switch strings.ToLower(*in.Format) {
		case "binary":
		case "json":
			config.json = true
		default:
			return config, fail(http.StatusUnprocessableEntity, "Invalid format type: want binary or json.")
		}
	}
	if in.Reset != nil {
		switch strings.ToLower(*in.Reset) {
		case "earliest":
			config.reset = kgo.NewOffset().AtStart()
		case "latest":
		case "none":
			config.reset = kgo.NoResetOffset()
		default:
			return config, invalid("auto.offset.reset", "earliest, latest or none")
		}
	}
	switch text := plain(in.AutoCommit); strings.ToLower(text) {
	case "", "true":
	case "false":
		config.autoCommit = false
	default:
		return config, invalid("auto.commit.enable", "true or false")
	}
	if text := plain(in.MinBytes); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < -1 || n > mostMinBytes {
			return config, invalid("fetch.min.bytes", "-1 to 10000000")
		}
		config.minBytes = n
	}
	if text := plain(in.Timeout); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return config, invalid("consumer.request.timeout.ms", "a number of milliseconds")
		}
		config.wait = min(time.Duration(n)*time.Millisecond, longestPoll)
	}
	return config, nil
}

// plain gives a JSON scalar as text: "true" and true are the same. It is "" for null and for nothing.
func plain(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		if text == "" {
			return `""`
		}
		return text
	}
	if n, ok := whole(string(raw)); ok {
		return strconv.FormatInt(n, 10)
	}
	return string(raw)
}

func (g *Gateway) deleteConsumer(c *call) (any, error) {
	return nil, g.consumers.remove(c.param("group_name"), c.param("instance"))
}

func (g *Gateway) subscribe(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		var in subscriptionV2
		if _, err := c.decode(&in); err != nil {
			return nil, err
		}
		switch {
		case in.Pattern != nil && in.Topics != nil:
			return nil, illegal("Subscription to topics, partitions and pattern are mutually exclusive.")
		case in.Pattern != nil && *in.Pattern != "":
			if _, err := pattern(*in.Pattern); err != nil {
				return nil, fail(http.StatusUnprocessableEntity, "topic_pattern: %v", err)
			}
			return nil, i.subscribe(nil, *in.Pattern)
		case len(in.Topics) == 0:
			return nil, fail(http.StatusUnprocessableEntity, "topics may not be empty")
		}
		for _, topic := range in.Topics {
			if !legal(topic) {
				return nil, fail(http.StatusUnprocessableEntity, "topics: %.100q can't be a topic's name", topic)
			}
		}
		return nil, i.subscribe(in.Topics, "")
	})
}

func (g *Gateway) subscription(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		out := subscribedV2{Topics: append([]string{}, i.topics...)}
		if i.pattern != "" {
			out.Topics = append(out.Topics, i.client.GetConsumeTopics()...)
		}
		return out, nil
	})
}

func (g *Gateway) unsubscribe(c *call) (any, error) {
	return g.withInstance(c, func(i *instance) (any, error) {
		if i.member {
			i.leave()
		}
		return nil, nil
	})
}

func (g *Gateway) fetchRecords(c *call) (any, error) {
	timeout, err := c.number("timeout")
	if err != nil {
		return nil, err
	}
	maxBytes, err := c.number("max_bytes")
	if err != nil {
		return nil, err
	}
	most := int64(g.options.MaxConsumerBytes)
	if maxBytes > 0 {
		most = min(most, maxBytes)
	}
	return g.withInstance(c, func(i *instance) (any, error) {
		if want := c.media; want == mediaBinary && i.config.json || want == mediaEmbed && !i.config.json {
			return nil, fail(codeFormatMismatch, "The requested embedded data format does not match the deserializer for this consumer instance")
		}
		c.media = mediaBinary
		if i.config.json {
			c.media = mediaEmbed
		}
		wait := i.config.wait
		if timeout >= 0 {
			wait = min(time.Duration(min(timeout, longestPoll.Milliseconds()))*time.Millisecond, longestPoll)
		}
		records, err := i.poll(c.r.Context(), wait, most)
		if err != nil {
			return nil, err
		}
		if c.r.Context().Err() != nil { // nobody will read the answer
			i.untake(records)
			return nil, c.r.Context().Err()
		}
		return i.answer(records)
	})
}

// answer puts records into their JSON. With the format JSON, it ends before one that isn't.
func (i *instance) answer(records []*kgo.Record) (any, error) {
	out := make([]consumedV2, 0, len(records))
	for n, r := range records {
		one := consumedV2{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: i.embed(r.Key), Value: i.embed(r.Value)}
		if one.Key == nil || one.Value == nil {
			i.untake(records[n:])
			records = records[:n]
			if n == 0 {
				return nil, fail(codeFormatMismatch, "The record at offset %d of %s-%d is not JSON: read it with a consumer of the format binary, or seek past it.", r.Offset, r.Topic, r.Partition)
			}
			break
		}
		out = append(out, one)
	}
	i.consumed(records)
	return out, nil
}

// embed gives a key or value as JSON; nil when that isn't possible.
func (i *instance) embed(data []byte) json.RawMessage {
	switch {
	case data == nil:
		return json.RawMessage("null")
	case !i.config.json:
		return mustJSON(data)
	case validJSON(data):
		return data
	}
	return nil
}

func comparePartitions(a, b partition) int {
	return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.id, b.id))
}
