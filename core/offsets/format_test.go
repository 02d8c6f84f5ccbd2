package offsets

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// TestGolden has the bytes of Kafka's record formats: the versions that are written.
func TestGolden(t *testing.T) {
	protocol, leader, instance := "range", "m", "i1"
	cases := []struct {
		name       string
		entry      Entry
		key, value string
	}{
		{"offset", Entry{Key: OffsetKey("g", "t", 3), Offset: &Offset{Offset: 7, LeaderEpoch: 2, Metadata: "x", CommitTimestamp: 255, ExpireTimestamp: None}},
			"0001 000167 000174 00000003", "0003 0000000000000007 00000002 000178 00000000000000ff"},
		{"offset that expires", Entry{Key: OffsetKey("g", "t", 3), Offset: &Offset{Offset: 7, LeaderEpoch: None, CommitTimestamp: 255, ExpireTimestamp: 256}},
			"0001 000167 000174 00000003", "0001 0000000000000007 0000 00000000000000ff 0000000000000100"},
		{"offset removed", Entry{Key: OffsetKey("g", "t", 3)}, "0001 000167 000174 00000003", ""},
		{"group", Entry{Key: GroupKey("g"), Meta: &Group{ProtocolType: "consumer", Generation: 5, Protocol: &protocol, Leader: &leader, StateTimestamp: 9,
			Members: []Member{{ID: "m", InstanceID: &instance, ClientID: "c", ClientHost: "/h", RebalanceTimeout: 1, SessionTimeout: 2, Subscription: []byte{1, 2}, Assignment: []byte{}}}}},
			"0002 000167", "0003 0008636f6e73756d6572 00000005 000572616e6765 00016d 0000000000000009 00000001 00016d 00026931 000163 00022f68 00000001 00000002 000000020102 00000000"},
		{"empty group", Entry{Key: GroupKey("g"), Meta: &Group{Generation: 6, StateTimestamp: 9}},
			"0002 000167", "0003 0000 00000006 ffff ffff 0000000000000009 00000000"},
		{"group removed", Entry{Key: GroupKey("")}, "0002 0000", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			key, err := AppendKey(nil, c.entry.Key)
			require.NoError(t, err)
			require.Equal(t, unhex(t, c.key), key)
			value, err := AppendValue(nil, c.entry)
			require.NoError(t, err)
			require.Equal(t, unhex(t, c.value), append([]byte{}, value...))
			got, known, err := Decode(key, value)
			require.NoError(t, err)
			require.True(t, known)
			require.Equal(t, c.entry, got)
		})
	}
}

// TestAllVersions reads what another implementation writes, in every version there is.
func TestAllVersions(t *testing.T) {
	for version := int16(0); version <= 4; version++ {
		v := kmsg.OffsetCommitValue{Version: version, Offset: 7, LeaderEpoch: 3, Metadata: "note", CommitTimestamp: 11, ExpireTimestamp: 12}
		want := &Offset{Offset: 7, LeaderEpoch: None, Metadata: "note", CommitTimestamp: 11, ExpireTimestamp: None}
		if version >= 3 {
			want.LeaderEpoch = 3
		}
		if version == 1 {
			want.ExpireTimestamp = 12
		}
		if version == 4 {
			v.TopicID = [16]byte{1} // a tagged field, which is passed over
		}
		key := kmsg.OffsetCommitKey{Version: version % 2, Group: "g", Topic: "t", Partition: 5}
		e, known, err := Decode(key.AppendTo(nil), v.AppendTo(nil))
		require.NoError(t, err, "version %d", version)
		require.True(t, known)
		require.Equal(t, Entry{Key: OffsetKey("g", "t", 5), Offset: want}, e, "version %d", version)
	}
	for version := int16(0); version <= 4; version++ {
		protocol, leader, instance := "range", "m", "i"
		v := kmsg.GroupMetadataValue{Version: version, ProtocolType: "consumer", Generation: 4, Protocol: &protocol, Leader: &leader, CurrentStateTimestamp: 8,
			Members: []kmsg.GroupMetadataValueMember{{MemberID: "m", InstanceID: &instance, ClientID: "c", ClientHost: "/h", RebalanceTimeoutMillis: 20,
				SessionTimeoutMillis: 10, Subscription: []byte{1}, Assignment: []byte{2, 3}}}}
		m := Member{ID: "m", ClientID: "c", ClientHost: "/h", RebalanceTimeout: 20, SessionTimeout: 10, Subscription: []byte{1}, Assignment: []byte{2, 3}}
		want := &Group{ProtocolType: "consumer", Generation: 4, Protocol: &protocol, Leader: &leader, StateTimestamp: None}
		if version == 0 {
			m.RebalanceTimeout = 10
		}
		if version >= 2 {
			want.StateTimestamp = 8
		}
		if version >= 3 {
			m.InstanceID = &instance
		}
		want.Members = []Member{m}
		key := kmsg.GroupMetadataKey{Version: 2, Group: "g"}
		e, _, err := Decode(key.AppendTo(nil), v.AppendTo(nil))
		require.NoError(t, err, "version %d", version)
		require.Equal(t, Entry{Key: GroupKey("g"), Meta: want}, e, "version %d", version)
	}
}

func TestDecodeRefuses(t *testing.T) {
	offsetKey, groupKey := "0001 000167 000174 00000003", "0002 000167"
	cases := []struct {
		name, key, value string
		known            bool
		err              error
	}{
		{"no key", "", "00", false, ErrCorrupt},
		{"newer key", "0003 000167", "00", false, nil},
		{"negative key", "ffff 000167", "00", false, nil},
		{"key cut off", "0001 000167 000174 000000", "00", false, ErrCorrupt},
		{"bytes behind the key", groupKey + "00", "00", false, ErrCorrupt},
		{"null group", "0002 ffff", "00", false, ErrCorrupt},
		{"no value version", offsetKey, "00", true, ErrCorrupt},
		{"newer offset", offsetKey, "0005", true, ErrUnsupported},
		{"newer group", groupKey, "0005", true, ErrUnsupported},
		{"negative version", groupKey, "ffff", true, ErrUnsupported},
		{"string longer than the value", offsetKey, "0000 0000000000000007 7fff 00", true, ErrCorrupt},
		{"two billion members", groupKey, "0000 0000 00000001 ffff ffff 7fffffff 00", true, ErrCorrupt},
		{"negative members", groupKey, "0000 0000 00000001 ffff ffff ffffffff", true, ErrCorrupt},
		{"endless varint", offsetKey, "0004 0000000000000007 00000001 ffffffffffffffffffffff", true, ErrCorrupt},
		{"two billion tags", offsetKey, "0004 0000000000000007 00000001 01 0000000000000001 ffffffff07", true, ErrCorrupt},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, known, err := Decode(unhex(t, c.key), unhex(t, c.value))
			require.Equal(t, c.known, known)
			require.ErrorIs(t, err, c.err)
		})
	}
}

func TestTooLong(t *testing.T) {
	_, err := AppendKey(nil, GroupKey(strings.Repeat("g", math.MaxInt16+1)))
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = AppendKey(nil, GroupKey(strings.Repeat("g", math.MaxInt16)))
	require.NoError(t, err)
}

// FuzzDecode wants no panic and no surprise, and that what can be read can be written and read again.
func FuzzDecode(f *testing.F) {
	protocol := "range"
	for version := int16(0); version <= 4; version++ {
		o := kmsg.OffsetCommitValue{Version: version, Offset: 7, Metadata: "note"}
		g := kmsg.GroupMetadataValue{Version: version, ProtocolType: "consumer", Protocol: &protocol, Members: []kmsg.GroupMetadataValueMember{{MemberID: "m"}}}
		f.Add((&kmsg.OffsetCommitKey{Version: 1, Group: "g", Topic: "t"}).AppendTo(nil), o.AppendTo(nil))
		f.Add((&kmsg.GroupMetadataKey{Version: 2, Group: "g"}).AppendTo(nil), g.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		e, known, err := Decode(key, value)
		if err != nil || !known {
			return
		}
		if e.Offset != nil && e.Offset.ExpireTimestamp != None {
			e.Offset.LeaderEpoch = None // the version with an expiry has no epoch
		}
		k, err := AppendKey(nil, e.Key)
		if err != nil {
			return // flexible strings may be longer than classic ones
		}
		v, err := AppendValue(nil, e)
		if err != nil {
			return
		}
		if e.Tombstone() {
			v = nil
		}
		again, known, err := Decode(k, v)
		require.NoError(t, err)
		require.True(t, known)
		require.Equal(t, e, again)
	})
}
