package standalone

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// requests implements election.Requests. Nobody but this broker can ask for anything, and that it has lost a log directory is known
// for as long as it runs: at its next start it finds out itself.
type requests struct{ c *coordination }

func (r requests) List(ctx context.Context) (all []election.Request, err error) {
	err = r.c.read(ctx, func() { all = slices.Clone(r.c.reports) })
	return all, err
}

func (r requests) Watch(ctx context.Context) (election.Watch, error) {
	return r.c.watch(ctx, func(k election.ChangeKind) bool { return k == election.RequestsChanged })
}

func (r requests) Done(ctx context.Context, epoch int32, done []election.Request) ([]error, error) {
	err := r.c.controllerWrite(ctx, epoch, func() []state.Op {
		r.c.reports = slices.DeleteFunc(r.c.reports, func(have election.Request) bool {
			return slices.ContainsFunc(done, func(d election.Request) bool { return reflect.DeepEqual(d, have) })
		})
		r.c.changed(election.Change{Kind: election.RequestsChanged})
		return nil
	})
	return outcome(make([]error, len(done)), err)
}

func (r requests) ReportDirFailure(ctx context.Context, brokerID int32) error {
	if brokerID < 0 {
		return fmt.Errorf("standalone: %w: broker id %d", election.ErrInvalid, brokerID)
	}
	return r.c.write(ctx, func() ([]state.Op, error) {
		r.c.reported++
		r.c.reports = append(r.c.reports, election.Request{Kind: election.DirFailed, Broker: brokerID, ID: strconv.Itoa(r.c.reported)})
		r.c.changed(election.Change{Kind: election.RequestsChanged})
		return nil, nil
	}, nil)
}

func (r requests) Unmark(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	err := r.c.controllerWrite(ctx, epoch, func() []state.Op { return r.c.state.Unmark(topics) })
	return outcome(make([]error, len(topics)), err)
}
