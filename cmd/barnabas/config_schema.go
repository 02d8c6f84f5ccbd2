package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func newConfigSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of configuration files, for editors",
		Long: `Prints a JSON schema (draft 7) of the YAML file: every property, every plug-in in this binary and every option, with meanings and
defaults. Editors complete and check files by it: those with yaml-language-server when a file begins with

  # yaml-language-server: $schema=PATH/TO/schema.json

A file that the schema accepts may still be wrong, for it knows nothing of values that don't fit together, nor of the options of
plug-ins that run as processes of their own; "barnabas config check" knows all that.`,
		Example: `  barnabas config schema > barnabas.schema.json`,
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			text, err := json.MarshalIndent(schema(a.parts), "", " ")
			if err != nil {
				return err
			}
			_, err = a.out.Write(append(text, '\n'))
			return err
		},
	}
}

// schema describes the file. It is made of what `config reference` lists, so that neither has what the other lacks.
func schema(parts components) config.Schema {
	properties := config.Schema{"broker": kafka.SchemaOfBroker()}
	definitions := config.Schema{}
	all := reference(parts)
	for _, k := range all {
		if k.Scope != inFile || strings.Contains(k.Name, ".") {
			continue
		}
		var s config.Schema
		switch k.Type {
		case choiceType:
			s = choiceSchema(all, k)
			definitions[k.Name] = s
			if k.Name == parts.partitioner.Role() { // it may also be a name from partitioners
				s = config.Schema{"anyOf": []any{config.Schema{"type": "string", "examples": strings.Split(k.Valid, ", ")}, referTo(k.Name)}}
			} else {
				s = referTo(k.Name)
			}
		case codecsType:
			definitions[k.Name] = choiceSchema(all, k)
			s = config.Schema{"type": "array", "uniqueItems": true, "items": referTo(k.Name)}
		case electionsType:
			s = config.Schema{"type": []string{"object", "null"}, "additionalProperties": false, "properties": implementations(all, parts.election.Role())}
		case partitionersType:
			s = config.Schema{"type": []string{"object", "null"}, "additionalProperties": referTo(parts.partitioner.Role())}
		default:
			s = config.SchemaOf(optionsOf(all, k.Name))
			s["type"] = "object"
		}
		// Beside a reference nothing else counts in draft 7.
		properties[k.Name] = config.Schema{"description": k.Meaning, "allOf": []any{s}}
	}
	return config.Schema{
		"$schema": "http://json-schema.org/draft-07/schema#", "title": "Barnabas",
		"description": "The configuration of a broker.",
		"type":        []string{"object", "null"}, "additionalProperties": false,
		"properties": properties, "definitions": definitions,
	}
}

func referTo(definition string) config.Schema {
	return config.Schema{"$ref": "#/definitions/" + definition}
}

// choiceSchema describes the choice of an implementation: its name alone, or the one key of a mapping with its options below.
func choiceSchema(all []key, role key) config.Schema {
	names := strings.Split(role.Valid, ", ")
	return config.Schema{"anyOf": []any{
		config.Schema{"type": "string", "enum": names},
		config.Schema{"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": false, "properties": implementations(all, role.Name)},
	}}
}

// implementations describes those of a role, each with its options.
func implementations(all []key, role string) config.Schema {
	described := config.Schema{}
	for _, k := range all {
		if name, ok := strings.CutPrefix(k.Name, role+"."); ok && k.Type == sectionType && !strings.Contains(name, ".") {
			s := config.SchemaOf(optionsOf(all, k.Name))
			s["description"] = k.Meaning
			described[name] = s
		}
	}
	return described
}

// optionsOf gives the options below a key. Topics have properties whose names begin like those of a codec.
func optionsOf(all []key, name string) []config.Field {
	var fields []config.Field
	for _, k := range all {
		if option, ok := strings.CutPrefix(k.Name, name+"."); ok && k.Scope == inFile {
			fields = append(fields, config.Field{Name: option, Type: k.Type, Default: k.Default, Doc: k.Meaning})
		}
	}
	return fields
}
