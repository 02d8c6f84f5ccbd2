package gossip

import (
	"context"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
	"github.com/barnabas-mq/barnabas/membership/gossip/internal/machine"
)

// requests implements election.Requests. Nobody but brokers can ask for anything: that they have lost log directories.
type requests struct{ c *coordination }

func (r requests) List(ctx context.Context) (all []election.Request, err error) {
	err = r.c.read(ctx, func(m *machine.Machine) { all = m.Requests() })
	return all, err
}

func (r requests) Watch(ctx context.Context) (election.Watch, error) {
	return r.c.watch(ctx, election.RequestsChanged)
}

func (r requests) Done(ctx context.Context, epoch int32, done []election.Request) ([]error, error) {
	results, _, err := r.c.items(ctx, epoch, len(done), func(i int) (error, bool) {
		return nil, done[i].Kind != election.DirFailed || !state.IsText(done[i].ID, nil) // there is none like that
	}, func(command *machine.Command, i int) {
		command.Done = append(command.Done, machine.Request{Broker: done[i].Broker, ID: done[i].ID})
	})
	return results, err
}

func (r requests) ReportDirFailure(ctx context.Context, brokerID int32) error {
	_, err := r.c.write(ctx, &machine.Command{DirFailed: &machine.DirFailed{Broker: brokerID}})
	return err
}

func (r requests) Unmark(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	return r.c.names(ctx, epoch, topics, nil, func(c *machine.Command) *[]string { return &c.Unmark })
}
