package interop

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// partitionCounts are the numbers of partitions for which it is recorded where keys go.
func partitionCounts() []string { return []string{"1", "2", "3", "12", "50", "97"} }

// RecordPartitions records where real clients put records, which our partitioners are tested against: librdkafka's default,
// which produces to the broker at addr, and the Java client's, which are asked directly.
func RecordPartitions(ctx context.Context, e *task.Env, t *tools.Tools, addr string) error {
	i := installer{env: e, tools: t}
	python, err := i.python("partitions.py")(ctx)
	if err != nil {
		return err
	}
	java, err := i.java("java-partitions", "partitions.pom.xml", "partitions")(ctx)
	if err != nil {
		return err
	}
	keys := recordedKeys()
	counts := partitionCounts()
	head := "key\t" + strings.Join(counts, "\t") + "\n"
	for _, one := range []struct {
		partitioner, head string
		args              []string
		keys              []string
	}{
		// librdkafka takes an empty key for none, and puts it anywhere.
		{"crc32", head, append(append(python.args, addr), counts...), keys[1:]},
		{"murmur2", head, append(append(java.args, "keys"), counts...), keys},
		{"sticky", "partitions\tavailable\tfrom\tto\n", append(java.args, "sticky"), nil},
	} {
		out, err := e.Output(ctx, task.Command{Args: one.args, Stdin: strings.NewReader(strings.Join(one.keys, "\n"))})
		if err != nil {
			return err
		}
		if rows := strings.Count(out, "\n"); rows < len(one.keys) || rows == 0 {
			return fmt.Errorf("%s: %d lines for %d keys", one.partitioner, rows, len(one.keys))
		}
		dir := filepath.Join(e.Root, "plugins", "partitioners", one.partitioner, "testdata")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "client.tsv"), []byte(one.head+out), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// recordedKeys are keys as people use them and of random bytes, of all lengths up to 40, in hexadecimal. The first is empty. They
// are the same each time.
func recordedKeys() []string {
	var keys []string
	add := func(key []byte) { keys = append(keys, hex.EncodeToString(key)) }
	r := rand.New(rand.NewPCG(480, 794))
	for length := range 41 {
		key := make([]byte, length)
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		add(key)
	}
	for i := range 40 {
		add([]byte("customer-" + strconv.Itoa(i*7919)))
	}
	for _, text := range []string{"a", "Ångström", "ключ", "鍵", "🔑", "\x00", "\xff\xff\xff\xff", "null", " ", "{\"id\":42}"} {
		add([]byte(text))
	}
	return keys
}
