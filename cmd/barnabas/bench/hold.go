package bench

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Hold opens n connections that each ask once which requests the broker knows, as clients do, and then are idle until ctx
// ends. ready, which may be nil, is called when all of them have been answered.
func Hold(ctx context.Context, addr string, n int, ready func() error) error {
	request := kmsg.NewPtrApiVersionsRequest()
	hello := frame(request)
	for i := range n {
		c, err := dial(ctx, addr)
		if err == nil {
			defer c.close()
			err = c.write(hello)
		}
		if err == nil {
			_, err = c.read()
		}
		if err != nil {
			return fmt.Errorf("connection %d of %d: %w", i+1, n, err)
		}
		c.buf, c.stage, c.ahead = nil, nil, nil
	}
	if ready == nil {
		<-ctx.Done()
		return nil
	}
	return ready()
}
