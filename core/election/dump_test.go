package election_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
)

func example() (election.DumpInfo, election.Dump) {
	state := func(epoch int32) *election.PartitionState {
		return &election.PartitionState{Leader: 1, LeaderEpoch: 4, ISR: []int32{1, 2}, ControllerEpoch: 5, PartitionEpoch: epoch}
	}
	recovering := state(3)
	recovering.Recovering, recovering.Leader, recovering.ISR = true, election.NoBroker, []int32{}
	info := election.DumpInfo{Source: "zookeeper", Taken: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC), Living: true}
	return info, election.Dump{ClusterID: "QmFybmFiYXNCYXJuYWJhcw", ControllerEpoch: 6, BrokerEpoch: 1 << 40, LastBrokerID: 1004, NextProducerID: 7000,
		Topics: []election.Topic{
			{Name: "__consumer_offsets", ID: election.TopicID{1}, Partitions: []election.Partition{
				{Assignment: election.Assignment{Replicas: []int32{1, 2}}, State: state(17)},
				{Assignment: election.Assignment{Replicas: []int32{2, 1, 3}, Adding: []int32{3}, Removing: []int32{1}}, State: recovering},
			}},
			{Name: "going", ID: election.TopicID{2}, Deleting: true, Partitions: []election.Partition{{Assignment: election.Assignment{Replicas: []int32{1}}}}},
		},
		Configs: []election.Config{
			{Entity: election.Entity{Kind: election.TopicEntity, Name: "going"}, Values: map[string]string{"b": "<&>\u2028", "a": "1"}},
			{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"log.retention.ms": "5"}},
		}}
}

func written(t testing.TB, info election.DumpInfo, d election.Dump) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, election.WriteDump(&b, info, d))
	return b.Bytes()
}

// TestDumpFormat holds the format: a change of these bytes is another version.
func TestDumpFormat(t *testing.T) {
	info, d := example()
	golden, err := os.ReadFile("testdata/dump-v1.jsonl")
	require.NoError(t, err)
	require.Equal(t, string(golden), string(written(t, info, d)))
	gotInfo, got, err := election.ReadDump(bytes.NewReader(golden))
	require.NoError(t, err)
	require.Equal(t, info, gotInfo)
	require.Equal(t, d, got)
}

// resum makes the last line fit the lines before it again.
func resum(text string) string {
	at := strings.LastIndex(text, `{"end"`)
	crc := strings.LastIndex(text, `"crc32c":"`) + len(`"crc32c":"`)
	return text[:crc] + fmt.Sprintf("%08x", crc32.Checksum([]byte(text[:at]), crc32.MakeTable(crc32.Castagnoli))) + text[crc+8:]
}

func TestDumpsThatAreRefused(t *testing.T) {
	info, d := example()
	good := string(written(t, info, d))
	require.Equal(t, good, resum(good))
	for _, tc := range []struct{ name, from, to, want string }{
		{"empty", good, "", "first line"},
		{"something else", good, "a: yaml\n", "first line"},
		{"another format", "barnabas-coordination-dump", "barnabas-standalone", "first line"},
		{"newer", `"version":1`, `"version":2,"more":true`, "use the newer one"},
		{"no version", `"version":1`, `"version":0`, "format version 0"},
		{"a time in parts of seconds", "12:00:00Z", "12:00:00.5Z", "seconds in UTC"},
		{"a time elsewhere", "12:00:00Z", "12:00:00+01:00", "seconds in UTC"},
		{"a damaged byte", "going", "goinG", "is damaged"},
		{"an unknown member", `"deleting":true`, `"deleting":true,"x":1`, "unknown field"},
		{"a member twice", `"deleting":true`, `"deleting":true,"deleting":true`, "member twice"},
		{"another case", `"deleting":true`, `"Deleting":true`, "isn't written as dumps are"},
		{"a fraction", `"leader_epoch":4`, `"leader_epoch":4.0`, "line 3"},
		{"too large a number", `"leader_epoch":4`, `"leader_epoch":2147483648`, "line 3"},
		{"bytes that are no text", "goi", "go\xff", "isn't written as dumps are"},
		{"null for a list", `"isr":[]`, `"isr":null`, "null for its ISR"},
		{"null for a topic", `"state":{`, `"state":null,"x":{`, "line 3"},
		{"an id that is none", `"id":"AQAAAAAAAAAAAAAAAAAAAA"`, `"id":"AQAAAAAAAAAAAAAAAAAAAB"`, "no id of a topic"},
		{"no id", `"id":"AQAAAAAAAAAAAAAAAAAAAA"`, `"id":"AAAAAAAAAAAAAAAAAAAAAA"`, "invalid argument"},
		{"a kind that is none", `"kind":"topic"`, `"kind":"user"`, `kind "user"`},
		{"a wrong count of topics", `"topics":2`, `"topics":3`, "is damaged"},
		{"a wrong count of partitions", `"partitions":3,`, `"partitions":30000000000000,`, "is damaged"},
		{"no end", good[strings.LastIndex(good, `{"end"`):], "", "the file ends"},
		{"more after the end", good, good + "{}\n", "comes after its end"},
		{"no line feed", good, strings.TrimSuffix(good, "\n"), "the file ends"},
		{"two clusters", `{"cluster"`, good[strings.Index(good, `{"cluster"`):strings.Index(good, `{"topic"`)] + `{"cluster"`, "none that may stand here"},
		{"a line that says nothing", `{"topic":{"name":"going"`, "{}\n" + `{"topic":{"name":"going"`, "none that may stand here"},
		{"a topic behind a configuration", `{"end"`, good[strings.Index(good, `{"topic"`):strings.Index(good, `{"topic":{"name":"going"`)] + `{"end"`, "none that may stand here"},
		{"a negative epoch", `"controller_epoch":6`, `"controller_epoch":-6`, "controller epoch -6"},
		{"an epoch beyond the last", `"controller_epoch":6`, `"controller_epoch":3`, "the last is 3"},
		{"a broker twice", `"replicas":[1,2]`, `"replicas":[1,1]`, "replicas [1 1]"},
		{"a configuration of nothing", `"kind":"topic","name":"going"`, `"kind":"topic","name":"gone"`, "doesn't exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Contains(t, good, tc.from)
			bad := strings.Replace(good, tc.from, tc.to, 1)
			if tc.name != "a damaged byte" && strings.Contains(bad, `"crc32c":"`) {
				bad = resum(bad)
			}
			_, _, err := election.ReadDump(strings.NewReader(bad))
			require.ErrorIs(t, err, election.ErrNoDump)
			require.ErrorContains(t, err, tc.want)
		})
	}
	for n := range good { // torn at every byte
		_, _, err := election.ReadDump(strings.NewReader(good[:n]))
		require.ErrorIs(t, err, election.ErrNoDump, "%d bytes", n)
	}
}

func TestDumpsThatAreInvalid(t *testing.T) {
	for name, change := range map[string]func(d *election.Dump){
		"no cluster id":            func(d *election.Dump) { d.ClusterID = "" },
		"negative broker epoch":    func(d *election.Dump) { d.BrokerEpoch = -1 },
		"negative broker id":       func(d *election.Dump) { d.LastBrokerID = -1 },
		"negative producer id":     func(d *election.Dump) { d.NextProducerID = -1 },
		"topics out of order":      func(d *election.Dump) { d.Topics[0], d.Topics[1] = d.Topics[1], d.Topics[0] },
		"one id twice":             func(d *election.Dump) { d.Topics[1].ID = d.Topics[0].ID },
		"no name":                  func(d *election.Dump) { d.Topics[0].Name = "" },
		"no partitions":            func(d *election.Dump) { d.Topics[1].Partitions = nil },
		"no replicas":              func(d *election.Dump) { d.Topics[1].Partitions[0].Replicas = nil },
		"a leader that is none":    func(d *election.Dump) { d.Topics[0].Partitions[0].State.Leader = -2 },
		"a negative leader epoch":  func(d *election.Dump) { d.Topics[0].Partitions[0].State.LeaderEpoch = -1 },
		"configs out of order":     func(d *election.Dump) { d.Configs[0], d.Configs[1] = d.Configs[1], d.Configs[0] },
		"an empty configuration":   func(d *election.Dump) { d.Configs[1].Values = nil },
		"a version":                func(d *election.Dump) { d.Configs[1].Version = 7 },
		"a value that is no text":  func(d *election.Dump) { d.Configs[1].Values = map[string]string{"a": "\xff"} },
		"an entity that is no one": func(d *election.Dump) { d.Configs[1].Entity.Kind = 9 },
	} {
		info, d := example()
		require.NoError(t, d.Validate())
		change(&d)
		require.ErrorIs(t, d.Validate(), election.ErrInvalid, name)
		var b bytes.Buffer
		require.ErrorIs(t, election.WriteDump(&b, info, d), election.ErrInvalid, name)
		require.Empty(t, b.Bytes(), name)
	}
}

func TestRaise(t *testing.T) {
	_, d := example()
	_, before := example()
	old := d
	require.NoError(t, d.Raise())
	require.NoError(t, d.Validate())
	require.NoError(t, d.Follows(&before))
	require.Equal(t, before, old, "what was shared stays")
	require.Greater(t, d.ControllerEpoch, before.ControllerEpoch+1000)
	require.Greater(t, d.BrokerEpoch, before.BrokerEpoch+1000)
	require.Greater(t, d.LastBrokerID, before.LastBrokerID+100)
	require.Greater(t, d.NextProducerID, before.NextProducerID+1_000_000)
	require.Greater(t, d.Topics[0].Partitions[0].State.LeaderEpoch, before.Topics[0].Partitions[0].State.LeaderEpoch+1000)
	require.Equal(t, int32(17), d.Topics[0].Partitions[0].State.PartitionEpoch)
	for range 2000 {
		require.NoError(t, d.Raise())
	}
	d.Topics[0].Partitions[0].State.LeaderEpoch = math.MaxInt32 - 5
	kept := d
	require.ErrorIs(t, d.Raise(), election.ErrInvalid)
	require.Equal(t, kept, d)
	d.Topics[0].Partitions[0].State.LeaderEpoch, d.ControllerEpoch = 1, math.MaxInt32-5
	require.ErrorIs(t, d.Raise(), election.ErrInvalid)
}

// FuzzReadDump gives anything to ReadDump: what it takes is written as the same bytes.
func FuzzReadDump(f *testing.F) {
	info, d := example()
	good := written(f, info, d)
	f.Add(good)
	f.Add(good[:len(good)/2])
	f.Add([]byte("{\"format\":\"barnabas-coordination-dump\",\"version\":1}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if i := bytes.LastIndex(data, []byte(`{"end"`)); i >= 0 && bytes.Count(data[i:], []byte("\n")) == 1 && bytes.Contains(data[i:], []byte(`"crc32c":"`)) && len(data)-i > 40 {
			if at := bytes.LastIndex(data, []byte(`"crc32c":"`)) + 10; at+8 <= len(data) {
				data = []byte(resum(string(data))) // or the fuzzer would never come behind the sum
			}
		}
		info, d, err := election.ReadDump(bytes.NewReader(data))
		if err != nil {
			return
		}
		require.NoError(t, d.Validate())
		require.Equal(t, string(data), string(written(t, info, d)))
	})
}
