package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/group"
)

// allGroupOperations are the operations on a group that Kafka 3.9 knows, as bits: READ, DELETE, DESCRIBE (KIP-430). There are
// no ACLs: everybody may do them.
const allGroupOperations int32 = 1<<3 | 1<<6 | 1<<8

// DescribeGroups (key 15): v0-6
//
// Behaviour:
//   - A group that does not exist is Dead; from v6 on it is GROUP_ID_NOT_FOUND as well.
//   - What members said and were assigned is told of stable groups only: while a group rebalances that is about to change.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: authorized operations (KIP-430)
//	v4: group instance ids (KIP-345)
//	v5: flexible
//	v6: error message, and the error for groups that don't exist (KIP-1043)
func (h *handlers) describeGroups(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeGroupsRequest)
	resp := kmsg.NewPtrDescribeGroupsResponse()
	for _, id := range req.Groups {
		d, err := h.Groups.Describe(id)
		g := kmsg.NewDescribeGroupsResponseGroup()
		g.Group, g.ErrorCode = id, code(err)
		if err == nil {
			g.State, g.ProtocolType, g.Protocol = string(d.State), d.ProtocolType, d.Protocol
			if req.IncludeAuthorizedOperations {
				g.AuthorizedOperations = allGroupOperations
			}
		}
		if req.Version >= 6 && err == nil && d.State == group.Dead {
			g.ErrorCode, g.ErrorMessage = kerr.GroupIDNotFound.Code, pointer("Group "+id+" not found.")
		}
		for _, m := range d.Members {
			gm := kmsg.NewDescribeGroupsResponseGroupMember()
			gm.MemberID, gm.InstanceID, gm.ClientID, gm.ClientHost = m.ID, m.InstanceID, m.ClientID, m.ClientHost
			gm.ProtocolMetadata, gm.MemberAssignment = m.Metadata, m.Assignment
			g.Members = append(g.Members, gm)
		}
		resp.Groups = append(resp.Groups, g)
	}
	return r.Answer(resp)
}
