package plugin

import (
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Registry holds the factories of one role. It is immutable and safe for use from any goroutine; the zero Registry
// has none.
type Registry[S, T any] struct {
	role      string
	factories []Factory[S, T]
}

// NewRegistry makes the registry of a role, named as its YAML key. Each factory must have been made by [NewFactory]
// and have a valid name of its own.
func NewRegistry[S, T any](role string, factories ...Factory[S, T]) (Registry[S, T], error) {
	seen := make(map[string]bool, len(factories))
	for _, f := range factories {
		if err := f.fault(); err != nil {
			return Registry[S, T]{}, fmt.Errorf("role %s: %w", role, err)
		}
		if seen[f.name] {
			return Registry[S, T]{}, fmt.Errorf("role %s: plugin: two factories are named %q", role, f.name)
		}
		seen[f.name] = true
	}
	return Registry[S, T]{role: role, factories: append([]Factory[S, T](nil), factories...)}, nil
}

// Role is the YAML key of the role.
func (r Registry[S, T]) Role() string { return r.role }

// Names lists the names, in the order in which the factories were given.
func (r Registry[S, T]) Names() []string {
	names := make([]string, len(r.factories))
	for i, f := range r.factories {
		names[i] = f.name
	}
	return names
}

// Get finds a factory by its exact name. The error for an unknown one lists the valid names and the nearest.
func (r Registry[S, T]) Get(name string) (Factory[S, T], error) {
	for _, f := range r.factories {
		if f.name == name {
			return f, nil
		}
	}
	text := fmt.Sprintf("unknown %s %q", r.role, name)
	if near := config.Nearest(name, r.Names()); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	return Factory[S, T]{}, fmt.Errorf("%s; valid: %s", text, strings.Join(r.Names(), ", "))
}
