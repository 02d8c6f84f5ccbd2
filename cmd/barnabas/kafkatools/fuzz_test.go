package kafkatools

import (
	"strings"
	"testing"
)

// FuzzCoordinatorRecords holds that whatever bytes are in a coordinator's topic, they make JSON or an error.
func FuzzCoordinatorRecords(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 'g', 0, 1, 't', 0, 0, 0, 0}, []byte{0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9})
	f.Add([]byte{0, 2, 0, 1, 'g'}, []byte{0, 3, 0, 8, 'c', 'o', 'n', 's', 'u', 'm', 'e', 'r', 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0, 0, 0, 1, 'x'}, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, key, value []byte) {
		for _, decode := range []func(k, v []byte) (coordinatorRecord, bool, error){decodeGroupRecord, decodeTransactionRecord} {
			r, known, err := decode(key, value)
			if err != nil || !known {
				continue
			}
			if text := compact(r.key); !strings.HasPrefix(text, "{") {
				t.Fatalf("a key is %s", text)
			}
			_ = compact(r.value)
		}
	})
}
