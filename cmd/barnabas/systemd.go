package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// serviceManager tells systemd, or whatever else listens at NOTIFY_SOCKET, how far the broker is (sd_notify(3)). Without that variable,
// which the manager sets for a unit of Type=notify, it tells nobody.
type serviceManager struct{ log *slog.Logger }

// tell sends a state. That it can't be sent is no reason to stop serving: the manager finds out by itself.
func (m serviceManager) tell(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		m.log.Warn("the service manager can't be told of this broker's state", "state", state, "err", err)
	}
}

// starting says that a start has begun, which may take as long as recovery does.
func (m serviceManager) starting() {
	m.tell("STATUS=starting: logs are recovered where that is needed")
}

// ready says that the broker serves, and, where the unit has a WatchdogSec, that it is alive, until watch is called off: twice in each such
// interval, as long as the broker can go on.
func (m serviceManager) ready(addresses string, broker server) (callOff func()) {
	m.tell(daemon.SdNotifyReady + "\nSTATUS=serving " + addresses)
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		m.log.Warn("the service manager's watchdog is not understood, and will think that this broker hangs", "err", err)
	}
	if interval <= 0 || err != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(interval / 2)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if broker.Err() == nil {
					m.tell(daemon.SdNotifyWatchdog)
				}
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// stopping says that the broker hands its leaderships over, and closes its logs.
func (m serviceManager) stopping() { m.tell(daemon.SdNotifyStopping + "\nSTATUS=stopping") }
