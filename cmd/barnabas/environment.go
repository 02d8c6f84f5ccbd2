package main

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// envPrefix begins the names of environment variables that configure: BARNABAS_BROKER_LOG_DIRS is broker.log.dirs,
// BARNABAS_STORAGE_MMAP_MAX_GROWTH is storage.mmap.max_growth, BARNABAS_CONFIG the file.
const envPrefix = "BARNABAS"

func envName(key string) string {
	return envPrefix + "_" + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(key))
}

// assignment is a value for one key, from outside of the file.
type assignment struct {
	origin string // the variable, or setOrigin
	key    string // dotted
	value  string
}

// environment is what the environment says: the file, and what is put over it, in the order in which it has to be.
type environment struct {
	file     string
	sets     []assignment
	warnings []string
}

// readEnvironment takes what the environment sets. Variables that look as if they were meant for us and aren't known give warnings
// and no errors, for container platforms make such variables of their own.
func (a *app) readEnvironment() environment {
	var e environment
	keys := map[string]string{}
	names := []string{envName("config")}
	for _, k := range reference(a.parts) {
		if k.Scope == inFile {
			keys[envName(k.Name)] = k.Name
			names = append(names, envName(k.Name))
		}
	}
	for _, variable := range a.environ {
		name, value, _ := strings.Cut(variable, "=")
		key, known := keys[name]
		switch {
		case name == envName("config"):
			e.file = value
		case known:
			e.sets = append(e.sets, assignment{name, key, value})
		case strings.HasPrefix(name, envPrefix+"_"):
			text := "environment variable " + name + " is not known and has no effect"
			if near := config.Nearest(name, names); near != "" {
				text += fmt.Sprintf(" (did you mean %q?)", near)
			}
			e.warnings = append(e.warnings, text)
		}
	}
	// A choice before its options, or it would take them away again.
	sort.SliceStable(e.sets, func(i, j int) bool {
		return strings.Count(e.sets[i].key, ".") < strings.Count(e.sets[j].key, ".")
	})
	return e
}

// readKafkaEnvironment takes what Apache Kafka's container image would take from the environment. What has no effect here gives a
// warning, as it does in a file. Where the file chooses no coordination, one whose properties are there is chosen: a
// zookeeper.connect is for ZooKeeper.
func (a *app) readKafkaEnvironment(root config.Section) (sets []assignment, warnings []string, err error) {
	verdicts, err := kafka.ImportOver(kafka.ParseEnvironment(a.environ))
	if err != nil {
		return nil, nil, err
	}
	for _, one := range verdicts {
		if !taken(one) {
			warnings = append(warnings, one.Place("", fmt.Errorf("%s: %s", one.Verdict, one.Reason)).Error())
			continue
		}
		sets = append(sets, assignment{one.Variable, "broker." + one.Name, one.Value})
		if _, chosen := root.Sub(a.parts.election.Role()); one.Name == "zookeeper.connect" && !chosen {
			sets = append(sets, assignment{one.Variable, a.parts.election.Role(), "zookeeper"})
		}
	}
	return sets, warnings, nil
}

// override puts assignments over the file's values, one after the other.
func (a *app) override(root config.Section, sets []assignment) (config.Section, error) {
	texts := map[string]bool{}
	for _, k := range reference(a.parts) {
		texts[k.Name] = k.Scope == inFile && k.Type == textOption
	}
	var errs []error
	for _, set := range sets {
		next, err := a.overrideOne(root, set, texts[set.key])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		root = next
	}
	return root, config.Join(errs...)
}

// textOption is the type of options whose values are taken as they are, unless they stand in quotes.
const textOption = "text"

func (a *app) overrideOne(root config.Section, set assignment, text bool) (config.Section, error) {
	path, value := pathOf(set.key, set.value)
	if text && !strings.HasPrefix(value, `"`) && !strings.HasPrefix(value, "'") {
		value = strconv.Quote(value)
	}
	role := a.parts.compression.Role()
	if _, given := root.Sub(role); path[0] == role && len(path) > 1 && !given { // the options of a codec change it, not which others there are
		all := "[" + strings.Join(a.parts.inProcess.Names(), ", ") + "]"
		var err error
		if root, err = root.Override(originDefault, path[:1], all); err != nil {
			return root, err
		}
	}
	if other := a.chosenInstead(root, path); other != "" {
		at := &config.Error{File: set.origin, Path: set.key, Err: fmt.Errorf("%s is %s, so that an option of %s would have no effect", path[0], other, path[1])}
		return root, config.Join(at)
	}
	return root.Override(set.origin, path, value)
}

// chosenInstead gives the implementation that a role has, when a path is to an option of another one: setting that would change
// the choice in silence.
func (a *app) chosenInstead(root config.Section, path []string) string {
	section, given := root.Sub(path[0])
	roles := []string{a.parts.storage.Role(), a.parts.election.Role(), a.parts.partitioner.Role(), a.parts.offsets.Role()}
	if !given || len(path) < 2 || !slices.Contains(roles, path[0]) {
		return ""
	}
	name, _, err := section.Choice()
	if err != nil || name == path[1] {
		return "" // a fault of the file is told when it is composed
	}
	return name
}

// pathOf splits a dotted key. Below broker the rest is one key, for Kafka's names hold dots; their values are taken
// word by word, never as YAML.
func pathOf(key, value string) (path []string, text string) {
	if property, ok := strings.CutPrefix(key, "broker."); ok {
		return []string{"broker", property}, strconv.Quote(value)
	}
	return strings.Split(key, "."), value
}
