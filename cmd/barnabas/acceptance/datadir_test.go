package acceptance

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// fingerprint is all names, sizes, modes and contents below a directory.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&all, "%s %s", path, info.Mode())
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&all, " %d %x", len(b), sha256.Sum256(b))
		}
		all.WriteByte('\n')
		return nil
	}))
	return all.String()
}

// used is a directory that a broker has used and left in order; its options start another one there.
func used(t *testing.T) target.Options {
	t.Helper()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("t", 2, forever())
	c.accepted("t", 0, unhex(t, va1))
	n.stop()
	return n.options
}

// TestForeignDataIsRefused: a directory that isn't this broker's, or that it doesn't understand, is left exactly as it is, and
// the message says what to do.
func TestForeignDataIsRefused(t *testing.T) {
	t.Parallel()
	rewrite := func(name, old, with string) func(*testing.T, *target.Options) {
		return func(t *testing.T, o *target.Options) {
			path := filepath.Join(o.Dir, "data", name)
			b := string(read(t, path))
			require.Contains(t, b, old)
			write(t, path, []byte(strings.Replace(b, old, with, 1)))
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, o *target.Options)
		says   []string
	}{
		"another broker": {func(_ *testing.T, o *target.Options) { o.Properties = props{"broker.id": "2"} }, []string{"broker", "1", "2"}},
		"another cluster": {func(t *testing.T, o *target.Options) {
			path := filepath.Join(o.Dir, "data", "meta.properties")
			lines := strings.Split(string(read(t, path)), "\n")
			for i, line := range lines {
				if strings.HasPrefix(line, "cluster.id=") {
					lines[i] = "cluster.id=AAAAAAAAAAAAAAAAAAAAAA"
				}
			}
			write(t, path, []byte(strings.Join(lines, "\n")))
		}, []string{"cluster", "AAAAAAAAAAAAAAAAAAAAAA"}},
		"Kafka without ZooKeeper": {rewrite("meta.properties", "version=0", "version=1"), []string{"version", "directory of its own"}},
		"a newer format":          {rewrite("meta.properties", "version=0", "version=2"), []string{"version", "newer"}},
		"no version":              {rewrite("meta.properties", "version=0", ""), []string{"version"}},
		"noise": {func(t *testing.T, o *target.Options) {
			write(t, filepath.Join(o.Dir, "data", "meta.properties"), noise(100))
		}, []string{"meta.properties"}},
		"a newer coordination file": {rewrite("barnabas-coordination.jsonl", `"version":1`, `"version":2`), []string{"barnabas-coordination.jsonl", "newer"}},
		"a directory of somebody else's": {func(t *testing.T, o *target.Options) {
			require.NoError(t, os.Mkdir(filepath.Join(o.Dir, "data", "photographs"), 0o755))
		}, []string{"photographs"}},
		"one directory twice": {func(_ *testing.T, o *target.Options) {
			data := filepath.Join(o.Dir, "data")
			o.Properties = props{"log.dirs": data + "," + data}
		}, []string{"log.dirs"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := used(t)
			c.change(t, &o)
			data := filepath.Join(o.Dir, "data")
			before := fingerprint(t, data)
			said := refused(t, o)
			for _, s := range c.says {
				assert.Contains(t, said, s)
			}
			assert.Equal(t, before, fingerprint(t, data), "untouched")
		})
	}
	t.Run("in use", func(t *testing.T) {
		t.Parallel()
		n := begin(t, "", nil)
		c := n.dial()
		c.createTopic("t", 1, nil)
		second := n.options
		second.Addr = "127.0.0.1:" + freePorts(t, 1)[0]
		before := fingerprint(t, n.data())
		said := refused(t, second)
		assert.Contains(t, said, "in use")
		assert.Contains(t, said, n.data())
		assert.Equal(t, before, fingerprint(t, n.data()), "untouched")
		c.alive()
		write(t, filepath.Join(n.options.Dir, "barnabas.yaml"), nil) // the second one's
	})
	t.Run("a file", func(t *testing.T) {
		t.Parallel()
		o := target.Options{Dir: t.TempDir()}
		write(t, filepath.Join(o.Dir, "data"), []byte("precious"))
		said := refused(t, o)
		assert.Contains(t, said, filepath.Join(o.Dir, "data"))
		assert.Equal(t, []byte("precious"), read(t, filepath.Join(o.Dir, "data")))
	})
}
