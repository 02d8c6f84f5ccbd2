package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

func TestContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		partition, producer, sequence := rapid.Int32Min(0).Draw(t, "partition"), rapid.Int32Min(0).Draw(t, "producer"), rapid.Int32Min(0).Draw(t, "sequence")
		size := rapid.IntRange(leastRecordSize, 2000).Draw(t, "size")
		key, value := value("run", partition, producer, sequence, size)
		if len(value) != size {
			t.Fatalf("%d bytes, not %d", len(value), size)
		}
		want := history.Seen{What: history.Record, Producer: producer, Sequence: sequence}
		if got := recognize("run", partition, key, value); got != want {
			t.Fatalf("%+v", got)
		}
		if got := recognize("run", partition+1, key, value); got.What != history.Garbled {
			t.Fatalf("in another partition: %+v", got)
		}
		if got := recognize("other", partition, key, value); got.What != history.Others {
			t.Fatalf("in another run: %+v", got)
		}
		both := append(append([]byte{}, key...), value...)
		at := rapid.IntRange(0, len(both)-1).Draw(t, "at")
		both[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "change"))
		if got := recognize("run", partition, both[:len(key)], both[len(key):]); got.What == history.Record {
			t.Fatalf("a changed byte %d goes unseen", at)
		}
	})
}

func TestStrangeContent(t *testing.T) {
	for _, s := range []string{"", "barnabas-verify", "barnabas-verify ", "barnabas-verify run 1", "barnabas-verify run 1 2 3", "barnabas-verify run x y z w "} {
		require.NotEqual(t, history.Record, recognize("run", 1, nil, []byte(s)).What, s)
	}
}

func FuzzRecognize(f *testing.F) {
	key, good := value("run", 1, 2, 3, 100)
	f.Add(key, good)
	f.Add([]byte(nil), []byte("barnabas-verify run 1 2 3 "))
	f.Fuzz(func(t *testing.T, key, value []byte) { recognize("run", 1, key, value) })
}
