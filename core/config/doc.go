// Package config turns a YAML file into strict, typed values.
//
// It answers for three things: reading one YAML document into a tree of [Section]s that know their file, line and
// path; decoding a section over a struct of defaults, where every unknown key, wrong type and failed check becomes an
// error that says where it stands and what was probably meant; and describing such a struct ([Fields]) for listings.
//
// It keeps keys exactly as written: case, dots and order survive, a key given twice is an error, and a key without a
// value is never dropped in silence. That is why sections are decoded from the YAML nodes themselves and never from
// the maps of a configuration library.
//
// What isn't its business: finding files, flags and environment variables (package main of cmd/barnabas), what the
// keys mean (each plug-in's options struct), and Kafka's property names (package config/kafka).
package config
