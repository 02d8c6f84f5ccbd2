package main

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/viper"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// source says where a configuration comes from: a file, the environment over it, and --set over both.
type source struct {
	file string
	sets []string
}

// setOrigin stands for the file where a value comes from --set; where it comes from the environment, the variable's name does.
const setOrigin = "--set"

const setHelp = `set one key, over the file and the environment: broker.PROPERTY=VALUE, ROLE=NAME or ROLE.NAME.OPTION=VALUE (may be repeated)`

// flagSet adds --set to a command.
func (s *source) flagSet(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&s.sets, "set", nil, setHelp)
}

// envPrefix begins the names of environment variables that configure: BARNABAS_BROKER_LOG_DIRS is broker.log.dirs,
// BARNABAS_STORAGE is storage, BARNABAS_CONFIG the file.
const envPrefix = "BARNABAS"

// load reads the configuration and composes it. Errors are faults of the configuration, marked wrong.
func (a *app) load(s source) (*composition, error) {
	_, c, err := a.loadWithRoot(s)
	return c, err
}

// loadWithRoot is load, and gives the root of what was composed as well: all that was configured, each value with its origin.
func (a *app) loadWithRoot(s source) (config.Section, *composition, error) {
	v, warnings := a.environment()
	root, err := readFile(s.file, v)
	if err != nil {
		return config.Section{}, nil, wrong(err)
	}
	if root, err = override(root, v, a.scalars(), s.sets); err != nil {
		return config.Section{}, nil, wrong(err)
	}
	c, err := compose(root, a.parts)
	if err != nil {
		return config.Section{}, nil, wrong(err)
	}
	c.warnings = append(warnings, c.warnings...)
	return root, c, nil
}

// scalars lists the keys that the environment may set: the file, the roles by name, and Kafka's properties.
func (a *app) scalars() []string {
	keys := []string{"storage", "election", "partitioner", "compression", "offsets"}
	for _, d := range kafka.BrokerDefinitions() {
		keys = append(keys, "broker."+d.Name)
	}
	return keys
}

// environment gives a viper that holds what the environment sets, and warnings about variables that look as if they
// were meant for us and aren't known. They are no errors: container platforms make such variables of their own.
func (a *app) environment() (*viper.Viper, []string) {
	v := viper.New()
	known := map[string]string{envName("config"): "config"}
	for _, key := range a.scalars() {
		known[envName(key)] = key
	}
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	sort.Strings(names)
	var warnings []string
	for _, variable := range a.environ {
		name, value, _ := strings.Cut(variable, "=")
		if key, ok := known[name]; ok {
			v.Set(key, value)
		} else if strings.HasPrefix(name, envPrefix+"_") {
			text := "environment variable " + name + " is not known and has no effect"
			if near := config.Nearest(name, names); near != "" {
				text += fmt.Sprintf(" (did you mean %q?)", near)
			}
			warnings = append(warnings, text)
		}
	}
	return v, warnings
}

func envName(key string) string {
	return envPrefix + "_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// readFile finds and parses the file: the one that was named, by a flag or by BARNABAS_CONFIG, else barnabas.yaml in
// the working directory or in /etc/barnabas, else none.
func readFile(named string, v *viper.Viper) (config.Section, error) {
	if named == "" {
		named = v.GetString("config")
	}
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

// override puts the environment's keys and then those of --set over the file's.
func override(root config.Section, v *viper.Viper, scalars, sets []string) (config.Section, error) {
	var errs []error
	put := func(origin, key, value string) {
		path, value := pathOf(key, value)
		next, err := root.Override(origin, path, value)
		if err != nil {
			errs = append(errs, err)
			return
		}
		root = next
	}
	for _, key := range scalars {
		if v.IsSet(key) {
			put(envName(key), key, v.GetString(key))
		}
	}
	for _, set := range sets {
		key, value, ok := strings.Cut(set, "=")
		if !ok || key == "" {
			errs = append(errs, fmt.Errorf("--set: want KEY=VALUE, not %q", set))
			continue
		}
		put(setOrigin, key, value)
	}
	return root, config.Join(errs...)
}

// pathOf splits a dotted key. Below broker the rest is one key, for Kafka's names hold dots; their values are taken
// word by word, never as YAML.
func pathOf(key, value string) (path []string, text string) {
	if property, ok := strings.CutPrefix(key, "broker."); ok {
		return []string{"broker", property}, strconv.Quote(value)
	}
	return strings.Split(key, "."), value
}
