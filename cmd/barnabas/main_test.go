package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/barnabas-mq/barnabas/core/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what one command line did.
type result struct {
	code     int
	out, err string
}

// barnabas runs a command line with an environment of its own.
func barnabas(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var out, err bytes.Buffer
	code := run(newApp(strings.NewReader(""), &out, &err, environ), args)
	return result{code, out.String(), err.String()}
}

func write(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "b.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func testParts(t *testing.T) components {
	t.Helper()
	parts, err := newComponents()
	require.NoError(t, err)
	return parts
}

func TestComposeNothing(t *testing.T) {
	c, err := compose(config.Section{}, testParts(t))
	require.NoError(t, err)
	assert.Equal(t, "mmap", c.storage.Name())
	assert.Equal(t, "standalone", c.election.Name())
	assert.Equal(t, "murmur2", c.partitioners[0].Name())
	assert.Equal(t, "topic", c.offsets.Name())
	assert.Len(t, c.compression, 4)
	assert.Equal(t, "PLAINTEXT://127.0.0.1:9092", c.broker.Listeners[0].String())
	assert.Equal(t, []string{"data"}, c.broker.LogDirs)
	assert.Empty(t, c.warnings)
}

func TestComposeTakesRoles(t *testing.T) {
	root, err := config.Parse("b.yaml", []byte("storage: {sendfile: {chunk: 64KiB}}\npartitioner: roundrobin\ncompression: [lz4, {gzip: {level: 3}}]\noffsets: memory\n"))
	require.NoError(t, err)
	c, err := compose(root, testParts(t))
	require.NoError(t, err)
	assert.Equal(t, "sendfile", c.storage.Name())
	assert.Equal(t, "64KiB", c.storage.Options()[0].Default)
	assert.Equal(t, "roundrobin", c.partitioners[0].Name())
	assert.Equal(t, "memory", c.offsets.Name())
	require.Len(t, c.compression, 2)
	assert.Equal(t, "lz4", c.compression[0].Name())

	root, err = config.Parse("b.yaml", []byte("compression: []"))
	require.NoError(t, err)
	c, err = compose(root, testParts(t))
	require.NoError(t, err)
	assert.Empty(t, c.compression)
}

func TestComposeWarnsOfAnotherCoordinationsProperties(t *testing.T) {
	const broker = "broker:\n  zookeeper.connect: localhost:2181\n"
	root, err := config.Parse("b.yaml", []byte(broker))
	require.NoError(t, err)
	c, err := compose(root, testParts(t))
	require.NoError(t, err)
	assert.Equal(t, []string{"b.yaml:2: broker.zookeeper.connect: has no effect: `election` is standalone, not zookeeper"}, c.warnings)
	root, err = config.Parse("b.yaml", []byte(broker+"election: zookeeper\n"))
	require.NoError(t, err)
	c, err = compose(root, testParts(t))
	require.NoError(t, err)
	assert.Empty(t, c.warnings)
}

func TestComposeFaults(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"top level", "storge: mmap", `b.yaml:1: unknown key "storge" (did you mean "storage"?)`},
		{"top level, null", "nothing:", `b.yaml:1: unknown key "nothing"`},
		{"role unknown", "storage: nmap", `b.yaml:1: storage: unknown storage "nmap" (did you mean "mmap"?); valid: mmap, sendfile`},
		{"role in capitals", "storage: MMAP", `did you mean "mmap"?`},
		{"role empty", "storage:", `b.yaml:1: storage: want one name`},
		{"role list", "storage: [mmap]", `b.yaml:1: storage: want one name`},
		{"two names", "storage: {mmap: {}, sendfile: {}}", `b.yaml:1: storage: want one name`},
		{"option", "storage:\n  mmap:\n    max_grwth: 1MiB", `b.yaml:3: storage.mmap: unknown key "max_grwth" (did you mean "max_growth"?)`},
		{"option type", "storage:\n  mmap:\n    max_growth: many", `b.yaml:3: storage.mmap.max_growth: want a size`},
		{"options no mapping", "storage: {mmap: 5}", `b.yaml:1: storage.mmap: want a mapping of keys to values, not the number 5`},
		{"codecs no list", "compression: gzip", `b.yaml:1: compression: want a list of names`},
		{"codec twice", "compression: [gzip, gzip]", `b.yaml:1: compression[1]: gzip is named twice`},
		{"codec unknown", "compression: [gzip, brotli]", `b.yaml:1: compression[1]: unknown compression "brotli"`},
		{"codec missing", "broker:\n  compression.type: zstd\ncompression: [gzip]", `b.yaml:2: broker.compression.type: this broker has no codec zstd; it has: gzip`},
		{"property", "broker:\n  log.dris: x", `b.yaml:2: broker.log.dris: unknown property (did you mean "log.dirs"?)`},
		{"properties together", "broker:\n  listeners: A://:1", `b.yaml:2: broker.listeners: no protocol is given for the listener A`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root, err := config.Parse("b.yaml", []byte(tt.text))
			require.NoError(t, err)
			c, err := compose(root, testParts(t))
			require.Error(t, err)
			assert.Nil(t, c)
			assert.Contains(t, err.Error(), tt.want)
			assert.Len(t, err, 1)
		})
	}
}

func TestFaultsComeInOrder(t *testing.T) {
	file := write(t, "storage: nmap\noffsets: disk\nbroker:\n  num.partitions: x\nstorge: y\n")
	got := barnabas(t, nil, "config", "check", file, "--set", "partitioner=dice")
	assert.Equal(t, exitWrong, got.code)
	var order []string
	for _, line := range strings.Split(strings.TrimSpace(got.err), "\n") {
		order = append(order, strings.TrimPrefix(line, file)[:3])
	}
	assert.Equal(t, []string{"--s", ":1:", ":2:", ":4:", ":5:"}, order, got.err)
}

func TestConfigCheck(t *testing.T) {
	file := write(t, "broker:\n  log.dirs: /a\n  num.io.threads: 9\nstorage: sendfile\n")
	got := barnabas(t, nil, "config", "check", file)
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "sendfile (chunk: ")
	assert.Contains(t, got.out, "/a\n")
	assert.Contains(t, got.err, file+":3: broker.num.io.threads: has no effect")

	bad := write(t, "broker:\n  log.dris: /a\nstorage:\n  mmap:\n    max_grwth: 5\n")
	got = barnabas(t, nil, "config", "check", bad)
	assert.Equal(t, exitWrong, got.code)
	assert.Empty(t, got.out)
	assert.Equal(t, bad+":2: broker.log.dris: unknown property (did you mean \"log.dirs\"?)\n"+
		bad+":5: storage.mmap: unknown key \"max_grwth\" (did you mean \"max_growth\"?)\n", got.err)

	got = barnabas(t, nil, "config", "check", bad, "-o", "json")
	assert.Equal(t, exitWrong, got.code)
	assert.JSONEq(t, `{"file": "`+bad+`", "sound": false, "warnings": [], "faults": [
		{"file": "`+bad+`", "line": 2, "path": "broker.log.dris", "text": "unknown property (did you mean \"log.dirs\"?)"},
		{"file": "`+bad+`", "line": 5, "path": "storage.mmap", "text": "unknown key \"max_grwth\" (did you mean \"max_growth\"?)"}]}`, got.out)
	got = barnabas(t, nil, "config", "check", file, "-o", "yaml")
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "sound: true\n")
	assert.Contains(t, got.out, "  data: /a\n")

	got = barnabas(t, nil, "config", "check", filepath.Join(t.TempDir(), "none.yaml"))
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, "no such file")
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "check").code)
	assert.Equal(t, exitWrong, barnabas(t, nil, "config", "check", "--nope", file).code)
}

func TestPrecedence(t *testing.T) {
	file := write(t, "broker:\n  log.dirs: /file\n  num.partitions: 3\nstorage: mmap\n")
	environ := []string{"BARNABAS_BROKER_LOG_DIRS=/env # not a comment", "BARNABAS_STORAGE=sendfile", "HOME=/x", "BARNABAS_BROKER_PORT=tcp://1.2.3.4", "BARNABAS_STORAG=x"}

	got := barnabas(t, environ, "config", "check", file)
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "sendfile")
	assert.Contains(t, got.out, "/env # not a comment\n")
	assert.Contains(t, got.err, "BARNABAS_BROKER_PORT is not known and has no effect")
	assert.Contains(t, got.err, `BARNABAS_STORAG is not known and has no effect (did you mean "BARNABAS_STORAGE"?)`)

	got = barnabas(t, environ, "config", "check", file, "--set", "broker.log.dirs=/set", "--set", "storage={mmap: {max_growth: 1MiB}}", "--set", "storage.mmap.min_growth=128KiB")
	assert.Equal(t, exitOK, got.code, got.err)
	assert.Contains(t, got.out, "min_growth: 128KiB, max_growth: 1MiB")
	assert.Contains(t, got.out, "/set\n")

	for set, want := range map[string]string{
		"broker.log.dris=x":       `--set: broker.log.dris: unknown property (did you mean "log.dirs"?)`,
		"broker.num.partitions=q": "--set: broker.num.partitions: Invalid value q",
		"storage.mmap.x=1":        `--set: storage.mmap: unknown key "x"`,
		"storage=[":               `--set: storage: the value "[" is not valid YAML`,
		"storage":                 `--set: want KEY=VALUE, not "storage"`,
		"topics=x":                `--set: unknown key "topics"`,
	} {
		got = barnabas(t, nil, "config", "check", file, "--set", set)
		assert.Equal(t, exitWrong, got.code, set)
		assert.Contains(t, got.err, want)
	}
	got = barnabas(t, []string{"BARNABAS_STORAGE=nmap"}, "config", "check", file)
	assert.Equal(t, exitWrong, got.code)
	assert.Contains(t, got.err, `BARNABAS_STORAGE: storage: unknown storage "nmap"`)
}

func TestFindingTheFile(t *testing.T) {
	a := newApp(nil, nil, nil, nil)
	a.parts = testParts(t)
	t.Chdir(t.TempDir())
	c, err := a.load(source{})
	require.NoError(t, err)
	assert.Empty(t, c.file)

	require.NoError(t, os.WriteFile("barnabas.yaml", []byte("storage: sendfile"), 0o600))
	c, err = a.load(source{})
	require.NoError(t, err)
	assert.Equal(t, "barnabas.yaml", filepath.Base(c.file))
	assert.Equal(t, "sendfile", c.storage.Name())

	require.NoError(t, os.WriteFile("other.yaml", []byte("partitioner: roundrobin"), 0o600))
	a.environ = []string{"BARNABAS_CONFIG=other.yaml"}
	c, err = a.load(source{})
	require.NoError(t, err)
	assert.Equal(t, "other.yaml", c.file)
	c, err = a.load(source{file: "barnabas.yaml"})
	require.NoError(t, err)
	assert.Equal(t, "barnabas.yaml", c.file, "the flag wins")

	require.NoError(t, os.WriteFile("barnabas.yaml", []byte("storage: [\n"), 0o600))
	a.environ = nil
	_, err = a.load(source{})
	assert.ErrorContains(t, err, "barnabas.yaml:", "a broken file is an error, not as good as none")
}

func TestVersion(t *testing.T) {
	got := barnabas(t, nil, "version")
	assert.Equal(t, exitOK, got.code)
	assert.Regexp(t, `^barnabas \S+ go\S+ \w+/\w+\n$`, got.out)
}

func TestUnknownCommand(t *testing.T) {
	got := barnabas(t, nil, "srve")
	assert.NotEqual(t, exitOK, got.code)
	assert.Contains(t, got.err, "srve")
}

// TestEveryCommandHasExamples: who asks for --help sees what to type, and the examples are of commands and flags that there are.
func TestEveryCommandHasExamples(t *testing.T) {
	a := newApp(nil, nil, nil, nil)
	a.parts = testParts(t)
	flag := regexp.MustCompile(`(?:^| )(-[a-zA-Z]|--[a-z][a-z0-9-]*)`)
	commands := 0
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			look(sub)
		}
		if c.HasSubCommands() || c.GroupID == kafkaToolsGroup {
			return
		}
		commands++
		assert.NotEmpty(t, c.Example, c.CommandPath())
		for line := range strings.Lines(c.Example) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " | ")
			words := strings.Fields(line)
			if len(words) == 0 || words[0] != "barnabas" || c.DisableFlagParsing {
				continue
			}
			if !assert.True(t, line == c.CommandPath() || strings.HasPrefix(line, c.CommandPath()+" "), "%s has the example %q", c.CommandPath(), line) {
				continue
			}
			for _, m := range flag.FindAllStringSubmatch(regexp.MustCompile(`'[^']*'|"[^"]*"|\$\([^)]*\)`).ReplaceAllString(line, "x"), -1) {
				name := strings.TrimLeft(m[1], "-")
				known := c.Flags().Lookup(name)
				if len(name) == 1 {
					known = c.Flags().ShorthandLookup(name)
				}
				assert.NotNil(t, known, "%s has the example %q", c.CommandPath(), line)
			}
		}
	}
	look(newRoot(a))
	assert.Greater(t, commands, 40)
}
