package api

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// DeleteGroups (key 42): v0-3
//
// Behaviour:
//   - Only groups without members can be deleted, NON_EMPTY_GROUP. Their offsets go with them.
//   - A group that is named twice is deleted once.
//   - The answer waits until the removal is stored.
//
// Versions:
//
//	v1: answered before throttling (KIP-219)
//	v2: flexible
//	v3: error message (KIP-1043)
func (h *handlers) deleteGroups(ctx context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DeleteGroupsRequest)
	resp := kmsg.NewPtrDeleteGroupsResponse()
	told := make(map[string]bool, len(req.Groups))
	for _, id := range req.Groups {
		if told[id] {
			continue
		}
		told[id] = true
		g := kmsg.NewDeleteGroupsResponseGroup()
		g.Group, g.ErrorCode = id, code(h.Groups.Delete(ctx, id))
		resp.Groups = append(resp.Groups, g)
	}
	return r.Answer(resp)
}
