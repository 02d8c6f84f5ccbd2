package bench

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Await waits until a broker answers a Metadata request, looking every millisecond. The error is ctx's.
func Await(ctx context.Context, addr string) error {
	r := kmsg.NewPtrMetadataRequest()
	r.SetVersion(9) // of Kafka 2.4 and later
	ask := frame(r)
	for {
		c, err := dial(ctx, addr)
		if err == nil {
			if err = c.write(ask); err == nil {
				_, err = c.read()
			}
			c.close()
		}
		if err == nil {
			return nil
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
