package metrics

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
)

// Options are the keys below `metrics:` in the YAML file.
type Options struct {
	PerPartition bool     `yaml:"per_partition" doc:"show sizes, offsets, lags and traffic by partition, too: some twenty series for each"`
	Aliases      []string `yaml:"aliases" doc:"show metrics also under the names of others, for dashboards and alerts that exist: jmx (Kafka's, as jmx_exporter's usual rules write them), kafka_exporter"`
}

// The aliases that there are.
const (
	aliasJMX           = "jmx"
	aliasKafkaExporter = "kafka_exporter"
)

func aliases() []string { return []string{aliasJMX, aliasKafkaExporter} }

// Validate finds aliases that don't exist.
func (o Options) Validate() error {
	for i, name := range o.Aliases {
		if !slices.Contains(aliases(), name) {
			err := fmt.Errorf("no alias is called %q: there are %s", name, strings.Join(aliases(), " and "))
			if near := config.Nearest(name, aliases()); near != "" {
				err = fmt.Errorf("no alias is called %q (did you mean %q?)", name, near)
			}
			return config.At("aliases", err)
		}
		if slices.Contains(o.Aliases[:i], name) {
			return config.At("aliases", errors.New(name+" is there twice"))
		}
	}
	return nil
}
