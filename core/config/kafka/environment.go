package kafka

import (
	"slices"
	"strings"
)

// containerPrefix begins the names of variables that Kafka's container image makes properties of.
const containerPrefix = "KAFKA_"

// ParseEnvironment gives the properties that Apache Kafka's container image (apache/kafka 3.9) makes of its environment, given as
// [os.Environ] gives it: of KAFKA_NUM_PARTITIONS, num.partitions. In a name, "_" stands for ".", "__" for "_" and "___" for "-". The
// variables that steer the image itself, such as KAFKA_HEAP_OPTS, are left out. Properties come by name.
//
// Whatever else begins with KAFKA_ becomes a property as well, which [Import] calls unknown: container platforms make such variables
// of their own, and so they are no errors there.
func ParseEnvironment(environ []string) []Property {
	var properties []Property
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		rest, ours := strings.CutPrefix(name, containerPrefix)
		if !ours || rest == "" || steersContainer(name) {
			continue
		}
		property := strings.ReplaceAll(strings.ToLower(rest), "_", ".")
		property = strings.ReplaceAll(property, "...", "-")
		property = strings.ReplaceAll(property, "..", "_")
		properties = append(properties, Property{Name: property, Value: value, Variable: name})
	}
	slices.SortFunc(properties, func(a, b Property) int { return strings.Compare(a.Name, b.Name) })
	return properties
}

// steersContainer tells the variables that the image's scripts read themselves.
func steersContainer(variable string) bool {
	switch variable {
	case "KAFKA_VERSION", "KAFKA_HEAP_OPTS", "KAFKA_LOG4J_OPTS", "KAFKA_OPTS", "KAFKA_JMX_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS", "KAFKA_GC_LOG_OPTS",
		"KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS", "KAFKA_TOOLS_LOG4J_LOGLEVEL", "KAFKA_JMX_HOSTNAME", "KAFKA_JMX_PORT":
		return true
	}
	return false
}
