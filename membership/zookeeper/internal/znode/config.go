package znode

import (
	"fmt"
	"strings"

	"github.com/barnabas-mq/barnabas/core/election"
)

type configNode struct {
	Version int               `json:"version"`
	Config  map[string]string `json:"config"`
}

// EncodeConfig writes what /config/topics/T and the like hold.
func EncodeConfig(values map[string]string) []byte {
	if values == nil {
		values = map[string]string{}
	}
	return encode(configNode{1, values})
}

// DecodeConfig reads it. An empty node has no values.
func DecodeConfig(data []byte) (map[string]string, error) {
	if len(data) == 0 {
		return nil, nil
	}
	o, err := decode("config", data)
	if err != nil {
		return nil, err
	}
	version, err := member[int64](o, "config", "version")
	if err != nil {
		return nil, err
	}
	if version != 1 {
		return nil, fmt.Errorf("config: %w: version %d", ErrMalformed, version)
	}
	return optional[map[string]string](o, "config", "config")
}

// defaultEntity stands for the default of all in paths.
const defaultEntity = "<default>"

// EntityPath is where an entity's configuration is, below /config: topics/T, brokers/1, brokers/<default>. Empty for what has no
// place there.
func EntityPath(e election.Entity) string {
	switch {
	case e.Kind == election.TopicEntity && e.Name != "":
		return "topics/" + e.Name
	case e.Kind == election.BrokerEntity && e.Name == "":
		return "brokers/" + defaultEntity
	case e.Kind == election.BrokerEntity && e.Name != defaultEntity:
		return "brokers/" + e.Name
	}
	return ""
}

// ParseEntityPath reads what EntityPath writes; false for users, clients and whatever else is configured below /config.
func ParseEntityPath(path string) (e election.Entity, ok bool) {
	kind, name, _ := strings.Cut(path, "/")
	switch {
	case name == "" || strings.Contains(name, "/"):
		return e, false
	case kind == "topics":
		return election.Entity{Kind: election.TopicEntity, Name: name}, true
	case kind == "brokers" && name == defaultEntity:
		return election.Entity{Kind: election.BrokerEntity}, true
	case kind == "brokers":
		return election.Entity{Kind: election.BrokerEntity, Name: name}, true
	}
	return e, false
}

type configChangeNode struct {
	Version int    `json:"version"`
	Path    string `json:"entity_path"`
}

// EncodeConfigChange writes what a node below /config/changes holds: version 2.
func EncodeConfigChange(e election.Entity) []byte { return encode(configChangeNode{2, EntityPath(e)}) }

// DecodeConfigChange reads such a node of versions 1 and 2, and returns the path of what has changed, below /config.
func DecodeConfigChange(data []byte) (path string, err error) {
	const what = "config change"
	o, err := decode(what, data)
	if err != nil {
		return "", err
	}
	version, err := member[int64](o, what, "version")
	if err != nil {
		return "", err
	}
	switch version {
	case 1:
		kind, err := member[string](o, what, "entity_type")
		if err != nil {
			return "", err
		}
		name, err := member[string](o, what, "entity_name")
		return kind + "/" + name, err
	case 2:
		return member[string](o, what, "entity_path")
	}
	return "", fmt.Errorf("%s: %w: version %d", what, ErrMalformed, version)
}
