package plugin_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

type greeter interface{ Greet() string }

type settings struct {
	plugin.Settings
	Place string
}

type options struct {
	Word  string `yaml:"word" doc:"what to say"`
	Times int    `yaml:"times" doc:"how often"`
}

func (o options) Validate() error {
	if o.Times < 1 {
		return config.At("times", errors.New("must be at least 1"))
	}
	return nil
}

type greeting string

func (g greeting) Greet() string { return string(g) }

var errBuild = errors.New("no such place")

func hello(name string) plugin.Factory[settings, greeter] {
	return plugin.NewFactory(name, "says a word",
		func() options { return options{Word: "hello", Times: 1} },
		func(o options, s settings) (greeter, error) {
			if s.Place == "" {
				return nil, errBuild
			}
			return greeting(o.Word + " " + s.Place), nil
		})
}

func section(t *testing.T, text string) config.Section {
	t.Helper()
	root, err := config.Parse("x.yaml", []byte(text))
	require.NoError(t, err)
	sub, _ := root.Sub("greeter")
	_, options, err := sub.Choice()
	require.NoError(t, err)
	return options
}

func TestFactory(t *testing.T) {
	f := hello("hello")
	s := settings{Settings: plugin.Settings{Logger: slog.New(slog.DiscardHandler)}, Place: "world"}

	made, err := f.New(config.Empty("greeter.hello"), s)
	require.NoError(t, err)
	assert.Equal(t, "hello world", made.Greet())

	made, err = f.New(section(t, "greeter: {hello: {word: bye}}"), s)
	require.NoError(t, err)
	assert.Equal(t, "bye world", made.Greet())

	assert.Equal(t, "hello", f.Name())
	assert.Equal(t, "says a word", f.Summary())
	assert.Equal(t, []config.Field{
		{Name: "word", Type: "text", Default: "hello", Doc: "what to say"},
		{Name: "times", Type: "int", Default: "1", Doc: "how often"},
	}, f.Options())
}

func TestFactoryErrorsHaveAPlace(t *testing.T) {
	f := hello("hello")
	bad := section(t, "greeter:\n  hello:\n    wrod: x\n    times: many\n")
	want := "x.yaml:3: greeter.hello: unknown key \"wrod\" (did you mean \"word\"?)\n" +
		"x.yaml:4: greeter.hello.times: want a whole number, not the text \"many\""
	assert.EqualError(t, f.Check(bad), want)
	_, err := f.New(bad, settings{Place: "x"})
	assert.EqualError(t, err, want)

	assert.EqualError(t, f.Check(section(t, "greeter:\n  hello:\n    times: 0\n")), "x.yaml:3: greeter.hello.times: must be at least 1")

	_, err = f.New(section(t, "greeter: hello"), settings{})
	assert.EqualError(t, err, "x.yaml:1: greeter.hello: no such place")
	assert.ErrorIs(t, err, errBuild)
}

func TestRegistry(t *testing.T) {
	r, err := plugin.NewRegistry("greeter", hello("hello"), hello("good-day"))
	require.NoError(t, err)
	assert.Equal(t, "greeter", r.Role())
	assert.Equal(t, []string{"hello", "good-day"}, r.Names())

	f, err := r.Get("good-day")
	require.NoError(t, err)
	assert.Equal(t, "good-day", f.Name())

	_, err = r.Get("helo")
	assert.EqualError(t, err, `unknown greeter "helo" (did you mean "hello"?); valid: hello, good-day`)
	_, err = r.Get("Hello")
	assert.ErrorContains(t, err, `did you mean "hello"?`)
}

func TestRegistryRefuses(t *testing.T) {
	_, err := plugin.NewRegistry("greeter", hello("hello"), hello("hello"))
	assert.ErrorContains(t, err, `two factories are named "hello"`)
	for _, name := range []string{"", "Hello", "1st", "a.b", "a b", "-a"} {
		_, err = plugin.NewRegistry("greeter", hello(name))
		assert.ErrorContains(t, err, "is no name", name)
	}
	var zero plugin.Factory[settings, greeter]
	_, err = plugin.NewRegistry("greeter", zero)
	assert.ErrorContains(t, err, "not made by NewFactory")
	_, err = zero.New(config.Empty("x"), settings{})
	assert.Error(t, err)
	assert.Error(t, zero.Check(config.Empty("x")))
	assert.Empty(t, zero.Options())
}

func TestChoose(t *testing.T) {
	r, err := plugin.NewRegistry("greeter", hello("hello"), hello("good-day"))
	require.NoError(t, err)
	choose := func(text string) (plugin.Choice[settings, greeter], error) {
		root, err := config.Parse("x.yaml", []byte(text))
		require.NoError(t, err)
		sub, _ := root.Sub("greeter")
		return r.Choose(sub)
	}
	choice, err := choose("greeter: {good-day: {times: 3}}")
	require.NoError(t, err)
	assert.Equal(t, "good-day", choice.Name())
	assert.Equal(t, "3", choice.Options()[1].Default)
	made, err := choice.New(settings{Place: "here"})
	require.NoError(t, err)
	assert.Equal(t, "hello here", made.Greet())

	_, err = choose("greeter: god-day")
	assert.EqualError(t, err, `x.yaml:1: greeter: unknown greeter "god-day" (did you mean "good-day"?); valid: hello, good-day`)
	_, err = choose("greeter: {hello: {times: 0}}")
	assert.EqualError(t, err, "x.yaml:1: greeter.hello.times: must be at least 1")
	_, err = choose("greeter: {hello: {}, good-day: {}}")
	assert.ErrorContains(t, err, "want one name")

	choice, err = r.Default("hello")
	require.NoError(t, err)
	assert.Equal(t, "hello", choice.Name())
	_, err = r.Default("nobody")
	assert.ErrorContains(t, err, "valid: hello, good-day")
	assert.Empty(t, plugin.Choice[settings, greeter]{}.Options())
}
