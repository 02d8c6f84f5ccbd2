package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// app is what commands share: the world outside, and the parts a broker can be made of.
type app struct {
	in       io.Reader
	out      io.Writer // for results
	err      io.Writer // for logs and complaints
	environ  []string  // as os.Environ gives it
	parts    components
	assemble assembler
}

func newApp(in io.Reader, out, err io.Writer, environ []string) *app {
	return &app{in: in, out: out, err: err, environ: environ, assemble: assemble}
}

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // it was tried and didn't work
	exitWrong  = 2 // the command line or the configuration is wrong, and nothing was tried
)

// wrongError marks errors that call for exitWrong.
type wrongError struct{ error }

func (e wrongError) Unwrap() error { return e.error }

// wrong marks an error as a fault of the command line or the configuration. nil stays nil.
func wrong(err error) error {
	if err == nil {
		return nil
	}
	return wrongError{err}
}

// run runs one command line and gives the exit code.
func run(a *app, args []string) int {
	parts, err := newComponents()
	if err != nil {
		fmt.Fprintln(a.err, err)
		return exitFailed
	}
	a.parts = parts
	root := newRoot(a)
	root.SetArgs(args)
	err = root.ExecuteContext(context.Background())
	if err == nil {
		return exitOK
	}
	if code := codeError(0); errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(a.err, err)
	if errors.As(err, new(wrongError)) {
		return exitWrong
	}
	return exitFailed
}

// newRoot makes the command line. A new command is one line here and a file of its own.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "barnabas",
		Short:         "A message broker that speaks Apache Kafka's protocol, put together from plug-ins by a YAML file",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return wrong(err) })
	root.AddGroup(&cobra.Group{ID: kafkaToolsGroup, Title: "Apache Kafka's tools, with their own flags (also by a link of that name to this program):"})
	root.AddCommand(newKafkaTools(a)...)
	root.AddCommand(
		newBench(a),
		newBroker(a),
		newCluster(a),
		newConfig(a),
		newConsume(a),
		newCoordination(a),
		newDev(a),
		newExplain(a),
		newGroup(a),
		newHealth(a),
		newLog(a),
		newPlugin(a),
		newPlugins(a),
		newProduce(a),
		newServe(a),
		newTopic(a),
		newVerify(a),
		newVersion(a),
	)
	return root
}

// exactly wants n arguments, by name, and calls anything else wrong.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return wrong(fmt.Errorf("%s wants %d arguments, not %d: %s", cmd.CommandPath(), len(names), len(args), cmd.UseLine()))
		}
		return nil
	}
}
