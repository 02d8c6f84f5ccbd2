package gossip

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"

	"github.com/barnabas-mq/barnabas/membership/gossip/internal/rpc"
)

// This file is how the encryption keys of a broker that runs are changed. What it does lasts until the broker stops: the next start begins with
// the keys of the configuration.

// What is asked about keys on connections of the kind port.Commands.
const (
	methodKeys      = "keys"       // -> []KeyStatus, the key in use first
	methodAddKey    = "add_key"    // sealedKey -> nothing
	methodUseKey    = "use_key"    // id (text) -> nothing
	methodRemoveKey = "remove_key" // id (text) -> nothing
)

// maxKeys bounds the keys of a broker: what comes from outside is tried with each.
const maxKeys = 16

// KeyStatus is one key of a broker. The key itself is never told.
type KeyStatus struct {
	ID   string `json:"id"`   // KeyID
	Used bool   `json:"used"` // gossip is encrypted with it, and servers prove themselves with it
}

// KeyID names a key without telling it: 16 hexadecimal digits of a hash.
func KeyID(key []byte) string {
	sum := sha256.Sum256(append([]byte("barnabas key\n"), key...))
	return hex.EncodeToString(sum[:8])
}

// sealedKey is a key on its way: encrypted under one that both ends have, as the connection may not be.
type sealedKey struct {
	Nonce  []byte `json:"nonce"`
	Sealed []byte `json:"sealed"`
}

// sealer gives the cipher for keys on their way, under a key that both ends have.
func sealer(key []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "barnabas: a key on its way", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func seal(under, key []byte) (s sealedKey, err error) {
	c, err := sealer(under)
	if err != nil {
		return s, err
	}
	s.Nonce = make([]byte, c.NonceSize())
	_, _ = rand.Read(s.Nonce) // never fails
	s.Sealed = c.Seal(nil, s.Nonce, key, nil)
	return s, nil
}

// open gives the key, which was sealed under any of these.
func (s sealedKey) open(keys [][]byte) ([]byte, error) {
	for _, under := range keys {
		c, err := sealer(under)
		if err != nil {
			return nil, err
		}
		if len(s.Nonce) != c.NonceSize() {
			break
		}
		if key, err := c.Open(nil, s.Nonce, s.Sealed, nil); err == nil {
			return key, memberlist.ValidateKey(key)
		}
	}
	return nil, errors.New("it isn't sealed under a key that this broker has")
}

// keyring are the keys that gossip is encrypted with, and servers prove themselves with: that in use first.
type keyring struct {
	ring *memberlist.Keyring // nil in a cluster without keys; changed while mu is held

	mu sync.Mutex
}

// newKeyring holds keys, of which the first is in use. There may be none.
func newKeyring(keys [][]byte) (*keyring, error) {
	if len(keys) == 0 {
		return &keyring{}, nil
	}
	ring, err := memberlist.NewKeyring(keys, keys[0])
	if err != nil {
		return nil, fmt.Errorf("memberlist: encryption_keys: %w", err)
	}
	return &keyring{ring: ring}, nil
}

// keys gives all of them.
func (k *keyring) keys() [][]byte {
	if k.ring == nil {
		return nil
	}
	return k.ring.GetKeys()
}

func (k *keyring) list() []KeyStatus {
	list := []KeyStatus{}
	for i, key := range k.keys() {
		list = append(list, KeyStatus{KeyID(key), i == 0})
	}
	return list
}

// find gives the key with an id.
func (k *keyring) find(id string) (key []byte, used bool, err error) {
	for i, key := range k.keys() {
		if KeyID(key) == id {
			return key, i == 0, nil
		}
	}
	return nil, false, refusal("this broker has no key %.32q", id)
}

func refusal(format string, args ...any) error {
	return &rpc.Error{Code: codeRefused, Text: fmt.Sprintf(format, args...)}
}

func (k *keyring) add(s sealedKey) (id string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ring == nil {
		return "", refusal("this broker has no encryption keys: to begin with them, stop all brokers")
	}
	key, err := s.open(k.keys())
	if err != nil {
		return "", refusal("no key that could be added: %v", err)
	}
	if _, _, err := k.find(KeyID(key)); err != nil && len(k.keys()) >= maxKeys {
		return "", refusal("this broker has %d keys, which is the most: remove some", maxKeys)
	}
	return KeyID(key), k.ring.AddKey(key)
}

func (k *keyring) use(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, used, err := k.find(id)
	if err != nil || used {
		return err
	}
	return k.ring.UseKey(key)
}

// remove forgets a key. Memberlist's keyring moves the keys behind it within an array that others may be reading: so these are
// taken out first, from the end, where nothing moves, and put back.
func (k *keyring) remove(id string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key, used, err := k.find(id)
	if err != nil {
		return err
	}
	if used {
		return refusal("key %s is in use", id)
	}
	all := slices.Clone(k.keys())
	at := slices.IndexFunc(all, func(other []byte) bool { return string(other) == string(key) })
	for i := len(all) - 1; i >= at; i-- {
		if err := k.ring.RemoveKey(all[i]); err != nil {
			return err
		}
	}
	for _, later := range all[at+1:] {
		if err := k.ring.AddKey(later); err != nil {
			return err
		}
	}
	return nil
}

// keyCommands are answered by each broker, about its own keys.
func (p *peers) keyCommands() map[string]rpc.Handler {
	text := func(do func(id string) error, what string) rpc.Handler {
		return func(_ context.Context, body []byte) (any, error) {
			var id string
			if err := json.Unmarshal(body, &id); err != nil {
				return nil, err
			}
			if err := do(id); err != nil {
				return nil, err
			}
			p.log.Warn("coordination: the encryption keys were changed by an order; the configuration holds at the next start", "key", id, "outcome", what)
			return nil, nil
		}
	}
	return map[string]rpc.Handler{
		methodKeys:      func(context.Context, []byte) (any, error) { return p.keyring.list(), nil },
		methodUseKey:    text(p.keyring.use, "in use"),
		methodRemoveKey: text(p.keyring.remove, "removed"),
		methodAddKey: func(_ context.Context, body []byte) (any, error) {
			var s sealedKey
			if err := json.Unmarshal(body, &s); err != nil {
				return nil, err
			}
			id, err := p.keyring.add(s)
			if err == nil {
				p.log.Warn("coordination: the encryption keys were changed by an order; the configuration holds at the next start", "key", id, "outcome", "added")
			}
			return nil, err
		},
	}
}
