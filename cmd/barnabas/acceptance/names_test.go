package acceptance

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestBadNamesEverywhere: names that would be paths, or are too long, in every place of every request that takes a name:
// topics, groups, members, client ids, clients' software, hosts, settings.
func TestBadNamesEverywhere(t *testing.T) {
	t.Parallel()
	outer := t.TempDir()
	inner := filepath.Join(outer, "inner")
	require.NoError(t, os.Mkdir(inner, 0o755))
	n := beginIn(t, inner, "", nil)
	witness := n.dial()
	witness.createTopic("kept", 1, forever())
	witness.accepted("kept", 0, unhex(t, va1))
	witness.coordinator("g")
	witness.coordinator("..") // that's a group's name, if anybody likes it
	for _, k := range witness.served() {
		for _, version := range []int16{k.MinVersion, (k.MinVersion + k.MaxVersion) / 2, k.MaxVersion} {
			for _, name := range append(badNames(), "t", long(1000)) {
				req := request(k.ApiKey, version)
				fill(req, name)
				var client *string // none at all
				if name != "" {
					client = &name
				}
				b := []byte{0, 0, 0, 0}
				b = binary.BigEndian.AppendUint16(b, uint16(k.ApiKey))
				b = binary.BigEndian.AppendUint16(b, uint16(version))
				b = append(b, 0, 0, 0, 1)
				if client == nil {
					b = append(b, 0xff, 0xff)
				} else {
					b = append(binary.BigEndian.AppendUint16(b, uint16(len(name))), name...)
				}
				if req.IsFlexible() {
					b = append(b, 0)
				}
				b = req.AppendTo(b)
				binary.BigEndian.PutUint32(b, uint32(len(b)-4))
				n.exchange(b, fmt.Sprintf("key %d v%d: %.30q", k.ApiKey, version, name))
			}
		}
	}
	n.calm()

	for _, name := range badNames() {
		if len(name) > 1<<15-1 {
			continue
		}
		why := fmt.Sprintf("%.30q", name)
		assert.NotZero(t, witness.metadata(name).ErrorCode, why)
		assert.NotZero(t, witness.produce(7, name, unhex(t, va1)).ErrorCode, why)
		assert.NotZero(t, witness.fetch(11, name, 0, 0).ErrorCode, why)
		assert.NotZero(t, witness.listOffset(2, name, 0, -1).ErrorCode, why)
		assert.NotZero(t, witness.deleteTopic(name), why)
		assert.NotZero(t, witness.deleteRecords(name, 0, 0), why)
	}
	for _, group := range []string{""} { // any other text is a group's name
		assert.Equal(t, int16(24), witness.join(group, "", 6000, 6000).ErrorCode)
		assert.Equal(t, int16(24), witness.heartbeat(group, "m", 1))
	}

	// Nothing was made but what a name may make, and nothing outside of the data.
	entries, err := os.ReadDir(outer)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
	require.NoError(t, filepath.WalkDir(n.data(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != n.data() {
			topic, _, _ := strings.Cut(d.Name(), "-")
			assert.Contains(t, []string{"kept", "t", "__consumer_offsets", "__transaction_state"}, topic, "%.60q", path)
		}
		return err
	}))
	n.stop() // and everything can be read again
	n.start()
	assert.Equal(t, []string{"hello"}, texts(n.dial().all("kept", 0, 0)))
}

// TestOffsetMetadata: what a consumer keeps with an offset has a limit, and goes in and out whole below it.
func TestOffsetMetadata(t *testing.T) {
	t.Parallel()
	n := begin(t, "", nil)
	c := n.dial()
	c.createTopic("t", 1, nil)
	c.coordinator("g")
	commit := func(text string) int16 {
		p := kmsg.NewOffsetCommitRequestTopicPartition()
		p.Offset, p.Metadata = 1, &text
		topic := kmsg.NewOffsetCommitRequestTopic()
		topic.Topic, topic.Partitions = "t", append(topic.Partitions, p)
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.Generation, req.Topics = "g", -1, append(req.Topics, topic)
		return ask[*kmsg.OffsetCommitResponse](c, 5, req).Topics[0].Partitions[0].ErrorCode
	}
	assert.Zero(t, commit(long(4096)))
	assert.Equal(t, int16(12), commit(long(4097)))
	assert.Zero(t, commit("é\x00\n"))
}
