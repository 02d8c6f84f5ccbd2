package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/kafkatools"
	"github.com/barnabas-mq/barnabas/core/record"
)

// kafkaToolsGroup is what the help lists Kafka's tools under.
const kafkaToolsGroup = "kafka"

// runAs runs the command line of a program of that name: of one of Kafka's tools, when the binary is called by its name, else our own.
func runAs(program string, a *app, args []string) int {
	if tool, ok := kafkatools.Find(program); ok {
		return a.runKafkaTool(context.Background(), tool, args)
	}
	return run(a, args)
}

// runKafkaTool runs one of Kafka's tools until it ends, or is told to. The parts of a broker are made only for the tool that asks
// for codecs: the others have to start at once.
func (a *app) runKafkaTool(ctx context.Context, tool kafkatools.Tool, args []string) int {
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	in, _ := a.in.(io.Writer) // a file can be both
	return tool.Run(ctx, kafkatools.World{
		In: a.in, Out: a.out, Err: a.err, Terminal: in != nil && screen(in), Version: version(),
		Codecs: func(ctx context.Context) (record.Codecs, func() error, error) {
			parts, err := newComponents()
			if err != nil {
				return nil, nil, err
			}
			codecs, err := parts.codecs()
			if err == nil {
				err = codecs.Start(ctx)
			}
			if err != nil {
				return nil, nil, err
			}
			return codecs, func() error { return codecs.Stop(context.WithoutCancel(ctx)) }, nil
		},
	}, args)
}

// codeError ends the program with a code, when everything is said.
type codeError int

func (codeError) Error() string { return "" }

// newKafkaTools makes a command of each of Kafka's tools. Their flags are their own.
func newKafkaTools(a *app) []*cobra.Command {
	var commands []*cobra.Command
	for _, tool := range kafkatools.Tools() {
		commands = append(commands, &cobra.Command{
			Use:                tool.Name,
			Aliases:            []string{tool.Name + ".sh"},
			Short:              tool.About,
			GroupID:            kafkaToolsGroup,
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				if code := a.runKafkaTool(cmd.Context(), tool, args); code != exitOK {
					return codeError(code)
				}
				return nil
			},
		})
	}
	return commands
}
