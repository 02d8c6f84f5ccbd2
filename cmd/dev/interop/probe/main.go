package probe

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// How long one check may take, with two busy cores and several clients at once in mind.
const checkTimeout = 40 * time.Second

// Main is the whole of a Go client program: it plays the role that the flags ask for and returns the exit code, 0
// when the role was played (checks may have failed: their lines say so) and 2 when it could not be.
func Main(open func(bootstrap string) (Client, Quirks, error)) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, open); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 2
	}
	return 0
}

func run(ctx context.Context, argv []string, stdin io.Reader, stdout io.Writer, open func(string) (Client, Quirks, error)) error {
	args, err := ParseArgs(argv)
	if err != nil {
		return err
	}
	client, quirks, err := open(args.Bootstrap)
	if err != nil {
		return err
	}
	out := NewLines(stdout)
	switch args.Role {
	case RoleMember:
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { // ends with stdin, at the latest when the process does
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
		return client.Member(ctx, args.Group, args.Topic, func(e Event) { out.Put(e) })
	case RoleChecks, RoleRead:
		files, err := LoadCorpus(args.Corpus)
		if err != nil {
			return err
		}
		c := &checker{args: args, client: client, quirks: quirks, files: files, out: out}
		if args.Role == RoleRead {
			c.read(ctx)
		} else {
			c.checks(ctx)
		}
		return nil
	default:
		return fmt.Errorf("--role: %q is not one of %s, %s, %s", args.Role, RoleChecks, RoleRead, RoleMember)
	}
}
