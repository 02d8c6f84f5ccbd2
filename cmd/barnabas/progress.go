package main

import (
	"context"
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"
)

// How often long work is asked how far it is, and how often it is told where nobody watches.
const (
	askEvery  = 500 * time.Millisecond
	tellEvery = 10 * time.Second
)

// watch asks remaining again and again until it says that nothing remains, and shows how far the work is: as a bar on a
// terminal, else as a line now and then. what names the things that remain, in the plural.
func (a *app) watch(ctx context.Context, what string, remaining func(context.Context) (int, error)) error {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	var bar *progressbar.ProgressBar
	most, told := 0, time.Now()
	for {
		n, err := remaining(ctx)
		if err != nil {
			return err
		}
		if n > most {
			most, bar = n, nil
		}
		switch {
		case most == 0:
		case a.terminal():
			if bar == nil {
				bar = progressbar.NewOptions(most, progressbar.OptionSetWriter(a.err), progressbar.OptionSetWidth(30),
					progressbar.OptionClearOnFinish(), progressbar.OptionShowCount(), progressbar.OptionSetDescription(what))
			}
			_ = bar.Set(most - n)
		case n > 0 && time.Since(told) >= tellEvery:
			told = time.Now()
			fmt.Fprintf(a.err, "%s: %d of %d are left\n", what, n, most)
		}
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %d of %d are left: %w", what, n, most, ctx.Err())
		case <-tick.C:
		}
	}
}
