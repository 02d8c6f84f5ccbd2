package probe

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// The roles a client program can play.
const (
	// RoleChecks creates, produces and consumes topics of its own and judges what it sees.
	RoleChecks = "checks"
	// RoleRead reads topics that other clients filled with the corpus and compares them byte by byte.
	RoleRead = "read"
	// RoleMember joins a group, tells what it is assigned and reads, commits after each batch, until stdin ends.
	RoleMember = "member"
)

// Written names a topic that holds the corpus and the client that wrote it.
type Written struct {
	Client, Codec, Topic string
}

// Args is the command line of a client program: pairs of --name and value, each name at most once.
type Args struct {
	Role      string    // --role: what to do
	Client    string    // --client: the name to report under
	Bootstrap string    // --bootstrap: host:port
	Prefix    string    // --prefix: how the names of the program's own topics and groups begin
	Corpus    string    // --corpus: the manifest that LoadCorpus reads
	Codecs    []string  // --codecs: which compression codecs to produce with, comma separated
	Topics    []Written // --topics: client:codec:topic, comma separated (RoleRead)
	Group     string    // --group (RoleMember)
	Topic     string    // --topic (RoleMember)
}

// ParseArgs reads a client program's flags.
func ParseArgs(args []string) (Args, error) {
	var a Args
	var codecs, topics string
	fs := flag.NewFlagSet("client", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&a.Role, "role", "", "")
	fs.StringVar(&a.Client, "client", "", "")
	fs.StringVar(&a.Bootstrap, "bootstrap", "", "")
	fs.StringVar(&a.Prefix, "prefix", "", "")
	fs.StringVar(&a.Corpus, "corpus", "", "")
	fs.StringVar(&codecs, "codecs", "", "")
	fs.StringVar(&topics, "topics", "", "")
	fs.StringVar(&a.Group, "group", "", "")
	fs.StringVar(&a.Topic, "topic", "", "")
	if err := fs.Parse(args); err != nil {
		return a, err
	}
	if a.Bootstrap == "" {
		return a, errors.New("--bootstrap is missing")
	}
	if codecs != "" {
		a.Codecs = strings.Split(codecs, ",")
	}
	for _, t := range strings.FieldsFunc(topics, func(r rune) bool { return r == ',' }) {
		parts := strings.SplitN(t, ":", 3)
		if len(parts) != 3 {
			return a, fmt.Errorf("--topics: %q is not client:codec:topic", t)
		}
		a.Topics = append(a.Topics, Written{Client: parts[0], Codec: parts[1], Topic: parts[2]})
	}
	return a, nil
}

// Flags is the inverse of ParseArgs: the command line that asks a client program, in whatever language, for a.
func (a Args) Flags() []string {
	var flags []string
	add := func(name, value string) {
		if value != "" {
			flags = append(flags, "--"+name, value)
		}
	}
	add("role", a.Role)
	add("client", a.Client)
	add("bootstrap", a.Bootstrap)
	add("prefix", a.Prefix)
	add("corpus", a.Corpus)
	add("codecs", strings.Join(a.Codecs, ","))
	topics := make([]string, len(a.Topics))
	for i, t := range a.Topics {
		topics[i] = t.Client + ":" + t.Codec + ":" + t.Topic
	}
	add("topics", strings.Join(topics, ","))
	add("group", a.Group)
	add("topic", a.Topic)
	return flags
}
