package standalone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// start starts a coordination over a directory.
func start(t testing.TB, dir string) *coordination {
	t.Helper()
	c := cluster{t, dir, DefaultOptions()}.Member().(*coordination)
	require.NoError(t, c.Start(t.Context()))
	t.Cleanup(func() { c.Stop(context.Background()) })
	return c
}

func elect(t testing.TB, c *coordination) int32 {
	t.Helper()
	term, err := c.Campaign(t.Context(), 1)
	require.NoError(t, err)
	return term.Epoch()
}

func topic(name string, n byte, partitions int) election.NewTopic {
	t := election.NewTopic{Name: name, ID: election.TopicID{n}, Config: map[string]string{"k": name}}
	for range partitions {
		t.Partitions = append(t.Partitions, election.Assignment{Replicas: []int32{1}})
	}
	return t
}

func create(t testing.TB, c *coordination, epoch int32, topics ...election.NewTopic) {
	t.Helper()
	errs, err := c.Metadata().CreateTopics(t.Context(), epoch, topics)
	require.NoError(t, err)
	for _, e := range errs {
		require.NoError(t, e)
	}
}

// file is the path of the coordination file in a directory.
func path(dir string) string { return filepath.Join(dir, DefaultOptions().File) }

// dump is a state as text.
func dump(s *state.State) string {
	var b strings.Builder
	s.Dump(func(o state.Op) bool {
		line, _ := appendLine(nil, []state.Op{o})
		b.Write(line)
		return true
	})
	return b.String()
}

// history is a file that some of everything was written to, and the states after each of its lines.
func history(t testing.TB) (content []byte, states []string) {
	dir := t.TempDir()
	c := start(t, dir)
	epoch := elect(t, c)
	md := c.Metadata()
	_, err := c.Membership().ClusterID(t.Context(), "")
	require.NoError(t, err)
	create(t, c, epoch, topic("a", 1, 3), topic("b", 2, 1))
	_, err = md.UpdatePartitions(t.Context(), epoch, []election.PartitionUpdate{
		{Topic: "a", Partition: 1, State: election.PartitionState{Leader: 1, ISR: []int32{1}, PartitionEpoch: -1}},
		{Topic: "b", State: election.PartitionState{Leader: -1, ISR: []int32{1, 2}, PartitionEpoch: -1}}})
	require.NoError(t, err)
	_, err = md.SetConfigs(t.Context(), epoch, []election.Config{{Entity: election.Entity{Kind: election.BrokerEntity}, Values: map[string]string{"x": "y"}}})
	require.NoError(t, err)
	_, err = md.MarkDeleted(t.Context(), epoch, []string{"a"})
	require.NoError(t, err)
	_, err = md.RemoveTopics(t.Context(), epoch, []string{"a"})
	require.NoError(t, err)
	_, err = md.ProducerIDs(t.Context(), 1, 0)
	require.NoError(t, err)
	require.NoError(t, c.Stop(t.Context()))
	content, err = os.ReadFile(path(dir))
	require.NoError(t, err)
	for i, b := range content {
		if b == '\n' {
			st, good, err := decode(bytes.NewReader(content[:i+1]))
			require.NoError(t, err)
			require.Equal(t, int64(i+1), good)
			states = append(states, dump(st))
		}
	}
	return content, states
}

// TestTornAtEveryByte cuts the file at every byte: what is read is the state after the last whole line, the rest is cut off,
// and writing goes on.
func TestTornAtEveryByte(t *testing.T) {
	content, states := history(t)
	header := bytes.IndexByte(content, '\n') + 1
	for cut := range len(content) + 1 {
		lines := bytes.Count(content[:cut], []byte("\n"))
		st, good, err := decode(bytes.NewReader(content[:cut]))
		if cut < header {
			require.ErrorIs(t, err, errFormat, "cut at %d", cut)
			continue
		}
		require.NoError(t, err, "cut at %d", cut)
		require.Equal(t, states[lines-1], dump(st), "cut at %d", cut)
		require.Equal(t, bytes.LastIndexByte(content[:cut], '\n')+1, int(good), "cut at %d", cut)
		if cut%37 != 0 {
			continue // a file for some of them is enough
		}
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(path(dir), content[:cut], 0o600))
		c := start(t, dir)
		create(t, c, elect(t, c), topic("new", 9, 1))
		want := dump(c.state)
		require.NoError(t, c.Stop(t.Context()))
		require.Equal(t, want, dump(start(t, dir).state))
	}
}

// TestTornTails puts into the last line what a file system may leave there.
func TestTornTails(t *testing.T) {
	content, states := history(t)
	last := bytes.LastIndexByte(content[:len(content)-1], '\n') + 1
	zeros, flipped := slices.Clone(content), slices.Clone(content)
	clear(zeros[last+3:])
	flipped[last+20] ^= 1
	for name, tail := range map[string][]byte{
		"zeros":              append(slices.Clone(content), make([]byte, 4096)...),
		"half zeros":         zeros,
		"a bit that flipped": flipped,
		"no line feed":       append(slices.Clone(content), "0123abcd [{"...),
		"an empty line":      append(slices.Clone(content), '\n'),
		"two bad lines":      append(slices.Clone(content), "x\ny\n"...),
	} {
		st, good, err := decode(bytes.NewReader(tail))
		require.NoError(t, err, name)
		want := states[len(states)-1]
		if name == "half zeros" || name == "a bit that flipped" {
			want = states[len(states)-2]
			require.Equal(t, int64(last), good, name)
		}
		require.Equal(t, want, dump(st), name)
	}
}

// TestRefused gives files that nobody may touch.
func TestRefused(t *testing.T) {
	content, _ := history(t)
	lines := bytes.SplitAfter(content, []byte("\n"))
	join := func(lines ...[]byte) []byte { return bytes.Join(lines, nil) }
	line := func(v any) []byte { b, _ := appendLine(nil, v); return b }
	head := line(header{formatName, formatVersion})
	damaged := slices.Clone(content)
	damaged[len(lines[0])+len(lines[1])+12] ^= 1
	for name, tc := range map[string]struct {
		content []byte
		want    error
	}{
		"empty":                       {nil, errFormat},
		"something else":              {[]byte("version=0\nbroker.id=1\n"), errFormat},
		"another format":              {line(header{"something", 1}), errFormat},
		"format version 0":            {line(header{formatName, 0}), errFormat},
		"a newer format":              {join(line(header{formatName, formatVersion + 1}), []byte("whatever")), errNewer},
		"damage in the middle":        {damaged, errCorrupt},
		"an epoch that falls":         {join(head, line([]state.Op{{ControllerEpoch: 5}}), line([]state.Op{{ControllerEpoch: 4}})), errCorrupt},
		"a state of nothing":          {join(head, line([]state.Op{{State: &state.StateOp{Topic: "a"}}})), errCorrupt},
		"a member of a later version": {join(head, line([]map[string]any{{"later": 1}})), errCorrupt},
		"an operation without any":    {join(head, line([]state.Op{{}})), errCorrupt},
		"no operations":               {join(head, line("text")), errCorrupt},
		"a topic without id":          {join(head, line([]state.Op{{Topic: &state.TopicOp{Name: "a", Partitions: make([]state.AssignmentOp, 1)}}})), errCorrupt},
		"a mark on nothing":           {join(head, line([]state.Op{{Deleting: "a"}})), errCorrupt},
		"a config of nothing":         {join(head, line([]state.Op{{Config: &state.ConfigOp{Kind: "topic", Name: "a", Version: 1}}})), errCorrupt},
		"a config of something odd":   {join(head, line([]state.Op{{Config: &state.ConfigOp{Kind: "user", Name: "a", Version: 1}}})), errCorrupt},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(path(dir), tc.content, 0o600))
		c := cluster{t, dir, DefaultOptions()}.Member()
		err := c.Start(t.Context())
		require.ErrorIs(t, err, tc.want, name)
		require.ErrorContains(t, err, path(dir), name)
		require.NoError(t, c.Stop(t.Context()))
		after, err := os.ReadFile(path(dir))
		require.NoError(t, err)
		require.True(t, bytes.Equal(tc.content, after), "%s: the file was touched", name)
	}
}

// TestInUse starts a second coordination on a file.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	first := start(t, dir)
	second := cluster{t, dir, DefaultOptions()}.Member()
	require.ErrorIs(t, second.Start(t.Context()), errInUse)
	require.NoError(t, second.Stop(t.Context()))
	require.NoError(t, first.journal.compact(first.state)) // the lock goes along with the new file
	require.ErrorIs(t, cluster{t, dir, DefaultOptions()}.Member().Start(t.Context()), errInUse)
	create(t, first, elect(t, first), topic("a", 1, 1))
	require.NoError(t, first.Stop(t.Context()))
	require.Len(t, start(t, dir).state.Topics, 1)
}

func TestFileIsNoDirectoryMaker(t *testing.T) {
	dir := t.TempDir()
	c := start(t, dir)
	elect(t, c)
	require.NoError(t, c.journal.compact(c.state))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "one plain file, and nothing left over")
	require.True(t, entries[0].Type().IsRegular())
}

// failing is a file whose writes, syncs and truncations fail when told to.
type failing struct {
	file
	write, sync, truncate error
	partly                int // bytes written in spite of the error
	syncs                 int
}

func (f *failing) Write(b []byte) (int, error) {
	if f.write != nil {
		n, _ := f.file.Write(b[:min(f.partly, len(b))])
		return n, f.write
	}
	return f.file.Write(b)
}

func (f *failing) Sync() error {
	f.syncs++
	if f.sync != nil {
		return f.sync
	}
	return f.file.Sync()
}

func (f *failing) Truncate(n int64) error {
	if f.truncate != nil {
		return f.truncate
	}
	return f.file.Truncate(n)
}

// TestFailingDisk fails writes in every way. What is kept in memory and what the file says afterwards are the same.
func TestFailingDisk(t *testing.T) {
	for _, tc := range []struct {
		name    string
		fail    failing
		goesOn  bool
		written bool // it may be found by the next start
	}{
		{"full disk", failing{write: syscall.ENOSPC}, true, false},
		{"full disk in the middle of a line", failing{write: syscall.ENOSPC, partly: 40}, true, false},
		{"what was half written can't be cut off", failing{write: syscall.EIO, partly: 40, truncate: syscall.EIO}, false, false},
		{"sync fails", failing{sync: syscall.EIO}, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			c := start(t, dir)
			epoch := elect(t, c)
			create(t, c, epoch, topic("a", 1, 1))
			before := dump(c.state)
			real, f := c.journal.file, tc.fail
			f.file = real
			c.journal.file = &f
			_, err := c.Metadata().CreateTopics(t.Context(), epoch, []election.NewTopic{topic("b", 2, 1)})
			require.ErrorIs(t, err, election.ErrUnavailable)
			require.True(t, errors.Is(err, tc.fail.write) || errors.Is(err, tc.fail.sync))
			require.Equal(t, before, dump(c.state), "nothing of it is seen")
			c.journal.file = real
			_, err = c.Metadata().CreateTopics(t.Context(), epoch, []election.NewTopic{topic("c", 3, 1)})
			want := dump(c.state)
			if tc.goesOn {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, election.ErrUnavailable)
				require.ErrorIs(t, err, errFailed)
				require.Equal(t, before, want)
			}
			require.NoError(t, c.Stop(t.Context()))
			again := start(t, dir)
			if tc.written {
				delete(again.state.Topics, "b")
				delete(again.state.Configs, election.Entity{Kind: election.TopicEntity, Name: "b"})
				again.state.ConfigVersion = 1
			}
			require.Equal(t, want, dump(again.state))
		})
	}
}

// TestSyncs counts what big writes cost.
func TestSyncs(t *testing.T) {
	c := start(t, t.TempDir())
	epoch := elect(t, c)
	f := &failing{file: c.journal.file}
	c.journal.file = f
	create(t, c, epoch, topic("a", 1, 1000))
	var updates []election.PartitionUpdate
	for p := range int32(1000) {
		updates = append(updates, election.PartitionUpdate{Topic: "a", Partition: p, State: election.PartitionState{Leader: 1, ISR: []int32{1}, PartitionEpoch: -1}})
	}
	results, err := c.Metadata().UpdatePartitions(t.Context(), epoch, updates)
	require.NoError(t, err)
	for _, r := range results {
		require.NoError(t, r.Err)
	}
	require.Equal(t, 2, f.syncs)
}

// TestCompaction sees that the file doesn't grow for ever, and says the same as before.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	made, err := New(Options{File: DefaultOptions().File, CompactAfter: 4096}, election.Settings{DataDir: dir})
	require.NoError(t, err)
	c := made.(*coordination)
	require.NoError(t, c.Start(t.Context()))
	epoch := elect(t, c)
	create(t, c, epoch, topic("a", 1, 2))
	for i := range 500 {
		results, err := c.Metadata().UpdatePartitions(t.Context(), epoch, []election.PartitionUpdate{{Topic: "a",
			State: election.PartitionState{Leader: 1, LeaderEpoch: int32(i), ISR: []int32{1}, PartitionEpoch: int32(i) - 1}}})
		require.NoError(t, err)
		require.NoError(t, results[0].Err)
	}
	info, err := os.Stat(path(dir))
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(8192))
	want := dump(c.state)
	require.NoError(t, c.Stop(t.Context()))
	require.Equal(t, want, dump(start(t, dir).state))
}

// TestCrashWhileCompacting leaves behind what a crash may leave while the file is rewritten.
func TestCrashWhileCompacting(t *testing.T) {
	content, states := history(t)
	for name, tmp := range map[string][]byte{"empty": nil, "half": content[:len(content)/2], "whole": content, "garbage": []byte("garbage")} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(path(dir), content, 0o600))
		require.NoError(t, os.WriteFile(path(dir)+".tmp", tmp, 0o600))
		c := start(t, dir)
		require.Equal(t, states[len(states)-1], dump(c.state), name)
		require.NoError(t, c.journal.compact(c.state), name)
		require.NoError(t, c.Stop(t.Context()))
		require.Equal(t, states[len(states)-1], dump(start(t, dir).state), name)
	}
}

// FuzzDecode gives the decoder any bytes. What it accepts comes back the same when it is written and read again.
func FuzzDecode(f *testing.F) {
	content, _ := history(f)
	f.Add(content)
	f.Add(content[:len(content)/2])
	f.Add([]byte{})
	f.Add(bytes.ReplaceAll(content, []byte("1"), []byte("2")))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, in := range [][]byte{data, reseal(data)} {
			st, good, err := decode(bytes.NewReader(in))
			if err != nil {
				continue
			}
			require.LessOrEqual(t, good, int64(len(in)))
			var b bytes.Buffer
			size, err := encode(&b, st)
			require.NoError(t, err)
			require.Equal(t, int(size), b.Len())
			again, good, err := decode(bytes.NewReader(b.Bytes()))
			require.NoError(t, err)
			require.Equal(t, size, good)
			require.Equal(t, dump(st), dump(again))
		}
	})
}

// reseal puts right checksums before the lines of a file, so that fuzzing gets behind them.
func reseal(data []byte) []byte {
	var out []byte
	for i, line := range bytes.Split(data, []byte("\n")) {
		if i == 0 {
			out, _ = appendLine(out, header{formatName, formatVersion})
			continue
		}
		if len(line) > 9 {
			line = line[9:]
		}
		out = fmt.Appendf(out, "%08x ", checksum(line))
		out = append(append(out, line...), '\n')
	}
	return out
}

func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	c := start(b, dir)
	epoch := elect(b, c)
	for i := range 100 {
		create(b, c, epoch, topic(fmt.Sprintf("topic-%d", i), byte(i+1), 100))
	}
	require.NoError(b, c.Stop(b.Context()))
	for b.Loop() {
		c := cluster{b, dir, DefaultOptions()}.Member()
		require.NoError(b, c.Start(b.Context()))
		require.NoError(b, c.Stop(b.Context()))
	}
}
