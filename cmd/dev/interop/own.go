package interop

import (
	"context"
	"fmt"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// ownCheck is a group of checks of what only Barnabas has. Each starts a broker for itself.
type ownCheck struct {
	name string
	run  func(context.Context) ([]probe.Result, error)
}

func (r Runner) ownChecks() []ownCheck {
	return []ownCheck{
		{placingName, r.placing},
		{restName, r.restClient},
		{schemathesisName, r.schemathesis},
	}
}

// OwnNames are the names that Only may hold for RunOwn.
func OwnNames() []string {
	var names []string
	for _, c := range (Runner{}).ownChecks() {
		names = append(names, c.name)
	}
	return names
}

// RunOwn makes the checks of what only Barnabas has: topics that check where their records are, and the HTTP gateway. The error
// says that they could not be made; failed checks are in the Report.
func (r Runner) RunOwn(ctx context.Context) (Report, error) {
	report := Report{Target: "barnabas, what only it has"}
	for _, c := range r.ownChecks() {
		if !r.chosen(c.name) {
			continue
		}
		results, err := c.run(ctx)
		if err != nil {
			return Report{}, fmt.Errorf("%s: %w", c.name, err)
		}
		good, _ := Report{Results: results}.Counts()
		r.Env.Say("%s: %d of %d checks good", c.name, good, len(results))
		report.Results = append(report.Results, results...)
	}
	return report, nil
}

// startOwn starts a broker built from this tree, which stop ends and clears away; o.Dir is set here.
func (r Runner) startOwn(ctx context.Context, o target.Options) (broker *peers.Peer, stop func(), err error) {
	bin, err := r.Tools.GoBuild(ctx, "./cmd/barnabas")
	if err != nil {
		return nil, nil, err
	}
	dir, cleanup, err := r.Env.TempDir("barnabas-")
	if err != nil {
		return nil, nil, err
	}
	o.Dir = dir
	if broker, err = target.StartBarnabas(ctx, bin, o); err != nil {
		cleanup()
		return nil, nil, err
	}
	return broker, func() { broker.Kill(); cleanup() }, nil
}
