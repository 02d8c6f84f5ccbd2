//go:build unix

package port

import (
	"crypto/rand"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestQuietlyInParts writes what never fits in as a whole. On a pipe: TCP seldom takes a part of a few bytes.
func TestQuietlyInParts(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	raw, err := w.SyscallConn()
	require.NoError(t, err)
	all := make([]byte, 100*10_001)
	_, _ = rand.Read(all)
	done := make(chan error, 1)
	go func() {
		q := &still{raw: raw}
		for at := 0; at < len(all); at += 10_001 {
			if n, err := q.Write(all[at : at+10_001]); err != nil || n != 10_001 {
				t.Errorf("%d written, %v", n, err)
			}
		}
		done <- w.Close()
	}()
	got, err := io.ReadAll(r)
	require.NoError(t, err)
	require.True(t, string(all) == string(got), "it came in another order")
	require.NoError(t, <-done)
}
