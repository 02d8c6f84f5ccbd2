package api

import (
	"context"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// groupType is the type of all groups that there are (KIP-848 has others).
const groupType = "classic"

// ListGroups (key 16): v0-5
//
// Behaviour:
//   - Lists the groups that this broker coordinates. While some are loading the error is COORDINATOR_LOAD_IN_PROGRESS, and the
//     others are listed.
//   - Filters don't mind case; an unknown state or type matches nothing.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: flexible
//	v4: states, and a filter for them (KIP-518)
//	v5: types, and a filter for them (KIP-848)
func (h *handlers) listGroups(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.ListGroupsRequest)
	resp := kmsg.NewPtrListGroupsResponse()
	list, err := h.Groups.List()
	resp.ErrorCode = code(err)
	for _, o := range list {
		if strings.HasPrefix(o.ID, oldGroups) || !passes(req.StatesFilter, string(o.State)) || !passes(req.TypesFilter, groupType) {
			continue
		}
		g := kmsg.NewListGroupsResponseGroup()
		g.Group, g.ProtocolType, g.GroupState, g.GroupType = o.ID, o.ProtocolType, string(o.State), groupType
		resp.Groups = append(resp.Groups, g)
	}
	return r.Answer(resp)
}

// passes says whether a filter lets a value pass: an empty one all.
func passes(filter []string, value string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
}
