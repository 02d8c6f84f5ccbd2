// Command dev runs the project's own tasks: its tests, checks and the brokers it is compared with.
//
//	go run ./cmd/dev test            everything that has to pass
//	go run ./cmd/dev test unit lint  some of it
//	go run ./cmd/dev interop --client kcat --storage mmap
//	go run ./cmd/dev generate        what is made of other files
//
// What the tests need is installed through the package managers on first use, into .cache of the repository.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	env, err := task.NewEnv(os.Stdout)
	if err != nil {
		return err
	}
	d := &dev{env: env, tools: tools.New(env)}
	d.targets = target.Opener{Env: env, Tools: d.tools}
	root := &cobra.Command{
		Use:           "dev",
		Short:         "The project's own tasks",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(d.testCommand(), d.lintCommand(), d.generateCommand(), d.interopCommand(), d.partitionsCommand(), d.kgoCommand(), d.killCommand(), d.faultsCommand(), d.kafkaCommand(), d.kafka39Command(), d.compareCommand(), d.coordinationsCommand(), d.znodesCommand(), d.inplaceCommand(), d.scaleCommand())
	return root.ExecuteContext(ctx)
}

// dev is what all commands share.
type dev struct {
	env     *task.Env
	tools   *tools.Tools
	targets target.Opener
}

// brokerFlags choose the broker that a test is made against.
type brokerFlags struct {
	target  string
	storage string
}

func (f *brokerFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.target, "target", target.Barnabas, "broker to test: barnabas (built from this tree), kafka (Apache Kafka) or HOST:PORT")
	c.Flags().StringVar(&f.storage, "storage", "", "Barnabas' storage: mmap or sendfile (default: one after the other)")
}

// each calls test with every broker that the flags choose, started for it, and goes on after an error.
func (d *dev) each(ctx context.Context, f brokerFlags, test func(context.Context, *target.Target) error) error {
	storages := []string{f.storage}
	if f.target == target.Barnabas && f.storage == "" {
		storages = []string{"mmap", "sendfile"}
	}
	var first error
	for _, storage := range storages {
		if err := d.with(ctx, f.target, storage, test); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (d *dev) with(ctx context.Context, what, storage string, test func(context.Context, *target.Target) error) error {
	t, err := d.targets.Open(ctx, what, storage)
	if err != nil {
		return err
	}
	defer t.Close()
	if err := test(ctx, t); err != nil {
		if out := t.Output(); out != "" {
			d.env.Print("the broker's output ends:\n" + out + "\n")
		}
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	return nil
}

// withCluster starts a cluster for test, and stops it cleanly afterwards.
func (d *dev) withCluster(ctx context.Context, o target.ClusterOptions, test func(context.Context, *target.Cluster) error) error {
	c, err := d.targets.OpenCluster(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	if err = test(ctx, c); err == nil {
		err = c.Stop()
	}
	if err != nil {
		d.env.Print("the brokers' output ends:\n" + c.Output() + "\n")
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}
