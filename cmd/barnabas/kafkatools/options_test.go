package kafkatools

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOptions(t *testing.T) {
	options := []option{
		{name: "list"}, {name: "topic", arg: "t"}, {name: "topic-id", arg: "i"}, {name: "group", arg: "g", many: true},
		{name: "state", arg: "s", optional: true}, {name: "partitions", arg: "n", bits: 32, preset: "7"},
	}
	for _, test := range []struct {
		args   []string
		order  []string
		values map[string][]string
		rest   []string
	}{
		{[]string{"--list"}, []string{"list"}, map[string][]string{"list": nil}, nil},
		{[]string{"--topic", "a"}, []string{"topic"}, map[string][]string{"topic": {"a"}}, nil},
		{[]string{"--topic=a=b"}, []string{"topic"}, map[string][]string{"topic": {"a=b"}}, nil},
		{[]string{"-topic", "a", "-l"}, []string{"topic", "list"}, map[string][]string{"topic": {"a"}, "list": nil}, nil},
		{[]string{"--part", "-1"}, []string{"partitions"}, map[string][]string{"partitions": {"-1"}}, nil},
		{[]string{"--topic", "--list"}, []string{"topic"}, map[string][]string{"topic": {"--list"}}, nil},
		{[]string{"--group", "a", "--group", "b"}, []string{"group", "group"}, map[string][]string{"group": {"a", "b"}}, nil},
		{[]string{"--state", "--list"}, []string{"state", "list"}, map[string][]string{"state": {""}, "list": nil}, nil},
		{[]string{"--state", "stable"}, []string{"state"}, map[string][]string{"state": {"stable"}}, nil},
		{[]string{"x", "--list", "--", "--topic"}, []string{"list"}, map[string][]string{"list": nil}, []string{"x", "--topic"}},
	} {
		g, err := parse(options, test.args)
		require.NoError(t, err, test.args)
		assert.Equal(t, test.order, g.order, test.args)
		assert.Equal(t, test.values, g.values, test.args)
		assert.Equal(t, test.rest, g.rest, test.args)
	}
	for want, args := range map[string][]string{
		"nonsense is not a recognized option":            {"--nonsense"},
		"to is not a recognized option":                  {"--to", "x"}, // topic or topic-id
		"Option topic requires an argument":              {"--topic"},
		"Option list takes no argument":                  {"--list=x"},
		"Cannot parse argument 'x' of option partitions": {"--partitions", "x"},
		"Cannot parse argument '5000000000' of option":   {"--partitions", "5000000000"},
		"Found multiple arguments for option topic, but": {"--topic", "a", "--topic", "b"},
		" is not a recognized option":                    {"--=x"},
	} {
		_, err := parse(options, args)
		require.ErrorAs(t, err, new(usageError), args)
		assert.ErrorContains(t, err, want)
	}
	g, err := parse(options, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 7, g.number("partitions"), "the preset")
	assert.False(t, g.has("partitions"))
}

func TestToolsByName(t *testing.T) {
	for _, program := range []string{"kafka-topics", "/usr/bin/kafka-topics.sh", "./kafka-topics"} {
		tool, ok := Find(program)
		require.True(t, ok, program)
		assert.Equal(t, "kafka-topics", tool.Name)
	}
	_, ok := Find("barnabas")
	assert.False(t, ok)
	for _, tool := range Tools() {
		got := run(t, "", tool.Name+" --help")
		assert.Zero(t, got.code)
		assert.Contains(t, got.err, tool.About)
		got = run(t, "", tool.Name)
		assert.Equal(t, 1, got.code)
		got = run(t, "", tool.Name+" --version")
		assert.Equal(t, outcome{0, "1.2.3\n", ""}, got)
		got = run(t, "", tool.Name+" --nonsense")
		assert.Equal(t, 1, got.code)
		assert.Contains(t, got.err, "nonsense is not a recognized option\n\nOption")
	}
}

// TestRefusals holds that command lines that are wrong are found out before anything is asked or done.
func TestRefusals(t *testing.T) {
	const at = " --bootstrap-server 127.0.0.1:1"
	for line, want := range map[string]string{
		"kafka-topics --list --describe" + at:                                                                "exactly one action",
		"kafka-topics --list":                                                                                "--bootstrap-server must be specified",
		"kafka-topics --create" + at:                                                                         `Missing required argument "[topic]"`,
		"kafka-topics --alter --topic t" + at:                                                                `Missing required argument "[partitions]"`,
		"kafka-topics --alter --topic t --config a=b" + at:                                                   "kafka-configs",
		"kafka-topics --list --partitions 1" + at:                                                            `"[partitions]" can't be used with option "[list]"`,
		"kafka-topics --create --topic t --partitions 1 --replica-assignment 1" + at:                         `"[replica-assignment]" can't be used`,
		"kafka-topics --describe --topics-with-overrides --unavailable-partitions" + at:                      "can't be used",
		"kafka-topics --list --bootstrap-server x":                                                           "Invalid url in bootstrap.servers: x",
		"kafka-configs --alter" + at:                                                                         "At least one entity type",
		"kafka-configs --describe --entity-type things" + at:                                                 "Invalid entity type things",
		"kafka-configs --alter --broker x --add-config a=b" + at:                                             "valid integer broker id",
		"kafka-configs --alter --topic t" + at:                                                               "At least one of --add-config",
		"kafka-configs --alter --entity-type topics --add-config a=b" + at:                                   "an entity name must be specified",
		"kafka-configs --describe --topic t --add-config a=b" + at:                                           "can't be used",
		"kafka-configs --describe --entity-type topics --topic t" + at:                                       "should not be used in conjunction",
		"kafka-configs --describe --entity-name t" + at:                                                      "More entity names",
		"kafka-configs --describe --topic t --bootstrap-controller c:1":                                      "isn't supported",
		"kafka-get-offsets --topic-partitions a --topic b" + at:                                              "cannot be used with",
		"kafka-get-offsets --time soon" + at:                                                                 "Malformed time argument soon",
		"kafka-get-offsets --topic-partitions t:x" + at:                                                      "Invalid rule specification",
		"kafka-consumer-groups --describe" + at:                                                              "takes one of these options",
		"kafka-consumer-groups --describe --group g --members --state" + at:                                  "at most one of these",
		"kafka-consumer-groups --list --members" + at:                                                        "unavailable",
		"kafka-consumer-groups --delete --group g --topic t" + at:                                            "topic-specific",
		"kafka-consumer-groups --delete-offsets --group g" + at:                                              "takes the following options",
		"kafka-consumer-groups --reset-offsets --group g --to-latest" + at:                                   "reset scopes",
		"kafka-consumer-groups --reset-offsets --group g --topic t" + at:                                     "takes one of these options",
		"kafka-consumer-groups --reset-offsets --group g --topic t --to-latest --to-offset 1" + at:           "takes one of these options",
		"kafka-consumer-groups --reset-offsets --group g --to-latest --dry-run --execute" + at:               "only accepts one of",
		"kafka-console-producer" + at:                                                                        `Missing required argument "[topic]"`,
		"kafka-console-producer --topic t":                                                                   "bootstrap-server",
		"kafka-console-producer --topic t --compression-codec lzma" + at:                                     "Unknown compression name: lzma",
		"kafka-console-producer --topic t --request-required-acks 2" + at:                                    "acks",
		"kafka-console-producer --topic t --line-reader com.example.Reader" + at:                             "--line-reader",
		"kafka-console-producer --topic t --property a=b --reader-property a=b" + at:                         "cannot be specified together",
		"kafka-console-producer --topic t --reader-property headers.separator=:" + at:                        "may not be equal",
		"kafka-console-consumer" + at:                                                                        "[topic], [include]",
		"kafka-console-consumer --topic t --offset 3" + at:                                                   "The partition is required",
		"kafka-console-consumer --include t --partition 3" + at:                                              "The topic is required",
		"kafka-console-consumer --topic t --partition 0 --group g" + at:                                      "cannot be specified together",
		"kafka-console-consumer --topic t --partition 0 --offset soon" + at:                                  "The provided offset value 'soon' is incorrect",
		"kafka-console-consumer --topic t --formatter com.example.Formatter" + at:                            "com.example.Formatter",
		"kafka-console-consumer --topic t --value-deserializer com.example.D" + at:                           "com.example.D",
		"kafka-console-consumer --topic t --from-beginning --command-property auto.offset.reset=latest" + at: "simultaneously",
		"kafka-console-consumer --topic t --group g --command-property group.id=h" + at:                      "do not match",
		"kafka-dump-log --deep-iteration":                                                                    `Missing required argument "[files]"`,
		"kafka-dump-log --files x --cluster-metadata-decoder":                                                "isn't supported",
		"kafka-dump-log --files x --value-decoder-class com.example.D":                                       "com.example.D",
	} {
		got := run(t, "", line)
		assert.Equal(t, 1, got.code, line)
		assert.Contains(t, got.err, want, line)
		assert.NotContains(t, got.out, "Error while executing", line)
	}
}
