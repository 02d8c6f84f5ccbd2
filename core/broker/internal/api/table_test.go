package api

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/broker/internal/producerid"
	"github.com/barnabas-mq/barnabas/core/broker/internal/txn"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// everything is a Deps with every room there, for tests that only look at the table.
func everything() Deps {
	return Deps{Cluster: new(Cluster), Partitions: new(partition.Manager), LogDirs: noLogDirs{},
		Groups: new(group.Manager), ProducerIDs: new(producerid.IDs), Transactions: new(txn.Manager),
		Control: noControl{}, Markers: new(txn.Receiver)}
}

type noControl struct{ Control }

type noLogDirs struct{}

func (noLogDirs) LogDirs() []LogDir { return nil }

// TestUnsupported holds UNSUPPORTED.md against what is served.
func TestUnsupported(t *testing.T) {
	file, err := os.ReadFile("UNSUPPORTED.md")
	require.NoError(t, err)
	type line struct{ name, served string }
	listed := map[int16]line{}
	for _, m := range regexp.MustCompile(`(?m)^\| *(\d+) \| *(\w+) \| *([\d–-]+) \| *[^|]+\|$`).FindAllStringSubmatch(string(file), -1) {
		key, err := strconv.ParseInt(m[1], 10, 16)
		require.NoError(t, err)
		require.NotContains(t, listed, int16(key), "listed twice")
		listed[int16(key)] = line{m[2], m[3]}
	}
	served := map[int16]Range{}
	for _, r := range Handlers(everything()).Ranges() {
		served[r.Key] = r
	}
	for key := range int16(kmsg.MaxKey + 1) {
		req := kmsg.RequestForKey(key)
		if req == nil {
			require.NotContains(t, listed, key, "there is no such key")
			continue
		}
		r, ok := served[key]
		l, missing := listed[key]
		switch {
		case !ok:
			require.True(t, missing, "%d %s is not served: UNSUPPORTED.md must say so", key, kmsg.NameForKey(key))
			require.Equal(t, "-", l.served, "%d %s", key, kmsg.NameForKey(key))
		case r.Min == 0 && r.Max == req.MaxVersion():
			require.False(t, missing, "%d %s is served in full: it does not belong into UNSUPPORTED.md", key, kmsg.NameForKey(key))
		default:
			require.True(t, missing, "%d %s is served in part: UNSUPPORTED.md must say so", key, kmsg.NameForKey(key))
			require.Equal(t, fmt.Sprintf("%d-%d", r.Min, r.Max), l.served, "%d %s", key, kmsg.NameForKey(key))
		}
		if missing {
			require.Equal(t, kmsg.NameForKey(key), l.name)
		}
	}
}

func TestTableRefusesRowsThatCannotBe(t *testing.T) {
	none := func(context.Context, *Request) Reply { return wire.Silence() }
	for name, add := range map[string]func(*Table){
		"unknown key":              func(t *Table) { t.add(kmsg.Key(126), 0, 0, none) },
		"version beyond the codec": func(t *Table) { t.add(kmsg.Metadata, 0, 100, none) },
		"empty range":              func(t *Table) { t.add(kmsg.Metadata, 3, 2, none) },
		"twice":                    func(t *Table) { t.add(kmsg.Metadata, 0, 1, none); t.add(kmsg.Metadata, 0, 1, none) },
	} {
		t.Run(name, func(t *testing.T) { require.Panics(t, func() { add(new(Table)) }) })
	}
}

func TestForms(t *testing.T) {
	table := Handlers(everything())
	for _, tc := range []struct {
		key, version int16
		want         wire.Form
	}{
		{3, 0, wire.Plain}, {3, 8, wire.Plain}, {3, 9, wire.Flexible}, {3, 14, wire.Refused}, {3, -1, wire.Refused},
		{7, 0, wire.NoClient}, {7, 1, wire.Plain}, {7, 3, wire.Flexible},
		{18, 0, wire.Plain}, {18, 2, wire.Plain}, {18, 3, wire.FlexiblePlain}, {18, 4, wire.FlexiblePlain},
		{18, 5, wire.Unread}, {18, 99, wire.Unread}, {18, 32767, wire.Unread}, {18, -1, wire.Unread},
		{125, 0, wire.Refused}, {128, 0, wire.Refused}, {32767, 0, wire.Refused}, {-1, 0, wire.Refused}, {-32768, 0, wire.Refused},
	} {
		require.Equal(t, tc.want, table.Form(tc.key, tc.version), "key %d version %d", tc.key, tc.version)
	}
}
