package znodes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"
)

func TestTreeNamesWhatDiffersFromRunToRun(t *testing.T) {
	raw := map[string]rawNode{
		"/latest_producer_id_block": {data: []byte(`{"version":1,"broker":2,"block_start":"0","block_end":"1999"}`)},
		"/cluster/id":               {data: []byte(`{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}`)},
		"/brokers/topics/t":         {data: []byte(`{"version":3,"topic_id":"BBBBBBBBBBBBBBBBBBBBBB","partitions":{"0":[1]}}`)},
		"/brokers/ids/1":            {data: []byte(`{"port":19092,"host":"h","timestamp":"1700000000000","endpoints":["PLAINTEXT://h:19092"],"jmx_port":-1}`), ephemeral: true},
		"/x/partitions/state":       {data: []byte(`{"leader":19092}`), version: 4},
		"/controller_epoch":         {data: []byte("3"), version: 2, acl: zk.DigestACL(zk.PermAll, "u", "p")},
		"/controller":               {data: []byte(`{"version":2,"brokerid":1}`), ephemeral: true},
		"/empty":                    {data: []byte{}},
		"/null":                     {},
	}
	for path, n := range raw {
		if n.acl == nil {
			n.acl = zk.WorldACL(zk.PermAll)
			raw[path] = n
		}
	}
	got := tree(raw, namesOf(raw, map[string]string{"19092": "<port of 1>"}))
	require.Equal(t, Node{Data: `{"id":"<cluster id>","version":"1"}`}, got["/cluster/id"])
	require.Equal(t, Node{Data: `{"partitions":{"0":[1]},"topic_id":"<id of t>","version":3}`}, got["/brokers/topics/t"])
	require.JSONEq(t, `{"endpoints":["PLAINTEXT://h:<port of 1>"],"host":"h","jmx_port":-1,"port":"<port of 1>","timestamp":"<time>"}`, got["/brokers/ids/1"].Data)
	require.True(t, got["/brokers/ids/1"].Ephemeral)
	require.Equal(t, `{"block_end":"<n999>","block_start":"<n000>","broker":"<any>","version":1}`, got["/latest_producer_id_block"].Data)
	require.Equal(t, Node{Data: `{"leader":19092}`, Version: 4}, got["/x/partitions/state"])
	require.NotEmpty(t, got["/controller_epoch"].ACL)
	require.Equal(t, Node{Null: true}, got["/null"])
	require.Equal(t, `{"brokerid":"<a living broker>","version":2}`, got["/controller"].Data)
	raw["/controller"] = rawNode{data: []byte(`{"brokerid":7,"version":2}`), acl: zk.WorldACL(zk.PermAll)}
	require.Equal(t, `{"brokerid":7,"version":2}`, tree(raw, Names{})["/controller"].Data, "it doesn't live")
	require.Equal(t, Node{}, got["/empty"])
}

func TestCompareFindsEachKindOfDifference(t *testing.T) {
	record := func(n Tree) Recording {
		return Recording{Of: "x", Steps: []Step{{Name: "one", Nodes: n}, {Name: "two", Nodes: n}}}
	}
	want := Tree{"/a": {Data: `{"x":1,"y":[1,2]}`}, "/b": {Data: "5", Version: 3}, "/c": {Null: true}}
	require.Empty(t, Compare(record(want), record(want)))
	for name, c := range map[string]struct {
		got  Tree
		diff string
	}{
		"missing node":  {Tree{"/b": want["/b"], "/c": want["/c"]}, "after one: /a is missing"},
		"more":          {Tree{"/a": want["/a"], "/b": want["/b"], "/c": want["/c"], "/d": {Data: "7"}}, "after one: /d is not wanted; it has 7"},
		"field":         {Tree{"/a": {Data: `{"x":1,"y":[2,1]}`}, "/b": want["/b"], "/c": want["/c"]}, "after one: /a: field y is [2 1], want [1 2]"},
		"missing field": {Tree{"/a": {Data: `{"x":1}`}, "/b": want["/b"], "/c": want["/c"]}, "after one: /a: field y is missing; want [1 2]"},
		"more fields":   {Tree{"/a": {Data: `{"x":1,"y":[1,2],"z":"q"}`}, "/b": want["/b"], "/c": want["/c"]}, "after one: /a: field z is not wanted; it is q"},
		"text":          {Tree{"/a": want["/a"], "/b": {Data: "6", Version: 3}, "/c": want["/c"]}, `after one: /b: "6", want "5"`},
		"version":       {Tree{"/a": want["/a"], "/b": {Data: "5", Version: 4}, "/c": want["/c"]}, "after one: /b: the node's version is 4, want 3"},
		"null":          {Tree{"/a": want["/a"], "/b": want["/b"], "/c": {}}, "after one: /c: no data at all: false, want true"},
		"ephemeral":     {Tree{"/a": want["/a"], "/b": want["/b"], "/c": {Null: true, Ephemeral: true}}, "after one: /c: ephemeral: true, want false"},
		"acl":           {Tree{"/a": want["/a"], "/b": want["/b"], "/c": {Null: true, ACL: "x"}}, "after one: /c: access control: x, want "},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, []string{c.diff}, Compare(record(want), record(c.got))) })
	}
	require.Equal(t, []string{`step "two" is missing`}, Compare(record(want), Recording{Steps: record(want).Steps[:1]}))
	require.Equal(t, []string{`step "two" is not wanted`}, Compare(Recording{Steps: record(want).Steps[:1]}, record(want)))
}

func TestRecordingsAreKept(t *testing.T) {
	r := Recording{Of: "x", Steps: []Step{{Name: "one", Nodes: Tree{"/a": {Data: `{"x":1}`, Version: 3}, "/b": {Null: true}}}}}
	file := filepath.Join(t.TempDir(), "r.json")
	require.NoError(t, r.Save(file))
	again, err := Load(file)
	require.NoError(t, err)
	require.Equal(t, r, again)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o644))
	_, err = Load(file)
	require.ErrorContains(t, err, "r.json")
}

// TestConditionsAreSeenToFail plays what each step waits for against nodes for which it should wait.
func TestConditionsAreSeenToFail(t *testing.T) {
	good := Tree{
		"/controller": {}, "/brokers/ids/1": {}, "/brokers/ids/2": {},
		"/brokers/topics/t":                    {Data: `{"partitions":{"0":[1,2]},"adding_replicas":{},"removing_replicas":{}}`},
		"/brokers/topics/t/partitions/0/state": {Data: `{"leader":1,"isr":[2,1]}`},
	}
	for _, c := range []func(Tree) error{hasController, brokers(1, 2), settled, inSync, preferred, gone("u")} {
		require.NoError(t, c(good))
	}
	bad := Tree{
		"/brokers/ids/1": {}, "/admin/delete_topics/x": {},
		"/brokers/topics/t":                    {Data: `{"partitions":{"0":[1,2]},"adding_replicas":{"0":[2]}}`},
		"/brokers/topics/t/partitions/0/state": {Data: `{"leader":2,"isr":[2]}`},
	}
	for _, c := range []func(Tree) error{hasController, brokers(1, 2), settled, inSync, preferred, gone("t")} {
		require.Error(t, c(bad))
	}
	delete(bad, "/brokers/topics/t/partitions/0/state")
	require.ErrorContains(t, inSync(bad), "led by -1")
}
