package api

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// ApiVersions (key 18): v0-4
//
// Behaviour:
//   - Lists the table's keys and version ranges.
//   - A version that isn't served is answered in the layout of version 0 with UNSUPPORTED_VERSION and the range of this key
//     only, without reading the body, so that the client can go on with a version that is (KIP-511).
//   - The response header is v0 in every version: package wire knows (FlexiblePlain).
//   - A software name or version that isn't made of letters, digits and inner dots and dashes is an INVALID_REQUEST.
//   - No features are listed: without transaction.version clients keep to the transactions of KIP-98. That none is finalized is
//     known, so the epoch is 0, as of Kafka's own cluster on ZooKeeper, and not -1.
//
// Versions:
//
//	v1: throttle time
//	v2: answered before throttling (KIP-219)
//	v3: flexible; software name and version (KIP-511); features in tagged fields (KIP-584)
//	v4: features with minimum level 0 may be listed (KAFKA-17011); there are none here
func (h *handlers) apiVersions(t *Table, r *Request) Reply {
	req := r.Body.(*kmsg.ApiVersionsRequest)
	resp := kmsg.NewPtrApiVersionsResponse()
	if req.Version >= 3 {
		if !validSoftware(req.ClientSoftwareName) || !validSoftware(req.ClientSoftwareVersion) {
			resp.ErrorCode = kerr.InvalidRequest.Code
			return r.Answer(resp)
		}
		r.wire.Conn.SetSoftware(wire.Software{Name: req.ClientSoftwareName, Version: req.ClientSoftwareVersion})
	}
	resp.FinalizedFeaturesEpoch = 0
	for _, k := range t.Ranges() {
		resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: k.Key, MinVersion: k.Min, MaxVersion: k.Max})
	}
	return r.Answer(resp)
}

// unsupportedApiVersions answers an ApiVersions request of an unknown version.
func (t *Table) unsupportedApiVersions(r *Request) Reply {
	own := t.rows[kmsg.ApiVersions]
	t.meter.Refused(kmsg.ApiVersions.Int16(), r.Version(), own.max)
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = []kmsg.ApiVersionsResponseApiKey{{ApiKey: kmsg.ApiVersions.Int16(), MinVersion: own.min, MaxVersion: own.max}}
	out := r.wire.NewResponse()
	out.B = resp.AppendTo(out.B) // version 0, whatever was asked
	return wire.Respond(out)
}

// validSoftware reports whether s may be a client's software name or version: letters, digits, and '.' and '-' between them.
func validSoftware(s string) bool {
	if s == "" || len(s) > 1<<15-1 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case (c == '.' || c == '-') && i > 0 && i < len(s)-1:
		default:
			return false
		}
	}
	return true
}
