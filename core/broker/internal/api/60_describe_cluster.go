package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// DescribeCluster (key 60, KIP-700): v0-2
//
// Behaviour:
//   - Lists the living brokers that can be reached through a listener of the name that the client came through.
//   - Endpoints of controllers are not for clients here: every controller is a broker. Type 2 is answered with
//     MISMATCHED_ENDPOINT_TYPE, others than 1 and 2 with UNSUPPORTED_ENDPOINT_TYPE.
//
// Versions:
//
//	v1: endpoint type (KIP-919)
//	v2: fenced brokers (KIP-1073), of which there are none
func (h *handlers) describeCluster(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeClusterRequest)
	resp := kmsg.NewPtrDescribeClusterResponse()
	resp.ControllerID, resp.EndpointType = -1, 1
	if req.Version >= 1 && req.EndpointType != 1 {
		err := refuse(kerr.UnsupportedEndpointType, "Unsupported endpoint type.")
		if req.EndpointType == 2 {
			err = refuse(kerr.MismatchedEndpointType, "The request was sent to an endpoint of type BROKER, but we wanted one of type CONTROLLER.")
		}
		resp.ErrorCode, resp.ErrorMessage = code(err), message(err)
		return r.Answer(resp)
	}
	s := h.Cluster.Metadata.Snapshot()
	resp.ClusterID = h.Cluster.ClusterID
	resp.ControllerID, _ = s.Controller()
	for _, b := range s.Brokers() {
		if host, port, ok := b.Endpoint(r.Listener()); ok {
			out := kmsg.DescribeClusterResponseBroker{NodeID: b.ID, Host: host, Port: port}
			if b.Rack != "" {
				out.Rack = &b.Rack
			}
			resp.Brokers = append(resp.Brokers, out)
		}
	}
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = clusterOperations
	}
	return r.Answer(resp)
}
