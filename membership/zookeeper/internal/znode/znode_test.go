package znode

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/core/election"
)

// golden reads a node as Apache Kafka 3.9 wrote it; testdata/README.md says how they were recorded.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return []byte(strings.TrimSuffix(string(data), "\n"))
}

// TestKafkasNodes decodes what Kafka wrote, and encodes it again to the same.
func TestKafkasNodes(t *testing.T) {
	same := func(name string, again func(data []byte) []byte) {
		t.Helper()
		data := golden(t, name)
		require.JSONEq(t, string(data), string(again(data)), name)
	}
	same("brokers-ids-1", func(data []byte) []byte {
		b, err := DecodeBroker(1, data)
		require.NoError(t, err)
		require.Equal(t, "PLAINTEXT", b.Endpoints[0].Protocol)
		return EncodeBroker(b, time.UnixMilli(timestamp(t, data)))
	})
	same("controller", func(data []byte) []byte {
		id, kraft, err := DecodeController(data)
		require.NoError(t, err)
		require.Equal(t, int32(1), id)
		require.Equal(t, int32(-1), kraft)
		return EncodeController(id, time.UnixMilli(timestamp(t, data)))
	})
	same("controller_epoch", func(data []byte) []byte {
		n, err := DecodeNumber(data)
		require.NoError(t, err)
		return EncodeNumber(n)
	})
	same("cluster-id", func(data []byte) []byte {
		id, err := DecodeClusterID(data)
		require.NoError(t, err)
		require.Len(t, id, 22)
		return EncodeClusterID(id)
	})
	same("feature", func([]byte) []byte { return EncodeFeatures() })
	same("brokers-topics-golden", func(data []byte) []byte {
		topic, err := DecodeTopic(data)
		require.NoError(t, err)
		require.Len(t, topic.Partitions, 2)
		return EncodeTopic(topic)
	})
	same("brokers-topics-golden-partitions-0-state", func(data []byte) []byte {
		s, err := DecodeState(data, 5)
		require.NoError(t, err)
		require.Equal(t, int32(5), s.PartitionEpoch)
		return EncodeState(s)
	})
	for _, name := range []string{"config-topics-golden", "config-brokers-default"} {
		same(name, func(data []byte) []byte {
			values, err := DecodeConfig(data)
			require.NoError(t, err)
			require.Len(t, values, 1)
			return EncodeConfig(values)
		})
	}
	same("config-changes-config_change_0", func(data []byte) []byte {
		path, err := DecodeConfigChange(data)
		require.NoError(t, err)
		e, ok := ParseEntityPath(path)
		require.True(t, ok)
		require.Equal(t, election.Entity{Kind: election.BrokerEntity}, e)
		return EncodeConfigChange(e)
	})
	same("latest_producer_id_block", func(data []byte) []byte {
		next, err := DecodeProducerIDs(data)
		require.NoError(t, err)
		return EncodeProducerIDs(1, election.ProducerIDBlock{First: next - 1000, Count: 1000})
	})
}

func timestamp(t testing.TB, data []byte) int64 {
	o, err := decode("test", data)
	require.NoError(t, err)
	text, err := member[string](o, "test", "timestamp")
	require.NoError(t, err)
	at, err := time.ParseDuration(text + "ms")
	require.NoError(t, err)
	return at.Milliseconds()
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	broker := func(data []byte) error { _, err := DecodeBroker(1, data); return err }
	topic := func(data []byte) error { _, err := DecodeTopic(data); return err }
	state := func(data []byte) error { _, err := DecodeState(data, 0); return err }
	number := func(data []byte) error { _, err := DecodeNumber(data); return err }
	controller := func(data []byte) error { _, _, err := DecodeController(data); return err }
	cluster := func(data []byte) error { _, err := DecodeClusterID(data); return err }
	config := func(data []byte) error { _, err := DecodeConfig(data); return err }
	change := func(data []byte) error { _, err := DecodeConfigChange(data); return err }
	ids := func(data []byte) error { _, err := DecodeProducerIDs(data); return err }
	dir := func(data []byte) error { _, err := DecodeDirEvent(data); return err }
	for _, tc := range []struct {
		decode     func([]byte) error
		data, want string
	}{
		{broker, ``, "broker 1"}, {broker, `[]`, "broker 1"}, {broker, `null`, "no object"}, {broker, `{}`, `no "version"`},
		{broker, `{"version":0}`, "version 0"}, {broker, `{"version":1,"host":"h","port":0}`, `address "h" port 0`},
		{broker, `{"version":5,"endpoints":[]}`, "no endpoints"}, {broker, `{"version":5,"endpoints":["h:1"]}`, `endpoint "h:1"`},
		{broker, `{"version":5,"endpoints":["A://h:70000"]}`, "endpoint"}, {broker, `{"version":5,"endpoints":["A://:1"]}`, "endpoint"},
		{broker, `{"version":5,"endpoints":["A://h:1","A://h:2"]}`, `listener "A" twice`}, {broker, `{"Version":5,"endpoints":["A://h:1"]}`, `no "version"`},
		{topic, `{}`, `no "partitions"`}, {topic, `{"partitions":{"1":[1]}}`, "none is 0"}, {topic, `{"partitions":{"00":[1]}}`, "none is 0"},
		{topic, `{"partitions":{"0":[]}}`, "no replicas"}, {topic, `{"partitions":{"0":[-1]}}`, "broker -1"}, {topic, `{"partitions":{"0":[1]},"topic_id":"x"}`, `"x" is no id`},
		{topic, `{"partitions":{"0":[99999999999]}}`, "partitions"},
		{state, `{"leader":1,"leader_epoch":1,"isr":[1]}`, `no "controller_epoch"`}, {state, `{"leader":1.5}`, `"leader"`},
		{number, ``, "number"}, {number, `-1`, "number"}, {number, `4294967296`, "number"}, {number, strings.Repeat("0", 100), "number"},
		{controller, `{"brokerid":-2}`, "broker -2"}, {controller, `{}`, `no "brokerid"`},
		{cluster, `{"version":"1","id":""}`, "empty"}, {cluster, `{"id":5}`, `"id"`},
		{config, `{"version":2,"config":{}}`, "version 2"}, {config, `{"version":1,"config":{"a":1}}`, `"config"`},
		{change, `{"version":3}`, "version 3"}, {change, `{"version":2}`, `no "entity_path"`},
		{ids, `{"block_end":"x"}`, `block_end "x"`}, {ids, `{"block_end":"9223372036854775807"}`, "block_end"}, {ids, `{"block_end":7}`, "block_end"},
		{dir, `{"broker":-1}`, "broker -1"},
	} {
		err := tc.decode([]byte(tc.data))
		require.ErrorIs(t, err, ErrMalformed, tc.data)
		require.ErrorContains(t, err, tc.want, tc.data)
	}
}

func TestOldVersions(t *testing.T) {
	topic, err := DecodeTopic([]byte(`{"version":1,"partitions":{"0":[1,2]}}`))
	require.NoError(t, err)
	require.Equal(t, Topic{Partitions: []election.Assignment{{Replicas: []int32{1, 2}}}}, topic)
	_, kraft, err := DecodeController([]byte(`{"version":1,"brokerid":0,"timestamp":"1"}`))
	require.NoError(t, err)
	require.Equal(t, int32(-1), kraft)
	_, kraft, err = DecodeController([]byte(`{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":7}`))
	require.NoError(t, err)
	require.Equal(t, int32(7), kraft)
	next, err := DecodeProducerIDs(nil)
	require.NoError(t, err)
	require.Zero(t, next)
	b, err := DecodeBroker(3, []byte(`{"version":3,"endpoints":["SSL://h:1"],"rack":null,"host":null,"port":-1}`))
	require.NoError(t, err)
	require.Equal(t, "SSL", b.Endpoints[0].Protocol)
}

func TestBrokersWithoutAPlainListener(t *testing.T) {
	data := EncodeBroker(election.Broker{ID: 1, Endpoints: []election.Endpoint{{Listener: "A", Protocol: "SSL", Host: "::1", Port: 1}}}, time.UnixMilli(5))
	require.JSONEq(t, `{"version":5,"host":null,"port":-1,"endpoints":["A://[::1]:1"],"jmx_port":-1,"timestamp":"5","listener_security_protocol_map":{"A":"SSL"},"features":{}}`, string(data))
}

func TestRoundTrips(t *testing.T) {
	ids := rapid.SliceOfN(rapid.Int32Range(0, math.MaxInt32), 1, 5)
	rapid.Check(t, func(t *rapid.T) {
		topic := Topic{ID: election.TopicID{1, 2, byte(rapid.IntRange(0, 255).Draw(t, "id"))}}
		for range rapid.IntRange(1, 12).Draw(t, "partitions") {
			a := election.Assignment{Replicas: ids.Draw(t, "replicas")}
			if rapid.Bool().Draw(t, "moving") {
				a.Adding = ids.Draw(t, "adding")
			}
			topic.Partitions = append(topic.Partitions, a)
		}
		again, err := DecodeTopic(EncodeTopic(topic))
		if err != nil {
			t.Fatal(err)
		}
		require.Equal(t, topic, again)
		values := rapid.MapOfN(rapid.String(), rapid.String(), 1, 4).Draw(t, "values")
		read, err := DecodeConfig(EncodeConfig(values))
		require.NoError(t, err)
		require.Equal(t, values, read)
		st := election.PartitionState{Leader: rapid.Int32().Draw(t, "leader"), LeaderEpoch: 3, ISR: ids.Draw(t, "isr"), ControllerEpoch: 9, Recovering: rapid.Bool().Draw(t, "recovering"), PartitionEpoch: 4}
		back, err := DecodeState(EncodeState(st), 4)
		require.NoError(t, err)
		require.Equal(t, st, back)
	})
}

// FuzzDecode gives anything to every decoder: none panics, and what one takes it also takes after it was encoded again.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/[a-z]*")
	if err != nil || len(files) < 10 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			f.Add(golden(f, filepath.Base(file)))
		}
	}
	f.Add([]byte(`{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1]},{"topic":"a","partition":0,"replicas":[2]}]}`))
	f.Add([]byte(`{"version":1,"broker":1,"event":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := DecodeBroker(1, data); err == nil {
			again, err := DecodeBroker(1, EncodeBroker(b, time.UnixMilli(0)))
			require.NoError(t, err)
			require.Equal(t, len(b.Endpoints), len(again.Endpoints))
		}
		if topic, err := DecodeTopic(data); err == nil {
			again, err := DecodeTopic(EncodeTopic(topic))
			require.NoError(t, err)
			require.Equal(t, len(topic.Partitions), len(again.Partitions))
		}
		if s, err := DecodeState(data, 0); err == nil {
			again, err := DecodeState(EncodeState(s), 0)
			require.NoError(t, err)
			require.Equal(t, s.Leader, again.Leader)
		}
		if values, err := DecodeConfig(data); err == nil {
			again, err := DecodeConfig(EncodeConfig(values))
			require.NoError(t, err)
			require.Equal(t, len(values), len(again))
		}
		if all, _, err := DecodeReassignments(data); err == nil {
			again, bad, err := DecodeReassignments(EncodeReassignments(all))
			require.NoError(t, err)
			require.Zero(t, bad)
			require.Equal(t, len(all), len(again))
		}
		if all, _, err := DecodePartitions(data); err == nil {
			again, bad, err := DecodePartitions(EncodePartitions(all))
			require.NoError(t, err)
			require.Zero(t, bad)
			require.Equal(t, len(all), len(again))
		}
		if n, err := DecodeNumber(data); err == nil {
			again, err := DecodeNumber(EncodeNumber(n))
			require.NoError(t, err)
			require.Equal(t, n, again)
		}
		if path, err := DecodeConfigChange(data); err == nil {
			if e, ok := ParseEntityPath(path); ok {
				require.NotEmpty(t, EntityPath(e))
			}
		}
		_, _ = DecodeClusterID(data)
		_, _, _ = DecodeController(data)
		_, _ = DecodeProducerIDs(data)
		_, _ = DecodeDirEvent(data)
	})
}
