package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
)

// TestOneKeyChoosesTheCoordination: options of several stand side by side, all are checked, and those of the chosen one are used.
func TestOneKeyChoosesTheCoordination(t *testing.T) {
	const both = "elections:\n  zookeeper: {connect: \"127.0.0.1:2181/x\"}\n  memberlist: {cluster: mine}\n"
	for _, c := range []struct{ text, want, fault string }{
		{"election: zookeeper\n" + both, "zookeeper (connect: 127.0.0.1:2181/x", ""},
		{"election: memberlist\n" + both, "cluster: mine", ""},
		{"election: standalone\n" + both, "standalone", ""},
		{both, "", "b.yaml:1: elections: want election: NAME beside it"},
		{"election: zookeeper\nelections: {memberlist: {cluster: mine}}\nbroker: {zookeeper.connect: \"127.0.0.1:2181/y\"}", "zookeeper (", ""},
		{"election: {memberlist: {voters: 5}}\n" + both, "", "b.yaml:1: election: want a name alone"},
		{"election: memberlist\nelections: {zookeeper: {conect: x}}", "", `did you mean "connect"?`},
		{"election: zookeeper\n" + strings.Replace(both, "mine", "not/ours", 1), "", "b.yaml:4: elections.memberlist.cluster"},
		{"election: zookeeper\nelections: {zookeper: {}}", "", `did you mean "zookeeper"?`},
		{"elections: zookeeper", "", "b.yaml:1: elections: want a mapping"},
		{"election: zookeper\n" + both, "", `b.yaml:1: election: unknown election "zookeper"`},
	} {
		root, err := config.Parse("b.yaml", []byte(c.text))
		require.NoError(t, err)
		got, err := compose(root, testParts(t))
		if c.fault != "" {
			assert.ErrorContains(t, err, c.fault, c.text)
			continue
		}
		require.NoError(t, err, c.text)
		assert.Empty(t, got.warnings, c.text)
		assert.Contains(t, describe(got.election), c.want, c.text)
	}
	text := "election: memberlist\n" + both
	rows := shownConfig(t, nil, "-c", write(t, text))
	assert.Regexp(t, `^memberlist \| .*:1$`, rows["election"])
	assert.Regexp(t, `^mine \| .*:4$`, rows["elections.memberlist.cluster"])
	assert.NoError(t, fits(t, printedSchema(t), text))
	assert.Error(t, fits(t, printedSchema(t), "elections: {zookeeper: {conect: x}}"))
	got := barnabas(t, nil, "config", "check", write(t, "election: zookeeper\n"+both), "--set", "elections.memberlist.cluster=no/name")
	assert.NotEqual(t, exitOK, got.code, "what isn't chosen is checked, too")
}
