package gateway

import (
	"mime"
	"strconv"
	"strings"
)

// Media types of both versions.
const (
	mediaJSON   = "application/json"
	mediaKafka  = "application/vnd.kafka+json"
	mediaV2     = "application/vnd.kafka.v2+json"
	mediaBinary = "application/vnd.kafka.binary.v2+json"
	mediaEmbed  = "application/vnd.kafka.json.v2+json"
)

// mediaOf lists the media types in which a version answers, the usual one first.
func mediaOf(version int) []string {
	if version == 3 {
		return []string{mediaJSON}
	}
	return []string{mediaV2, mediaKafka, mediaJSON, mediaEmbed, mediaBinary}
}

// negotiate chooses among what is offered, preferring what stands first, by an Accept header (RFC 9110, 12.5.1). It is
// "" when nothing fits.
func negotiate(accept []string, offered []string) string {
	header := strings.Join(accept, ",")
	if strings.TrimSpace(header) == "" {
		return offered[0]
	}
	best, weight := "", 0.0
	for _, offer := range offered {
		if q := accepted(header, offer); q > weight {
			best, weight = offer, q
		}
	}
	return best
}

// accepted is the weight of one media type under an Accept header: that of the most specific range that holds it.
func accepted(header, offer string) float64 {
	weight, specific := 0.0, -1
	for part := range strings.SplitSeq(header, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		rank := -1
		switch {
		case name == offer:
			rank = 2
		case strings.HasSuffix(name, "/*") && strings.HasPrefix(offer, strings.TrimSuffix(name, "*")):
			rank = 1
		case name == "*/*":
			rank = 0
		}
		if rank <= specific {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil || !(q >= 0 && q <= 1) {
				continue
			}
		}
		weight, specific = q, rank
	}
	return weight
}
