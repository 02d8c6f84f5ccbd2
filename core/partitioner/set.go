package partitioner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Named is a partitioner under the name that topics and commands call it by.
type Named struct {
	Name string
	Partitioner
}

// Set is the partitioners that a program has, by name: topics may declare which one is theirs. It is a plugin.Component that
// starts and stops all of them. It is immutable and safe for use from any goroutine.
type Set struct {
	order []Named
}

// NewSet makes a set. Two of the same name are an error.
func NewSet(partitioners ...Named) (*Set, error) {
	s := &Set{order: slices.Clone(partitioners)}
	seen := map[string]bool{}
	for _, p := range partitioners {
		if p.Name == "" || p.Partitioner == nil {
			return nil, errors.New("partitioner: one has no name, or there is none behind it")
		}
		if seen[p.Name] {
			return nil, fmt.Errorf("partitioner: two are named %q", p.Name)
		}
		seen[p.Name] = true
	}
	return s, nil
}

// Get finds a partitioner by its exact name. The error for an unknown one lists the valid names and the nearest.
func (s *Set) Get(name string) (Partitioner, error) {
	for _, p := range s.order {
		if p.Name == name {
			return p.Partitioner, nil
		}
	}
	text := fmt.Sprintf("unknown partitioner %q", name)
	if near := config.Nearest(name, s.Names()); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return nil, fmt.Errorf("%s; there are: %s", text, strings.Join(s.Names(), ", "))
}

// All lists the partitioners in the order in which they were given.
func (s *Set) All() []Named { return slices.Clone(s.order) }

// Names lists the names in that order.
func (s *Set) Names() []string {
	names := make([]string, len(s.order))
	for i, p := range s.order {
		names[i] = p.Name
	}
	return names
}

// Start starts the partitioners in the order in which they were given. When one fails, those before it are stopped again.
func (s *Set) Start(ctx context.Context) error {
	for i, p := range s.order {
		if err := p.Start(ctx); err != nil {
			err = fmt.Errorf("start partitioner %s: %w", p.Name, err)
			return errors.Join(err, stop(ctx, s.order[:i]))
		}
	}
	return nil
}

// Stop stops all partitioners, the last first, whether or not one of them fails to.
func (s *Set) Stop(ctx context.Context) error { return stop(ctx, s.order) }

func stop(ctx context.Context, partitioners []Named) error {
	var errs []error
	for i := len(partitioners) - 1; i >= 0; i-- {
		if err := partitioners[i].Stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop partitioner %s: %w", partitioners[i].Name, err))
		}
	}
	return errors.Join(errs...)
}
