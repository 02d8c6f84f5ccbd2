package standalone

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/core/election"
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
	err := r.c.controllerWrite(ctx, epoch, func() ([]op, error) {
		r.c.reports = slices.DeleteFunc(r.c.reports, func(have election.Request) bool {
			return slices.ContainsFunc(done, func(d election.Request) bool { return reflect.DeepEqual(d, have) })
		})
		r.c.changed(election.Change{Kind: election.RequestsChanged})
		return nil, nil
	})
	return outcome(make([]error, len(done)), err)
}

func (r requests) ReportDirFailure(ctx context.Context, brokerID int32) error {
	if brokerID < 0 {
		return fmt.Errorf("standalone: %w: broker id %d", election.ErrInvalid, brokerID)
	}
	return r.c.write(ctx, func() ([]op, error) {
		r.c.reported++
		r.c.reports = append(r.c.reports, election.Request{Kind: election.DirFailed, Broker: brokerID, ID: strconv.Itoa(r.c.reported)})
		r.c.changed(election.Change{Kind: election.RequestsChanged})
		return nil, nil
	}, nil)
}

// Unmark has no operation of its own in the file, whose format is complete: the topic is removed and comes again without its
// mark, in one write.
func (r requests) Unmark(ctx context.Context, epoch int32, topics []string) ([]error, error) {
	err := r.c.controllerWrite(ctx, epoch, func() (ops []op, _ error) {
		seen := map[string]bool{}
		for _, name := range topics {
			t := r.c.state.Topics[name]
			if t == nil || !t.Deleting || seen[name] {
				continue
			}
			seen[name] = true
			ops = append(ops, op{Removed: name}, op{Topic: topicToOp(name, t.ID, assignments(t))})
			for i, p := range t.Partitions {
				if p.State != nil {
					ops = append(ops, op{State: stateToOp(name, int32(i), *p.State)})
				}
			}
			if c, ok := r.c.state.Configs[election.Entity{Kind: election.TopicEntity, Name: name}]; ok {
				ops = append(ops, op{Config: &configOp{Kind: kindName(election.TopicEntity), Name: name, Values: maps.Clone(c.Values), Version: c.Version}})
			}
		}
		return ops, nil
	})
	return outcome(make([]error, len(topics)), err)
}
