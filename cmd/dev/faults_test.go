package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/barnabas-mq/barnabas/cmd/dev/faults"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// TestASecondChance runs scenarios that fail so often, for this or that reason, and holds how often they were run and what is told.
func TestASecondChance(t *testing.T) {
	late, promise := errors.New("too late"), fmt.Errorf("%w: lost", faults.ErrPromise)
	for name, k := range map[string]struct {
		fails []error
		again bool
		runs  int
		says  []string // of the error; none when there is none
	}{
		"passes":                  {nil, true, 1, nil},
		"passes the second time":  {[]error{late}, true, 2, nil},
		"has no second chance":    {[]error{late}, false, 1, []string{"too late"}},
		"fails twice":             {[]error{errors.New("later"), late}, true, 2, []string{"too late", "the first time: later"}},
		"breaks a promise":        {[]error{promise}, true, 1, []string{"a promise was broken: lost"}},
		"breaks a promise, later": {[]error{late, promise}, true, 2, []string{"a promise was broken: lost", "the first time: too late"}},
	} {
		t.Run(name, func(t *testing.T) {
			env, err := task.NewEnv(new(bytes.Buffer))
			require.NoError(t, err)
			d, dirs := &dev{env: env}, map[string]bool{}
			f := faultFlags{again: k.again, coordination: target.Memberlist}
			_, err = d.scenario(context.Background(), f, "s", faults.Setting{Options: faults.Options{Dir: "dir", Root: "/root"}}, func(_ context.Context, o faults.Setting) (faults.Result, error) {
				dirs[o.Dir+o.Root] = true
				if n := len(dirs); n <= len(k.fails) {
					return faults.Result{Printed: "what brokers printed"}, k.fails[n-1]
				}
				return faults.Result{}, nil
			})
			require.Len(t, dirs, k.runs, "each run has a folder of its own")
			if k.says == nil {
				require.NoError(t, err)
				return
			}
			for _, what := range k.says {
				require.ErrorContains(t, err, what)
			}
			require.ErrorIs(t, err, k.fails[k.runs-1], "what the last run failed with")
		})
	}
}
