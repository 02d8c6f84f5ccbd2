package group

import "encoding/binary"

// Overview is a group in a list.
type Overview struct {
	ID, ProtocolType string
	State            State
}

// Overview describes the group in a line.
func (g *Group) Overview() Overview {
	return Overview{ID: g.id, ProtocolType: g.protocolType, State: g.state}
}

// Description is a group with its members.
type Description struct {
	ID, ProtocolType string
	Protocol         string // of a stable group
	State            State
	Members          []MemberDescription
}

// MemberDescription is a member of a described group. Metadata and Assignment are those of a stable group.
type MemberDescription struct {
	ID                   string
	InstanceID           *string
	ClientID, ClientHost string
	Metadata, Assignment []byte
}

// Describe describes the group with its members. While it rebalances, what its members said and were given is about to
// change, and left out.
func (g *Group) Describe() Description {
	d := Description{ID: g.id, ProtocolType: g.protocolType, State: g.state}
	if g.state == Dead {
		d.ProtocolType = ""
		return d
	}
	if g.state == Stable {
		d.Protocol = g.protocolName()
	}
	for _, m := range g.members {
		md := MemberDescription{ID: m.id, InstanceID: m.instance, ClientID: m.clientID, ClientHost: m.clientHost}
		if g.state == Stable {
			md.Metadata, md.Assignment = m.metadata(d.Protocol), m.assignment
		}
		d.Members = append(d.Members, md)
	}
	return d
}

// subscriptions gives the topics that the members read, nil when that can't be known: when they don't speak the consumer
// protocol, or one of them says it in a way that isn't understood.
func (g *Group) subscriptions() map[string]struct{} {
	if g.protocolType != consumerProtocol || len(g.members) > 0 && g.protocol == nil {
		return nil
	}
	topics := map[string]struct{}{}
	for _, m := range g.members {
		if !parseSubscription(m.metadata(*g.protocol), topics) {
			return nil
		}
	}
	return topics
}

// parseSubscription adds the topics of a consumer's metadata (ConsumerProtocolSubscription, all versions): int16 version,
// int32 count, strings. What follows doesn't matter here. It says whether the bytes made sense.
func parseSubscription(b []byte, topics map[string]struct{}) bool {
	if len(b) < 6 || int16(binary.BigEndian.Uint16(b)) < 0 {
		return false
	}
	count := int32(binary.BigEndian.Uint32(b[2:]))
	b = b[6:]
	if count < 0 || int(count) > len(b)/2 {
		return false
	}
	for range count {
		if len(b) < 2 {
			return false
		}
		n := int(int16(binary.BigEndian.Uint16(b)))
		if b = b[2:]; n < 0 || n > len(b) {
			return false
		}
		topics[string(b[:n])] = struct{}{}
		b = b[n:]
	}
	return true
}
