package archtest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestHouse holds the repository against all rules.
func TestHouse(t *testing.T) {
	tree, err := Load(os.DirFS("../../.."))
	require.NoError(t, err)
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			faults, applied := rule.Check(tree)
			for _, fault := range faults {
				t.Error(fault)
			}
			if applied == 0 {
				t.Error("the rule applies to nothing any more")
			}
			if t.Failed() {
				t.Log("the reason for this rule: " + rule.Reason)
			}
		})
	}
}

// fixture makes a tree of files. A path alone is a file of its package with the given body.
func fixture(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	fsys := fstest.MapFS{}
	for path, body := range files {
		if strings.HasSuffix(path, ".go") && !strings.HasPrefix(body, "package") && !strings.HasPrefix(body, "//") {
			body = "package p\n" + body
		}
		fsys[path] = &fstest.MapFile{Data: []byte(body)}
	}
	tree, err := Load(fsys)
	require.NoError(t, err)
	return tree
}

func imp(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		fmt.Fprintf(&b, "import _ %q\n", strings.Replace(path, "B/", Module+"/", 1))
	}
	return b.String()
}

// good is a house without fault in which each rule has something to do.
func good() map[string]string {
	return map[string]string{
		"core/storage/a.go":                        imp("io", "B/core/plugin", "B/core/config", "B/core/record"),
		"core/storage/a_test.go":                   imp("github.com/stretchr/testify/assert"),
		"core/storage/storagetest/a.go":            imp("testing", "B/core/storage"),
		"core/partitioner/a.go":                    "",
		"core/election/a.go":                       "",
		"core/compression/a.go":                    "",
		"core/offsets/a.go":                        "",
		"core/log/a.go":                            imp("os", "B/core/storage", "github.com/google/uuid"),
		"core/log/a_test.go":                       imp("B/storage-mmap"),
		"core/broker/internal/api/a.go":            imp("B/core/broker/internal/wire", "B/core/broker/internal/group"),
		"core/broker/internal/wire/a.go":           imp("net"),
		"core/broker/internal/partition/a.go":      "import \"time\"\ntype state struct{ at time.Time }\nfunc (s *state) step(now time.Time) bool { return now.After(s.at) }\ntype other struct{ c chan int }\nfunc (o *other) run() { go func() { o.c <- 1 }() }",
		"core/broker/internal/group/a.go":          "type Group struct{}\nfunc (g Group) step() {}",
		"core/broker/internal/controller/a.go":     "type Machine[T any] struct{}\nfunc (m *Machine[T]) step() {}",
		"plugins/compression/gzip/a.go":            imp("B/core/compression", "github.com/klauspost/compress/gzip", "B/plugins/compression/gzip/internal/x"),
		"plugins/compression/gzip/internal/x/a.go": imp("B/core/record"),
		"plugins/sdk/a.go":                         imp("B/core/partitioner"),
		"plugins/partitioners/mine/a.go":           imp("B/plugins/sdk"),
		"storage-mmap/a.go":                        imp("B/core/storage"),
		"membership/standalone/a.go":               imp("B/core/election"),
		"cmd/barnabas/components.go":               imp("B/plugins/compression/gzip", "B/storage-mmap"),
		"plugins/sdk/testbroker/testbroker.go":     imp("B/core/brokertest", "B/storage-mmap"),
		"core/config/kafka/a.go":                   "type BrokerConfig struct{ Rack string }\ntype TopicConfig struct{ A, B int }\nfunc f(b BrokerConfig, t TopicConfig) { _, _, _ = b.Rack, t.A, t.B }",
		"cmd/barnabas/print.go":                    "import \"fmt\"\nfunc f() { fmt.Println() }",
		"README.md":                                "",
		".ci/run":                                  "",
	}
}

func TestGoodHouse(t *testing.T) {
	tree := fixture(t, good())
	for _, rule := range Rules() {
		faults, applied := rule.Check(tree)
		assert.Empty(t, faults, rule.Name)
		assert.NotZero(t, applied, rule.Name)
		assert.NotEmpty(t, rule.Reason)
	}
}

func TestEmptyHouse(t *testing.T) {
	tree := fixture(t, nil)
	for _, rule := range Rules() {
		_, applied := rule.Check(tree)
		assert.Zero(t, applied, "%s: a rule that applies to nothing must say so", rule.Name)
	}
}

// TestEachRuleCanFail puts one file into the good house and wants just the one rule to object.
func TestEachRuleCanFail(t *testing.T) {
	long := strings.Repeat("// x\n", 700)
	wide := "type T interface {\n" + strings.Repeat("M%d()\n", 11) + "}"
	wide = fmt.Sprintf(wide, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	tests := []struct {
		rule, path, body, want string
	}{
		{"contracts stand alone", "core/storage/b.go", imp("B/core/log"), "core/storage/b.go imports " + Module + "/core/log"},
		{"contracts stand alone", "core/offsets/b.go", imp("github.com/google/uuid"), "imports github.com/google/uuid"},
		{"core knows no implementation", "core/log/b.go", imp("B/storage-mmap"), "imports " + Module + "/storage-mmap"},
		{"core knows no implementation", "core/config/b.go", imp("github.com/spf13/viper"), "imports github.com/spf13/viper"},
		{"core knows no implementation", "core/record/b.go", imp("compress/gzip"), "imports compress/gzip"},
		{"core knows no implementation", "core/log/b.go", imp("B/cmd/barnabas"), "imports " + Module + "/cmd/barnabas"},
		{"implementations know contracts, not one another", "plugins/compression/lz4/b.go", imp("B/plugins/compression/gzip"), "imports"},
		{"implementations know contracts, not one another", "storage-sendfile/b.go", imp("B/storage-mmap"), "imports"},
		{"implementations know contracts, not one another", "membership/gossip/b.go", imp("B/membership/standalone"), "imports"},
		{"implementations know contracts, not one another", "storage-mmap/b_test.go", imp("B/core/broker"), "imports"},
		{"one file names the implementations", "cmd/barnabas/b.go", imp("B/storage-mmap"), "cmd/barnabas/b.go imports"},
		{"one file names the implementations", "cmd/dev/b.go", imp("B/plugins/compression/gzip"), "cmd/dev/b.go imports"},
		{"one file names the implementations", "plugins/sdk/testbroker/testbroker.go", imp("B/core/brokertest"), "names no implementation any more"},
		{"implementations know contracts, not one another", "plugins/sdk/testbroker/b.go", imp("B/storage-mmap"), "imports"},
		{"no init, no package-level mutable state", "core/log/b.go", "func init() {}", "func init"},
		{"no init, no package-level mutable state", "core/log/b.go", "var n int\nfunc f() { n = 1 }", "n is written to"},
		{"no init, no package-level mutable state", "core/log/b.go", "var n int\nfunc f() { n++ }", "n is written to"},
		{"no init, no package-level mutable state", "core/log/b.go", "var m = map[int]int{}\nfunc f() { m[1] = 2 }", "m is written to"},
		{"no init, no package-level mutable state", "core/log/b.go", "var m = map[int]int{}\nfunc f() { delete(m, 1) }", "m is written to"},
		{"no init, no package-level mutable state", "core/log/b.go", "var m = make(map[int]int)", "m is a empty map"},
		{"no init, no package-level mutable state", "core/log/b.go", "var s struct{ n int }\nfunc f() { s.n = 1 }", "s is written to"},
		{"no init, no package-level mutable state", "core/log/b.go", "var s int\nfunc f() *int { return &s }", "s is written to"},
		{"no init, no package-level mutable state", "core/log/b.go", "import \"sync\"\nvar mu sync.Mutex", "mu is a sync.Mutex"},
		{"no init, no package-level mutable state", "core/log/b.go", "import \"sync\"\nvar mu = &sync.Map{}", "mu is a sync.Map"},
		{"no init, no package-level mutable state", "core/log/b.go", "import \"sync/atomic\"\nvar n atomic.Int64", "n is a atomic.Int64"},
		{"no init, no package-level mutable state", "core/log/b.go", "import \"sync/atomic\"\nvar n atomic.Pointer[int]", "n is a atomic.Pointer"},
		{"no init, no package-level mutable state", "core/log/b.go", "var c = make(chan int)", "c is a channel"},
		{"knowledge in the broker runs one way", "core/broker/internal/wire/b.go", imp("B/core/broker/internal/api"), "imports"},
		{"knowledge in the broker runs one way", "core/broker/internal/group/b.go", imp("B/core/broker/internal/wire"), "imports"},
		{"knowledge in the broker runs one way", "core/broker/internal/controller/b.go", imp("net"), "imports net"},
		{"deciders are state machines", "core/broker/internal/group/b.go", "import \"time\"\nfunc (g *Group) now() time.Time { return time.Now() }", "Group.now asks for the time: time.Now"},
		{"deciders are state machines", "core/broker/internal/group/b.go", "func (g Group) b() { go g.step() }", "Group.b starts a goroutine"},
		{"deciders are state machines", "core/broker/internal/controller/b.go", "import \"os\"\nfunc (m *Machine[T]) b() { os.Exit(1) }", "Machine.b does I/O: os.Exit"},
		{"deciders are state machines", "core/broker/internal/partition/b.go", "func (s *state) b() { select {} }", "state.b waits for a channel"},
		{"deciders are state machines", "core/broker/internal/txn/b.go", "type T struct{}", "core/broker/internal/txn: the decider \"Transaction\" has no methods"},
		{"files and interfaces stay small", "core/log/b.go", long, "core/log/b.go has 701 lines"},
		{"files and interfaces stay small", "core/log/b.go", wide, "the interface T has 11 methods"},
		{"the top level is the house", "Makefile", "", "Makefile has no place"},
		{"the top level is the house", "internal/a.go", "", "internal/ has no place"},
		{"every property that acts is read", "core/config/kafka/a.go", "type BrokerConfig struct{ Rack, Id string }\nfunc f(b BrokerConfig) { _ = b.Rack }", "nothing reads BrokerConfig.Id"},
		{"nothing is unfinished", "core/log/b.go", "// TO" + "DO: later\nfunc f() {}", `a comment says "TO` + `DO"`},
		{"nothing is unfinished", "core/log/b.go", "const s = \"not implem" + "ented\"", "a text says"},
		{"only commands print", "core/log/b.go", "import \"fmt\"\nfunc f() { fmt.Printf(\"\") }", "calls fmt.Printf"},
		{"only commands print", "core/log/b.go", "func f() { println() }", "calls println"},
		{"only commands print", "core/log/b.go", "import \"log\"\nfunc f() { log.Fatal() }", "calls log.Fatal"},
		{"only commands print", "storage-mmap/b.go", "import \"os\"\nfunc f() { os.Exit(1) }", "calls os.Exit"},
		{"no test skips", "core/log/b_test.go", "import \"testing\"\nfunc TestX(t *testing.T) { t.Skip() }", "skips"},
		{"no test skips", "core/log/b_test.go", "import \"testing\"\nfunc BenchmarkX(b *testing.B) { b.Skipf(\"\") }", "skips"},
	}
	failed := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.rule+"/"+tt.want, func(t *testing.T) {
			house := good()
			body := tt.body
			if strings.HasPrefix(body, "//") {
				body = "package p\n" + body
			}
			house[tt.path] = body
			tree := fixture(t, house)
			for _, rule := range Rules() {
				faults, _ := rule.Check(tree)
				if rule.Name != tt.rule {
					continue
				}
				failed[rule.Name] = true
				require.Len(t, faults, 1)
				assert.Contains(t, faults[0], tt.want)
			}
		})
	}
	for _, rule := range Rules() {
		assert.True(t, failed[rule.Name], "nothing here makes the rule %q fail", rule.Name)
	}
}

// TestWhatIsAllowed puts files into the good house that look like faults and aren't.
func TestWhatIsAllowed(t *testing.T) {
	tests := map[string]string{
		"a generated file may be long":        "// Code generated by x. DO NOT EDIT.\npackage p\n" + strings.Repeat("// x\n", 700),
		"a comment may allow a long file":     "package p\n\n// Longer than 600 lines: it is one table.\n" + strings.Repeat("// x\n", 700),
		"an error":                            "package p\nimport \"errors\"\nvar ErrX = errors.New(\"x\")",
		"a table":                             "package p\nvar table = [...]string{\"a\"}\nfunc f() string { return table[0] }",
		"a pool":                              "package p\nimport \"sync\"\nvar pool = sync.Pool{}\nfunc f() any { return pool.Get() }",
		"a local of the same name":            "package p\nvar n = 5\nfunc f() { n := 1; n = 2; _ = &n; var m int; m++ }\nfunc g(n int) { n++ }",
		"once":                                "package p\nimport \"sync\"\nvar once = sync.OnceValue(func() int { return 1 })",
		"a blank variable":                    "package p\nvar _ interface{} = nil",
		"an interface of ten":                 "package p\ntype T interface{ A(); B(); C(); D(); E(); F(); G(); H(); I(); J() }",
		"a method named Skip":                 "package p\ntype reader struct{}\nfunc (reader) Skip() {}\nfunc f(r reader) { r.Skip() }",
		"an action that is not possible":      "package p\nimport \"pgregory.net/rapid\"\nfunc f(t *rapid.T) { t.Skip() }",
		"a local package name":                "package p\ntype l struct{}\nfunc (l) Printf() {}\nfunc f(fmt l) { fmt.Printf() }",
		"an interface with a reason":          "package p\n\n// T is wide.\n//\n// More than ten methods: it is the standard's.\ntype T interface{ A(); B(); C(); D(); E(); F(); G(); H(); I(); J(); K() }",
		"the word not and the word implement": "package p\n\n// It does not implement that.\nfunc f() {}",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			house := good()
			house["core/log/b.go"] = body
			tree := fixture(t, house)
			for _, rule := range Rules() {
				faults, _ := rule.Check(tree)
				assert.Empty(t, faults, rule.Name)
			}
		})
	}
}
