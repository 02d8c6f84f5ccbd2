package pool

import (
	"encoding/binary"
	"hash/crc32"
)

// The types of memberlist's messages, which are the first byte of each.
const (
	pingMessage         = 0
	indirectPingMessage = 1
	ackMessage          = 2
	suspectMessage      = 3
	aliveMessage        = 4
	deadMessage         = 5
	compoundMessage     = 7
	nackMessage         = 11
	checkedMessage      = 12
	labelMessage        = 244
)

// acceptable says whether a packet may be given to memberlist: it must bear the cluster's label, and, unless it is encrypted, be one of
// the messages that servers send each other or a compound of such. Compression within compression within compounds, which no
// server sends, could keep memberlist busy for ever.
func acceptable(packet []byte, label string, encrypted bool) bool {
	n := len(label)
	if len(packet) < 2+n || packet[0] != labelMessage || int(packet[1]) != n || string(packet[2:2+n]) != label {
		return false
	}
	packet = packet[2+n:]
	if encrypted {
		return len(packet) > 0
	}
	if len(packet) >= 5 && packet[0] == checkedMessage {
		if binary.BigEndian.Uint32(packet[1:]) != crc32.ChecksumIEEE(packet[5:]) {
			return false
		}
		packet = packet[5:]
	}
	if isSimple(packet) {
		return true
	}
	return len(packet) >= 2 && packet[0] == compoundMessage && isCompound(packet[1:])
}

// isCompound checks a compound without its first byte: the number of its parts, their lengths, the parts.
func isCompound(b []byte) bool {
	parts := int(b[0])
	b = b[1:]
	if len(b) < 2*parts {
		return false
	}
	lengths, b := b[:2*parts], b[2*parts:]
	for i := range parts {
		n := int(binary.BigEndian.Uint16(lengths[2*i:]))
		if len(b) < n || !isSimple(b[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

func isSimple(message []byte) bool {
	if len(message) == 0 {
		return false
	}
	switch message[0] {
	case pingMessage, indirectPingMessage, ackMessage, suspectMessage, aliveMessage, deadMessage, nackMessage:
		return true
	}
	return false
}
