package faults

import (
	"context"
	"time"
)

// coordination is what the brokers of a cluster agree through, and how that is broken.
type coordination interface {
	// wire gives a broker its ways there, all through gates, and says what of it goes into the broker's configuration.
	wire(b *Broker) error
	// session is how long a broker of which nothing is heard is taken for alive.
	session() time.Duration
	// cut cuts a broker from it, and from nothing else.
	cut(b *Broker)
	// delay lets everything that is said there take up to so long, drawn for each way.
	delay(draw func() time.Duration)
	// killLeader kills whatever decides there. again starts it.
	killLeader(ctx context.Context, f *Field) (again func(context.Context) error, err error)
	// stall lets nothing be decided there any more. resume ends that.
	stall(f *Field) (resume func() error, err error)
	// mend undoes what was done to it, but for what the network's own Heal does.
	mend(ctx context.Context) error
}
