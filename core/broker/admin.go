package broker

import (
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
)

// startAdmin begins to answer those who watch the broker. It is the first step of Start, so that they are answered while logs are
// recovered, and its counterpart the last of Stop. Whatever a route shows of the broker it has to be able to do without: until
// b.serving the rooms are still being made.
func (b *Broker) startAdmin(ctx context.Context) error {
	if b.o.Admin == nil {
		return nil
	}
	var err error
	if b.admin, err = adminhttp.New(*b.o.Admin, b.log, b.routes()...); err != nil {
		return err
	}
	return b.run(ctx, "the admin server", b.admin)
}

// routes are all that the admin server answers. Nothing else adds to them.
func (b *Broker) routes() []adminhttp.Route {
	return slices.Concat(b.o.AdminRoutes, b.watchRoutes(), b.logRoutes(), []adminhttp.Route{
		{Method: http.MethodGet, Path: "/metrics", Summary: "metrics, as Prometheus reads them", Handler: b.metrics()},
	})
}

// AdminAddr is where the admin server listens, nil without one.
func (b *Broker) AdminAddr() net.Addr {
	if b.admin == nil {
		return nil
	}
	return b.admin.Addr()
}
