package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// IncrementalAlterConfigs (key 44, KIP-339): v0-1
//
// Behaviour:
//   - Sets and deletes settings of a topic, of this broker (its id) or of all brokers (""), and adds to and takes from those
//     that are lists. The others stay as they are.
//   - What is accepted is kept, in force here when the answer comes, and in force after a restart. Other brokers see it soon.
//   - Each resource succeeds or fails as a whole and by itself. One that is named twice fails both times, as does one with a
//     setting that is named twice.
//   - Of a topic: INVALID_CONFIG for an unknown setting or a bad value; of a broker INVALID_REQUEST.
//   - Sets the levels of this broker's loggers, or lets them have root's again (KIP-412): at once, until the broker stops. INVALID_CONFIG
//     for a logger or a level that isn't there.
//
// Versions:
//
//	v1: flexible
func (h *handlers) incrementalAlterConfigs(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.IncrementalAlterConfigsRequest)
	resp := kmsg.NewPtrIncrementalAlterConfigsResponse()
	r.Waiting() // for the coordination
	defer r.Resume()
	type resource struct {
		kind kmsg.ConfigResourceType
		name string
	}
	count := map[resource]int{}
	for i := range req.Resources {
		count[resource{req.Resources[i].ResourceType, req.Resources[i].ResourceName}]++
	}
	for i := range req.Resources {
		in := &req.Resources[i]
		changes := make([]kafka.Change, len(in.Configs))
		for n := range in.Configs {
			changes[n] = kafka.Change{Name: in.Configs[n].Name, Op: kafka.Op(in.Configs[n].Op), Value: in.Configs[n].Value}
		}
		var err error
		switch {
		case count[resource{in.ResourceType, in.ResourceName}] > 1:
			err = refuse(kerr.InvalidRequest, "Each resource must appear at most once.")
		case in.ResourceType == kmsg.ConfigResourceTypeBrokerLogger:
			err = h.alterLoggers(in.ResourceName, changes, req.ValidateOnly)
		default:
			err = h.alter(ctx, in.ResourceType, in.ResourceName, req.ValidateOnly, change{
				topic: func(now kafka.Layers, set kafka.Values) (kafka.Values, error) {
					return now.ChangeTopicIncrementally(set, changes)
				},
				broker: func(now kafka.Layers, target kafka.Target) (kafka.Layers, error) {
					return now.ChangeBrokerIncrementally(target, changes)
				},
			})
		}
		out := kmsg.NewIncrementalAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		out.ErrorCode, out.ErrorMessage = code(err), message(err)
		resp.Resources = append(resp.Resources, out)
	}
	return r.Answer(resp)
}
