package plugin

import "github.com/barnabas-mq/barnabas/core/config"

// Choice is one implementation of a role as a configuration chose it: a factory and options that were checked. It is
// all that is needed to make the implementation but the settings, which whoever composes the program has. Choices are
// immutable and safe for use from any goroutine.
type Choice[S, T any] struct {
	factory Factory[S, T]
	options config.Section
}

// Choose reads a section that chooses an implementation: its name alone, or a mapping of the name to its options. The
// name must be in the registry and the options must pass the factory's check.
func (r Registry[S, T]) Choose(section config.Section) (Choice[S, T], error) {
	name, options, err := section.Choice()
	if err != nil {
		return Choice[S, T]{}, err
	}
	factory, err := r.Get(name)
	if err != nil {
		return Choice[S, T]{}, section.Wrap(err)
	}
	return chosen(factory, options)
}

// With chooses an implementation by name, with options that stand elsewhere than below its name.
func (r Registry[S, T]) With(name string, options config.Section) (Choice[S, T], error) {
	factory, err := r.Get(name)
	if err != nil {
		return Choice[S, T]{}, options.Wrap(err)
	}
	return chosen(factory, options)
}

func chosen[S, T any](factory Factory[S, T], options config.Section) (Choice[S, T], error) {
	if err := factory.Check(options); err != nil {
		return Choice[S, T]{}, err
	}
	return Choice[S, T]{factory: factory, options: options}, nil
}

// Default chooses an implementation by name, with its default options.
func (r Registry[S, T]) Default(name string) (Choice[S, T], error) {
	factory, err := r.Get(name)
	if err != nil {
		return Choice[S, T]{}, err
	}
	options := config.Empty(r.role + "." + name)
	return Choice[S, T]{factory: factory, options: options}, factory.Check(options)
}

// Name is the name of the implementation.
func (c Choice[S, T]) Name() string { return c.factory.name }

// Options lists the options with the values they have under this choice, in place of the defaults.
func (c Choice[S, T]) Options() []config.Field {
	return c.factory.Effective(c.options)
}

// New makes the implementation. It may be called more than once; each call makes another.
func (c Choice[S, T]) New(settings S) (T, error) { return c.factory.New(c.options, settings) }
