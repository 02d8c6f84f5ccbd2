package gossip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// KeyHolder is a broker of the cluster, and the keys that it has.
type KeyHolder struct {
	Broker  string      `json:"broker"`
	Server  string      `json:"server"`
	Address string      `json:"address"`
	Keys    []KeyStatus `json:"keys"`
	Err     error       `json:"-"`                 // why it doesn't answer; nil when it does
	Problem string      `json:"problem,omitempty"` // Err, for people
}

// has says whether a broker has a key, and whether it uses it.
func (h *KeyHolder) has(id string) (has, used bool) {
	i := slices.IndexFunc(h.Keys, func(k KeyStatus) bool { return k.ID == id })
	return i >= 0, i >= 0 && h.Keys[i].Used
}

// Keys asks each broker of the cluster, which is found through the addresses, for its keys.
func (a *Admin) Keys(ctx context.Context, addresses []string) ([]KeyHolder, error) {
	var s Status
	var errs []error
	for _, address := range addresses {
		var err error
		if s, err = a.Status(ctx, address); err == nil {
			errs = nil
			break
		}
		errs = append(errs, err)
	}
	if len(errs) > 0 || len(s.Members) == 0 {
		return nil, errors.Join(append(errs, errors.New("no broker says who belongs to the cluster"))...)
	}
	var all []KeyHolder
	for _, m := range s.Members {
		if m.Raft == "none" && m.Gossip != "alive" && m.Gossip != "suspect" {
			continue // it has left, and raft doesn't count on it
		}
		all = append(all, KeyHolder{Broker: m.Broker, Server: m.Server, Address: m.Address})
	}
	a.each(all, func(h *KeyHolder) error { return a.client.Call(ctx, h.Server, h.Address, methodKeys, nil, &h.Keys) })
	return all, nil
}

// each does something with all brokers at the same time, and remembers what became of it.
func (a *Admin) each(all []KeyHolder, do func(h *KeyHolder) error) {
	var asking sync.WaitGroup
	for i := range all {
		asking.Go(func() {
			h := &all[i]
			if h.Err = do(h); h.Err != nil {
				h.Problem = h.Err.Error()
			}
		})
	}
	asking.Wait()
}

// AddKeys gives all brokers the keys that this Admin was made with, which they don't use before they are told to. A broker that doesn't
// answer is an error, when all others have them.
func (a *Admin) AddKeys(ctx context.Context, addresses []string) error {
	all, err := a.haveKeys(ctx, addresses)
	if err != nil {
		return err
	}
	a.each(all, func(h *KeyHolder) error {
		for _, key := range a.keys {
			if h.Err != nil {
				break
			}
			if has, _ := h.has(KeyID(key)); has {
				continue
			}
			s, err := seal(a.keys[0], key)
			if err != nil {
				return err
			}
			if err := a.client.Call(ctx, h.Server, h.Address, methodAddKey, s, nil); err != nil {
				return err
			}
		}
		return h.Err
	})
	return failed(all)
}

// UseKey has all brokers use the first of the keys that this Admin was made with, and says which that is. Nothing is changed unless all answer,
// and have it.
func (a *Admin) UseKey(ctx context.Context, addresses []string) (id string, err error) {
	all, err := a.haveKeys(ctx, addresses)
	if err != nil {
		return "", err
	}
	id = KeyID(a.keys[0])
	var lack []error
	for i := range all {
		h := &all[i]
		if has, _ := h.has(id); h.Err != nil {
			lack = append(lack, fmt.Errorf("whether broker %s has key %s isn't known: %w", h.Broker, id, h.Err))
		} else if !has {
			lack = append(lack, fmt.Errorf("broker %s doesn't have key %s: add it first (coordination keys add)", h.Broker, id))
		}
	}
	if len(lack) > 0 {
		return "", fmt.Errorf("%w, and nothing was changed: %w", ErrNotNow, errors.Join(lack...))
	}
	a.each(all, func(h *KeyHolder) error { return a.client.Call(ctx, h.Server, h.Address, methodUseKey, id, nil) })
	return id, failed(all)
}

// RemoveKey has all brokers forget a key. Nothing is changed unless all answer, and none uses it.
func (a *Admin) RemoveKey(ctx context.Context, addresses []string, id string) error {
	all, err := a.haveKeys(ctx, addresses)
	if err != nil {
		return err
	}
	var stand []error
	known := false
	for i := range all {
		h := &all[i]
		has, used := h.has(id)
		known = known || has
		if h.Err != nil {
			stand = append(stand, fmt.Errorf("whether broker %s uses key %s isn't known: %w", h.Broker, id, h.Err))
		} else if used {
			stand = append(stand, fmt.Errorf("broker %s uses key %s: have all use another one first (coordination keys use)", h.Broker, id))
		}
	}
	if len(stand) == 0 && !known {
		stand = append(stand, fmt.Errorf("no broker has a key %.32q", id))
	}
	if len(stand) > 0 {
		return fmt.Errorf("%w, and nothing was changed: %w", ErrNotNow, errors.Join(stand...))
	}
	a.each(all, func(h *KeyHolder) error {
		if has, _ := h.has(id); !has {
			return nil
		}
		return a.client.Call(ctx, h.Server, h.Address, methodRemoveKey, id, nil)
	})
	return failed(all)
}

// haveKeys is Keys for a cluster that has some.
func (a *Admin) haveKeys(ctx context.Context, addresses []string) ([]KeyHolder, error) {
	if len(a.keys) == 0 {
		return nil, fmt.Errorf("%w: the configuration has no encryption_keys", ErrNotNow)
	}
	return a.Keys(ctx, addresses)
}

// failed says which brokers did nothing.
func failed(all []KeyHolder) error {
	var errs []error
	for _, h := range all {
		if h.Err != nil {
			errs = append(errs, fmt.Errorf("broker %s at %s: %w; do it again when it answers", h.Broker, h.Address, h.Err))
		}
	}
	return errors.Join(errs...)
}
