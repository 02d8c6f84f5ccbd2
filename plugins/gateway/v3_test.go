package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTopicsV3(t *testing.T) {
	b := start(t, &byKey{})
	cluster := b.cluster()
	id := strings.TrimPrefix(cluster, "/v3/clusters/")
	topic := `{"kind":"KafkaTopic","metadata":{"self":"` + b.base + cluster + `/topics/t","resource_name":"crn:///kafka=` + id + `/topic=t"},
		"cluster_id":"` + id + `","topic_name":"t","is_internal":false,"replication_factor":1,"partitions_count":2,"partitions":{"related":"` + b.base + cluster + `/topics/t/partitions"}}`
	b.do("POST", cluster+"/topics", v3, `{"topic_name":"t","partitions_count":2,"validate_only":true}`).is(t, 201, topic)
	b.get(cluster+"/topics/t").fails(t, 40403)
	got := b.do("POST", cluster+"/topics", v3, `{"topic_name":"t","partitions_count":2,"replication_factor":1,"configs":[{"name":"cleanup.policy","value":"compact"}]}`)
	got.is(t, 201, topic)
	assert.Equal(t, b.base+cluster+"/topics/t", got.header.Get("Location"))
	b.get(cluster+"/topics/t").is(t, 200, topic)
	b.get(cluster+"/topics").is(t, 200, `{"kind":"KafkaTopicList","metadata":{"self":"`+b.base+cluster+`/topics"},"data":[`+topic+`]}`)
	assert.Equal(t, 200, b.get(cluster).status)
	partition := `{"kind":"KafkaPartition","metadata":{"self":"` + b.base + cluster + `/topics/t/partitions/1","resource_name":"crn:///kafka=` + id + `/topic=t/partition=1"},"cluster_id":"` + id + `","topic_name":"t","partition_id":1}`
	b.get(cluster+"/topics/t/partitions/1").is(t, 200, partition)
	assert.Contains(t, b.get(cluster+"/topics/t/partitions").body, `"partition_id":1`)
	var v2topic struct{ Configs map[string]string }
	b.get("/topics/t").into(t, &v2topic)
	assert.Equal(t, "compact", v2topic.Configs["cleanup.policy"])

	for body, code := range map[string]int{
		`{"topic_name":"t"}`:   40002,
		`{"topic_name":"a/b"}`: 40002,
		`{"topic_name":""}`:    40002,
		`{"topic_name":"` + strings.Repeat("a", 250) + `"}`:                     40002,
		`{"topic_name":"u","replication_factor":5}`:                             40002,
		`{"topic_name":"u","configs":[{"name":"no.such","value":"1"}]}`:         40002,
		`{"topic_name":"u","configs":[{"name":"retention.ms","value":"soon"}]}`: 40002,
		`{"topic_name":"u","partitions_count":0}`:                               422,
		`{"topic_name":"u","partitions_count":"1"}`:                             422,
		`{"topic_name":"u","partitions_count":99999999999}`:                     422,
		`{"topic_name":"u","partitions_count":1.5}`:                             422,
		`{"topic_name":"u","replication_factor":40000}`:                         422,
		`{"name":"u"}`: 422,
		`{}`:           422,
		`{`:            400,
	} {
		b.do("POST", cluster+"/topics", v3, body).fails(t, code)
	}
	b.do("POST", cluster+"/topics", v3, `{"topic_name":"u","partitions_count":2.0,"replication_factor":1e0,"configs":null}`).is(t, 201, strings.NewReplacer("/topics/t", "/topics/u", "topic=t", "topic=u", `"topic_name":"t"`, `"topic_name":"u"`).Replace(topic))
	b.get("/v3/clusters/x/topics").fails(t, 404)
	b.get(cluster+"/topics/t/partitions/2").fails(t, 404)
	b.get(cluster+"/topics/t/partitions/x").fails(t, 404)
	b.send("DELETE", cluster+"/topics/t", nil, nil).is(t, 204, "")
	b.send("DELETE", cluster+"/topics/t", nil, nil).fails(t, 40403)
	b.get(cluster+"/nothing").fails(t, 404)
}

func TestGroupsV3(t *testing.T) {
	b := start(t, &byKey{})
	b.topic("t", 1)
	b.produce("t", `1`, `2`, `3`)
	at := b.consumer("g", `{"name":"i","format":"json","auto.offset.reset":"earliest","auto.commit.enable":"false"}`)
	b.do("POST", at+"/subscription", v2, `{"topics":["t"]}`).is(t, 204, "")
	b.poll(at, 3)
	b.do("POST", at+"/offsets", v2, `{"offsets":[{"topic":"t","partition":0,"offset":1}]}`)

	groups := b.cluster() + "/consumer-groups"
	var group struct {
		ID    string `json:"consumer_group_id"`
		State string
	}
	b.get(groups+"/g").into(t, &group)
	assert.Equal(t, "g", group.ID)
	assert.Equal(t, "STABLE", group.State)
	assert.Contains(t, b.get(groups).body, `"consumer_group_id":"g"`)
	var consumers struct {
		Data []struct {
			ID       string `json:"consumer_id"`
			ClientID string `json:"client_id"`
		}
	}
	b.get(groups+"/g/consumers").into(t, &consumers)
	require.Len(t, consumers.Data, 1)
	assert.Equal(t, "barnabas-gateway", consumers.Data[0].ClientID)
	member := groups + "/g/consumers/" + consumers.Data[0].ID
	assert.Equal(t, 200, b.get(member).status)
	assert.Contains(t, b.get(member+"/assignments").body, `"topic_name":"t","partition_id":0`)
	for _, path := range []string{"/g/lags/t/partitions/0", "/g/lags"} {
		assert.Contains(t, b.get(groups+path).body, `"current_offset":1,"log_end_offset":3,"lag":2,"consumer_id":"`+consumers.Data[0].ID)
	}
	var summary struct {
		Max   int64  `json:"max_lag"`
		Total int64  `json:"total_lag"`
		Topic string `json:"max_lag_topic_name"`
	}
	b.get(groups+"/g/lag-summary").into(t, &summary)
	assert.EqualValues(t, 2, summary.Max)
	assert.EqualValues(t, 2, summary.Total)
	assert.Equal(t, "t", summary.Topic)

	b.get(groups+"/nobody").fails(t, 404)
	b.get(groups+"/g/consumers/nobody").fails(t, 404)
	b.get(groups+"/g/lags/t/partitions/1").fails(t, 404)
	b.get(groups+"/nobody/lag-summary").fails(t, 404)
}
