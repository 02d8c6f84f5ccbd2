package member

import (
	"os"
	"path/filepath"
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
	for name, text := range map[string]string{
		"empty":           ``,
		"torn":            `{"format":1,"server":"3-0123`,
		"newer":           `{"format":2,"server":"3-0123456789abcdef"}`,
		"no server":       `{"format":1}`,
		"unknown member":  `{"format":1,"server":"3-0123456789abcdef","x":1}`,
		"hostile server":  `{"format":1,"server":"../3-0123456789abcdef"}`,
		"hostile cluster": `{"format":1,"server":"3-0123456789abcdef","cluster":"x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, IdentityFile), []byte(text), 0o644))
			_, err := OpenIdentity(dir, "3")
			require.ErrorContains(t, err, IdentityFile)
			kept, err := os.ReadFile(filepath.Join(dir, IdentityFile))
			require.NoError(t, err)
			assert.Equal(t, text, string(kept))
		})
	}
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
