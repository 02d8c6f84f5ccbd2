package kafka

import (
	"slices"
	"strconv"
	"strings"
)

// ProtocolVersion is a value of inter.broker.protocol.version: the release of Apache Kafka, with the stage of its protocol
// ("IV"), whose requests brokers send one another. Later ones are greater.
type ProtocolVersion int

// Protocol gives the version MAJOR.MINOR-IVn.
func Protocol(major, minor, stage int) ProtocolVersion {
	return ProtocolVersion(major*10000 + minor*100 + stage)
}

// protocols are the versions that brokers of Apache Kafka 3.9 know and that can be spoken here, by their order: from 2.8,
// where topics have ids and leaders change their in-sync sets through the controller.
func protocols() []ProtocolVersion {
	return []ProtocolVersion{
		Protocol(2, 8, 1),
		Protocol(3, 0, 0), Protocol(3, 0, 1),
		Protocol(3, 1, 0),
		Protocol(3, 2, 0),
		Protocol(3, 3, 0), Protocol(3, 3, 1), Protocol(3, 3, 2), Protocol(3, 3, 3),
		Protocol(3, 4, 0),
		Protocol(3, 5, 0), Protocol(3, 5, 1), Protocol(3, 5, 2),
		Protocol(3, 6, 0), Protocol(3, 6, 1), Protocol(3, 6, 2),
		Protocol(3, 7, 0), Protocol(3, 7, 1), Protocol(3, 7, 2), Protocol(3, 7, 3), Protocol(3, 7, 4),
		Protocol(3, 8, 0),
		Protocol(3, 9, 0),
	}
}

// parseProtocol reads "3.9-IV0", or "3.9" and "3.9.1" for the last stage of that release.
func parseProtocol(text string) (ProtocolVersion, bool) {
	number, iv, exact := strings.Cut(text, "-IV")
	parts := strings.Split(number, ".")
	if len(parts) < 2 {
		return 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || major < 0 || minor < 0 || minor > 99 {
		return 0, false
	}
	known := protocols()
	if exact {
		stage, err := strconv.Atoi(iv)
		v := Protocol(major, minor, stage)
		return v, err == nil && stage >= 0 && stage < 100 && slices.Contains(known, v)
	}
	for _, v := range slices.Backward(known) {
		if v/100 == Protocol(major, minor, 0)/100 {
			return v, true
		}
	}
	return 0, false
}

// UnmarshalText reads a value that the property's rule has let pass.
func (v *ProtocolVersion) UnmarshalText(text []byte) error {
	*v, _ = parseProtocol(string(text))
	return nil
}

// spoken is the rule for versions of the protocol between brokers.
type spoken struct{}

func (spoken) Check(value string) string {
	if fault := (releases{}).Check(value); fault != "" {
		return fault
	}
	if _, ok := parseProtocol(value); !ok {
		return "must be a version from 2.8-IV1 to 3.9-IV0 that Apache Kafka has"
	}
	return ""
}

func (spoken) String() string { return "a version of Apache Kafka from 2.8 to 3.9" }
