package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/core/broker/internal/journal"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/log"
)

// This file has what the broker does when a log directory fails.

// watchDirs makes what tells the controller of failures.
func (b *Broker) watchDirs(context.Context) error {
	b.dirReports = newDirReports(b.coordination.Requests(), b.id, b.log)
	b.onStop("stop reporting failed log directories", func(context.Context) error {
		b.dirReports.stop()
		return nil
	})
	return nil
}

// dirFailed takes the replicas of a failed log directory out of service, and has the controller told, who asks for them and
// gives their leaderships to others. A broker that has no directory left can't go on.
func (b *Broker) dirFailed(d *log.Dir, err error) {
	b.log.Error("a log directory failed; its partitions are offline until the broker is restarted with a mended disk", "dir", d.Path(), "err", err)
	b.journal.Record(journal.DirFailed{Broker: b.id, Dir: d.Path(), Err: err.Error()})
	b.partitions.FailDir(d.Path(), err)
	b.dirReports.report()
	for _, other := range b.dirs {
		if other.Err() == nil {
			return
		}
	}
	b.fail(fmt.Errorf("all log directories have failed, the last one with: %w", err))
}

// reportPause is how long a broker waits before it tries again to report a failure.
const reportPause = time.Second

// dirReports reports failed log directories until that succeeds, in the background.
type dirReports struct {
	requests election.Requests
	broker   int32
	log      *slog.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

func newDirReports(r election.Requests, broker int32, log *slog.Logger) *dirReports {
	d := &dirReports{requests: r, broker: broker, log: log}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// report reports a failure. It isn't called any more when stop is.
func (d *dirReports) report() {
	d.work.Go(func() {
		for {
			err := d.requests.ReportDirFailure(d.ctx, d.broker)
			if err == nil || d.ctx.Err() != nil || errors.Is(err, election.ErrClosed) {
				return
			}
			d.log.Warn("could not report the failed log directory, will try", "in", reportPause, "err", err)
			t := time.NewTimer(reportPause)
			select {
			case <-t.C:
			case <-d.ctx.Done():
				t.Stop()
				return
			}
		}
	})
}

func (d *dirReports) stop() {
	d.cancel()
	d.work.Wait()
}
