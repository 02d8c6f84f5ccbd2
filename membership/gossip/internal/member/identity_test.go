package member

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestIdentityLasts(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenIdentity(dir, "3")
	require.NoError(t, err)
	assert.Equal(t, "3", a.Server().Name())
	assert.True(t, a.Server().Valid())
	assert.Empty(t, a.Cluster())
	c := NewClusterID()
	require.True(t, c.Valid())
	require.NoError(t, a.Adopt(c))
	require.NoError(t, a.Adopt(c), "once more is nothing new")

	b, err := OpenIdentity(dir, "4")
	require.NoError(t, err)
	assert.Equal(t, a.Server(), b.Server(), "an identity is never made anew")
	assert.Equal(t, c, b.Cluster())
	require.ErrorIs(t, b.Adopt(NewClusterID()), ErrForeignCluster)
	assert.Equal(t, c, b.Cluster())
	require.NoError(t, b.Release(NewClusterID()), "another's release is none")
	assert.Equal(t, c, b.Cluster())
	require.NoError(t, b.Release(c))
	assert.Empty(t, b.Cluster())
	again, err := ReadIdentity(dir)
	require.NoError(t, err)
	assert.Empty(t, again.Cluster())
}

func TestProposal(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenIdentity(dir, "3")
	require.NoError(t, err)
	c, err := a.Propose()
	require.NoError(t, err)
	assert.True(t, a.Proposed())
	b, err := OpenIdentity(dir, "3")
	require.NoError(t, err)
	again, err := b.Propose()
	require.NoError(t, err)
	assert.Equal(t, c, again, "a restart goes on with the same proposal")
	require.NoError(t, b.Release(c))
	assert.False(t, b.Proposed())
	by := NewServerID("4")
	require.NoError(t, b.Promise(c, by))
	assert.False(t, b.Proposed(), "another's proposal is not its own")
	again2, err := ReadIdentity(dir)
	require.NoError(t, err)
	assert.Equal(t, by, again2.Promised())
	_, err = b.Propose()
	require.ErrorIs(t, err, ErrForeignCluster)
}

func TestIdentityOfAnotherDirectoryIsAnother(t *testing.T) {
	a, err := OpenIdentity(t.TempDir(), "3")
	require.NoError(t, err)
	b, err := OpenIdentity(t.TempDir(), "3")
	require.NoError(t, err)
	assert.NotEqual(t, a.Server(), b.Server())
}

func TestIdentityThatMakesNoSenseIsRefused(t *testing.T) {
	// summed gives a file whose checksum is right.
	summed := func(v identityJSON) string {
		text, err := v.text()
		require.NoError(t, err)
		return string(text)
	}
	for name, text := range map[string]string{
		"empty":           ``,
		"torn":            `{"format":2,"server":"3-0123`,
		"newer":           summed(identityJSON{Format: 3, Server: "3-0123456789abcdef"}),
		"no server":       summed(identityJSON{Format: 2}),
		"no checksum":     `{"format":2,"server":"3-0123456789abcdef"}` + "\n",
		"unknown member":  `{"format":2,"server":"3-0123456789abcdef","x":1,"crc32c":"00000000"}` + "\n",
		"hostile server":  summed(identityJSON{Format: 2, Server: "../3-0123456789abcdef"}),
		"hostile cluster": summed(identityJSON{Format: 2, Server: "3-0123456789abcdef", Cluster: "x"}),
	} {
		t.Run(name, func(t *testing.T) { refusesIdentity(t, text) })
	}
}

func refusesIdentity(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, IdentityFile)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	_, err := OpenIdentity(dir, "3")
	require.ErrorIs(t, err, ErrDamaged, text)
	require.ErrorContains(t, err, path)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, text, string(kept), "nothing is put in its place")
}

// TestDamagedIdentityIsRefused flips each bit of the file, and cuts it at each byte: none of that is taken for another server, or another
// cluster.
func TestDamagedIdentityIsRefused(t *testing.T) {
	v := identityJSON{Format: identityFormat, Server: "3-0123456789abcdef", Cluster: NewClusterID(), By: "4-0123456789abcdef"}
	text, err := v.text()
	require.NoError(t, err)
	read, err := parseIdentity(text)
	require.NoError(t, err)
	read.Checksum = ""
	require.Equal(t, v, read)
	for i := range text {
		_, err := parseIdentity(text[:i])
		require.ErrorIs(t, err, ErrDamaged, "cut at %d", i)
		for bit := range 8 {
			damaged := slices.Clone(text)
			damaged[i] ^= 1 << bit
			_, err := parseIdentity(damaged)
			require.ErrorIs(t, err, ErrDamaged, "bit %d of byte %d", bit, i)
		}
	}
	refusesIdentity(t, strings.Replace(string(text), "3-0123", "3-0124", 1))
}

func TestDirectoryThatLostItsIdentityIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "snapshots"), 0o755))
	_, err := OpenIdentity(dir, "3")
	require.ErrorContains(t, err, "snapshots")
}

func TestServerIDs(t *testing.T) {
	for id, valid := range map[ServerID]bool{
		"3-0123456789abcdef":           true,
		"0-0123456789abcdef":           true,
		"new-0123456789abcdef":         true,
		"-1-0123456789abcdef":          false,
		"03-0123456789abcdef":          false,
		"3-0123456789ABCDEF":           false,
		"3-0123456789abcde":            false,
		"3":                            false,
		"":                             false,
		"99999999999-0123456789abcdef": false,
	} {
		assert.Equal(t, valid, id.Valid(), id)
	}
}
