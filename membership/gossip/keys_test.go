package gossip

import (
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

func aKey(b byte) []byte { return []byte(strings.Repeat(string(b), 32)) }

func withKeys(keys ...byte) func(*Options) {
	return func(o *Options) {
		o.EncryptionKeys = nil
		for _, b := range keys {
			o.EncryptionKeys = append(o.EncryptionKeys, base64.StdEncoding.EncodeToString(aKey(b)))
		}
	}
}

// TestKeysAreRotated goes from one key to another while three brokers run, and one of them restarts in between.
func TestKeysAreRotated(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.options = withKeys('a')
	w.found(3)
	a, b := KeyID(aKey('a')), KeyID(aKey('b'))
	admin := func(keys ...byte) *Admin {
		o := DefaultOptions()
		withKeys(keys...)(&o)
		made, err := NewAdmin(o)
		require.NoError(t, err)
		t.Cleanup(made.Close)
		return made
	}
	have := func(with *Admin, want ...KeyStatus) {
		t.Helper()
		all, err := with.Keys(within(t), w.addresses())
		require.NoError(t, err)
		require.Len(t, all, 3)
		for _, h := range all {
			require.NoError(t, h.Err)
			require.Equal(t, want, h.Keys, "broker %s", h.Broker)
		}
	}
	old, first := admin('a', 'b'), admin('b', 'a')
	have(old, KeyStatus{a, true})
	_, err := first.UseKey(within(t), w.addresses())
	require.ErrorContains(t, err, "none of the encryption keys", "nobody has it")
	require.NoError(t, old.AddKeys(within(t), w.addresses()))
	have(old, KeyStatus{a, true}, KeyStatus{b, false})
	require.NoError(t, old.AddKeys(within(t), w.addresses()), "again is nothing new")

	// A broker that restarts has what its configuration says, which hasn't been changed: the new key isn't used before it has it, too.
	w.stop(3)
	back := w.start(3, 0)
	w.becomes("1:voter 2:voter 3:voter")
	asked := []string{w.brokers[1].server.(*host).address}
	_, err = first.UseKey(within(t), asked)
	require.Error(t, err)
	require.ErrorIs(t, err, ErrNotNow)
	require.ErrorContains(t, err, "broker 3")
	w.eventually("all use the former key, and answer at the addresses that they have now", func() bool {
		all, err := old.Keys(within(t), asked)
		return err == nil && len(all) == 3 && !slices.ContainsFunc(all, func(h KeyHolder) bool { return h.Err != nil || h.Keys[0] != KeyStatus{a, true} })
	})
	require.NoError(t, old.AddKeys(within(t), asked))
	require.ErrorIs(t, old.RemoveKey(within(t), asked, a), ErrNotNow, "all use it")
	first = admin('b', 'a') // which doesn't remember that it was refused a moment ago
	used, err := first.UseKey(within(t), asked)
	require.NoError(t, err)
	require.Equal(t, b, used)
	have(first, KeyStatus{b, true}, KeyStatus{a, false})
	require.ErrorIs(t, first.RemoveKey(within(t), asked, b), ErrNotNow)
	require.ErrorIs(t, first.RemoveKey(within(t), asked, "0123"), ErrNotNow)
	var refused *rpc.Error
	require.ErrorAs(t, back.server.(*host).company.(*peers).keyring.remove(b), &refused, "a broker refuses, too")

	require.NoError(t, first.RemoveKey(within(t), asked, a))
	have(first, KeyStatus{b, true})
	_, err = admin('a').Keys(within(t), asked)
	require.ErrorContains(t, err, "none of the encryption keys")
	w.options = withKeys('b')
	w.stop(2)
	w.start(2, 0)
	w.becomes("1:voter 2:voter 3:voter")
	w.works()
	for _, c := range w.brokers {
		w.eventually("gossip goes on with the new key", func() bool {
			s, err := first.Status(t.Context(), c.server.(*host).address)
			if err != nil {
				return false
			}
			for _, m := range s.Members {
				if m.Gossip != "alive" {
					return false
				}
			}
			return len(s.Members) == 3
		})
	}
}

// TestKeysWithoutEncryption refuses to begin with keys while brokers run.
func TestKeysWithoutEncryption(t *testing.T) {
	t.Parallel()
	w := newTown(t)
	w.found(1)
	require.ErrorIs(t, w.admin().AddKeys(within(t), w.addresses()), ErrNotNow)
	all, err := w.admin().Keys(within(t), w.addresses())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Empty(t, all[0].Keys)
	s, err := seal(aKey('a'), aKey('b'))
	require.NoError(t, err)
	err = w.admin().client.Call(within(t), "", w.addresses()[0], methodAddKey, s, nil)
	require.ErrorContains(t, err, "no encryption keys")
}

// TestKeyring changes keys while others read them, and takes what makes no sense.
func TestKeyring(t *testing.T) {
	t.Parallel()
	k, err := newKeyring([][]byte{aKey('a'), aKey('b'), aKey('c'), aKey('d')})
	require.NoError(t, err)
	var reading sync.WaitGroup
	stop := make(chan struct{})
	reading.Go(func() {
		for !isClosed(stop) {
			for _, key := range k.keys() {
				assert.Len(t, key, 32)
			}
		}
	})
	order := func() (list string) {
		for _, key := range k.keys() {
			list += string(key[:1])
		}
		return list
	}
	require.NoError(t, k.remove(KeyID(aKey('b'))))
	require.Equal(t, "acd", order())
	require.NoError(t, k.use(KeyID(aKey('d'))))
	require.NoError(t, k.use(KeyID(aKey('d'))), "again is nothing new")
	require.Equal(t, "dac", order())
	require.NoError(t, k.remove(KeyID(aKey('a'))))
	require.Equal(t, "dc", order())
	close(stop)
	reading.Wait()

	require.Error(t, k.use(KeyID(aKey('a'))), "it has none")
	s, err := seal(aKey('x'), aKey('e'))
	require.NoError(t, err)
	_, err = k.add(s)
	require.ErrorContains(t, err, "sealed under", "by somebody who has no key")
	s, err = seal(aKey('c'), []byte("short"))
	require.NoError(t, err)
	_, err = k.add(s)
	require.ErrorContains(t, err, "key size")
	_, err = k.add(sealedKey{Nonce: []byte("x"), Sealed: []byte("y")})
	require.Error(t, err)
	for b := byte('e'); len(k.keys()) < maxKeys; b++ {
		s, err := seal(aKey('c'), aKey(b))
		require.NoError(t, err)
		require.NotContains(t, string(s.Sealed), string(aKey(b)[:8]), "it isn't told")
		_, err = k.add(s)
		require.NoError(t, err)
	}
	s, err = seal(aKey('c'), aKey('z'))
	require.NoError(t, err)
	_, err = k.add(s)
	require.ErrorContains(t, err, "the most")
}
