package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// AlterConfigs (key 33): v0-2
//
// Behaviour:
//   - Replaces all settings of a topic, of this broker (its id), or of all brokers (""). What isn't named goes back to what
//     it would be without. IncrementalAlterConfigs loses nothing that way.
//   - What is accepted is kept, in force here when the answer comes, and in force after a restart. Other brokers see it soon.
//   - Each resource succeeds or fails as a whole and by itself. One that is named twice fails both times.
//   - Of a topic: INVALID_CONFIG for an unknown setting or a bad value; of a broker INVALID_REQUEST.
//   - Loggers can't be set with this request.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: flexible
func (h *handlers) alterConfigs(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.AlterConfigsRequest)
	resp := kmsg.NewPtrAlterConfigsResponse()
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
		settings := make([]kafka.Setting, len(in.Configs))
		for n := range in.Configs {
			settings[n] = kafka.Setting{Name: in.Configs[n].Name, Value: in.Configs[n].Value}
		}
		err := refuse(kerr.InvalidRequest, "Each resource must appear at most once.")
		if count[resource{in.ResourceType, in.ResourceName}] == 1 {
			err = h.alter(ctx, in.ResourceType, in.ResourceName, req.ValidateOnly, change{
				topic: func(now kafka.Layers, _ kafka.Values) (kafka.Values, error) { return now.ChangeTopic(settings) },
				broker: func(now kafka.Layers, target kafka.Target) (kafka.Layers, error) {
					return now.ChangeBroker(target, settings)
				},
			})
		}
		out := kmsg.NewAlterConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		out.ErrorCode, out.ErrorMessage = code(err), message(err)
		resp.Resources = append(resp.Resources, out)
	}
	return r.Answer(resp)
}
