// Command kcat makes the interop checks with the program kcat, which is librdkafka as Debian has it.
package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

func main() {
	os.Exit(probe.Main(func(bootstrap string) (probe.Client, probe.Quirks, error) {
		path, err := exec.LookPath("kcat")
		if err != nil {
			return nil, probe.Quirks{}, err
		}
		return &kcat{path: path, bootstrap: bootstrap, version: version(path)}, probe.Quirks{NoAdmin: true, NoTimestamps: true}, nil
	}))
}

// kcat runs the program once for every call.
type kcat struct {
	path, bootstrap, version string
}

// version is "1.7.1/librdkafka 2.0.2", out of the two that `kcat -V` prints.
func version(path string) string {
	out, err := exec.Command(path, "-V").CombinedOutput()
	if err != nil {
		return "unknown"
	}
	words := strings.FieldsFunc(string(out), func(r rune) bool { return strings.ContainsRune(" \n(),", r) })
	var found []string
	for i, w := range words[:len(words)-1] {
		if w == "Version" || w == "librdkafka" {
			found = append(found, words[i+1])
		}
	}
	return strings.Join(found, "/librdkafka ")
}

func (k *kcat) Version() string { return k.version }

var errNoAdmin = errors.New("kcat has no administration")

func (*kcat) CreateTopic(context.Context, string, int) error  { return errNoAdmin }
func (*kcat) DeleteTopic(context.Context, string) error       { return errNoAdmin }
func (*kcat) Partitions(context.Context, string) (int, error) { return 0, errNoAdmin }

// command is kcat with the settings that all calls share.
func (k *kcat) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.path, append([]string{"-b", k.bootstrap}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}
