package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"

	"github.com/barnabas-mq/barnabas/core/config"
)

// source says where a configuration comes from: a file, the environment over it, and --set over both.
type source struct {
	file             string
	sets             []string
	kafkaEnvironment bool // what Apache Kafka's container image understands is taken between the file and the environment
}

// setOrigin stands for the file where a value comes from --set; where it comes from the environment, the variable's name does.
const setOrigin = "--set"

const setHelp = `set one key, over the file and the environment: broker.PROPERTY=VALUE, ROLE=NAME or ROLE.NAME.OPTION=VALUE (may be repeated)`

// flagSet adds --set to a command.
func (s *source) flagSet(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.sets, "set", nil, setHelp)
	cmd.Flags().BoolVar(&s.kafkaEnvironment, "kafka-environment", false, "take the variables of Apache Kafka's container image, too: KAFKA_NUM_PARTITIONS=3")
}

// load reads the configuration and composes it. Errors are faults of the configuration, marked wrong.
func (a *app) load(s source) (*composition, error) {
	_, c, err := a.loadWithRoot(s)
	return c, err
}

// loadWithRoot is load, and gives the root of what was composed as well: all that was configured, each value with its origin.
func (a *app) loadWithRoot(s source) (config.Section, *composition, error) {
	e := a.readEnvironment()
	root, doubles := readFile(cmp.Or(s.file, e.file))
	if doubles != nil && root.IsZero() {
		return config.Section{}, nil, wrong(doubles)
	}
	var err error
	var foreign []assignment
	if s.kafkaEnvironment {
		var more []string
		if foreign, more, err = a.readKafkaEnvironment(root); err != nil {
			return config.Section{}, nil, wrong(err)
		}
		e.warnings = append(e.warnings, more...)
	}
	given, err := s.assignments()
	if err != nil {
		return config.Section{}, nil, wrong(err)
	}
	if root, err = a.override(root, slices.Concat(foreign, e.sets, given)); err != nil {
		return config.Section{}, nil, wrong(err)
	}
	c, err := compose(root, a.parts)
	if err = config.Join(doubles, err); err != nil {
		return config.Section{}, nil, wrong(inOrder(err))
	}
	c.warnings = append(e.warnings, c.warnings...)
	return root, c, nil
}

// assignments reads --set.
func (s source) assignments() ([]assignment, error) {
	var all []assignment
	var errs []error
	for _, set := range s.sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok || key == "" {
			errs = append(errs, fmt.Errorf("--set: want KEY=VALUE, not %q", set))
			continue
		}
		all = append(all, assignment{setOrigin, key, value})
	}
	return all, config.Join(errs...)
}

// readFile finds and parses the file: the one that was named, by a flag or by BARNABAS_CONFIG, else barnabas.yaml in
// the working directory or in /etc/barnabas, else none. Keys given twice are told beside the root, as [config.Parse] does.
func readFile(named string) (config.Section, error) {
	if named == "" {
		finder := viper.New()
		finder.SetConfigName("barnabas.yaml")
		finder.SetConfigType("yaml")
		finder.AddConfigPath(".")
		finder.AddConfigPath("/etc/barnabas")
		// Only the finding is viper's; what is wrong with the file, our own parser says better.
		if err := finder.ReadInConfig(); errors.As(err, new(viper.ConfigFileNotFoundError)) {
			return config.Section{}, nil
		}
		named = finder.ConfigFileUsed()
	}
	data, err := os.ReadFile(named)
	if err != nil {
		return config.Section{}, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Parse(named, data)
}
