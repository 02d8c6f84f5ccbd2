package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

func newConfigImport(a *app) *cobra.Command {
	var to string
	var environment bool
	cmd := &cobra.Command{
		Use:   "import [FILE]",
		Short: "Make a configuration of a server.properties of Apache Kafka",
		Long: `Reads a server.properties of Apache Kafka 3.9 and prints a YAML file for a broker that acts as Kafka would with it. With
--environment the variables that Kafka's container image understands, such as KAFKA_NUM_PARTITIONS, go over the file, which may then
be absent. What became of each property is reported on standard error: mapped; ignored, and why; unknown, with the nearest name; or
added, where Kafka has another default than Barnabas. A file with zookeeper.connect is for a cluster on ZooKeeper, any other for a
broker alone.

What comes out is checked as by "barnabas config check". If that finds a fault, or the file asks for what Barnabas can't keep, such
as listeners with TLS or an authorizer, nothing is written, all faults are told with their lines, and the exit code is 2.`,
		Example: `  barnabas config import server.properties
  barnabas config import /etc/kafka/server.properties --to barnabas.yaml
  KAFKA_ZOOKEEPER_CONNECT=zk:2181 barnabas config import --environment`,
		Args: func(cmd *cobra.Command, args []string) error {
			if environment && len(args) == 0 {
				return nil
			}
			return exactly("FILE")(cmd, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			file := strings.Join(args, "")
			verdicts, err := a.readForeign(file, environment)
			if err != nil {
				return wrong(err)
			}
			text := asYAML(verdicts)
			if err := a.accepts(file, text, verdicts); err != nil {
				return wrong(err)
			}
			if to == "" {
				_, err = io.WriteString(a.out, text)
			} else {
				err = writeNew(to, text)
			}
			if err != nil {
				return err
			}
			a.report(verdicts)
			return nil
		},
	}
	cmd.Flags().BoolVar(&environment, "environment", false, "take the environment of Kafka's container image, over the file")
	cmd.Flags().StringVar(&to, "to", "", "write the YAML there, where nothing may be yet, instead of printing it")
	return cmd
}

// readForeign reads a file of properties, unless that is "", and those of the environment, and judges each.
func (a *app) readForeign(file string, environment bool) ([]kafka.Imported, error) {
	var properties []kafka.Property
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the properties: %w", err)
		}
		if properties, err = kafka.ParseProperties(file, data); err != nil {
			return nil, err
		}
	}
	if environment {
		properties = append(properties, kafka.ParseEnvironment(a.environ)...)
	}
	return kafka.Import(file, properties)
}

// taken says whether a property goes into the YAML file.
func taken(one kafka.Imported) bool {
	return one.Verdict == kafka.Mapped || one.Verdict == kafka.Added
}

// asYAML writes what is taken as a file of ours.
func asYAML(verdicts []kafka.Imported) string {
	var b strings.Builder
	b.WriteString("broker:")
	some, zookeeper := false, false
	for _, one := range verdicts {
		if !taken(one) {
			continue
		}
		fmt.Fprintf(&b, "\n  %s: %s", one.Name, scalar(one.Value))
		some = true
		zookeeper = zookeeper || one.Name == "zookeeper.connect"
	}
	if !some {
		b.WriteString(" {}")
	}
	b.WriteByte('\n')
	if zookeeper {
		b.WriteString("\nelection: zookeeper\n")
	}
	return b.String()
}

// scalar writes a value, in quotes unless everybody sees that it needs none.
func scalar(value string) string {
	plain := regexp.MustCompile(`^([A-Za-z0-9./_][A-Za-z0-9./_:,@-]*)?[A-Za-z0-9./_]$`)
	if !plain.MatchString(value) || strings.EqualFold(value, "null") {
		return strconv.Quote(value)
	}
	return value
}

// accepts composes what came out. Faults in it get the places of the properties that they came from.
func (a *app) accepts(file, text string, verdicts []kafka.Imported) error {
	root, err := config.Parse(file, []byte(text))
	if err != nil {
		return err
	}
	if _, err = compose(root, a.parts); err == nil {
		return nil
	}
	from := map[string]kafka.Property{}
	for _, one := range verdicts {
		if taken(one) {
			from["broker."+one.Name] = one.Property
		}
	}
	var faults config.Errors
	if !errors.As(err, &faults) {
		return err
	}
	placed := make(config.Errors, len(faults))
	for i, fault := range faults {
		placed[i] = fault
		if at := new(config.Error); errors.As(fault, &at) {
			property := from[at.Path]
			property.Name = strings.TrimPrefix(at.Path, "broker.")
			placed[i] = property.Place(file, at.Err)
		}
	}
	return inOrder(placed)
}

// writeNew writes a file where there is none.
func writeNew(name, text string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return wrong(fmt.Errorf("--to: %w", err))
	}
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	_, err = io.WriteString(file, text)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("--to: %w", errors.Join(err, os.Remove(name)))
	}
	return nil
}

// report tells what became of each property. Values aren't told: any may be a secret.
func (a *app) report(verdicts []kafka.Imported) {
	t := newTable()
	t.SetOutputMirror(a.err)
	t.AppendHeader(table.Row{"line", "property", "became", "because"})
	kraft := false
	for _, one := range verdicts {
		line := one.Variable
		if one.Line > 0 {
			line = strconv.Itoa(one.Line)
		}
		t.AppendRow(table.Row{line, one.Name, one.Verdict.String(), one.Reason})
		kraft = kraft || one.Name == "process.roles" && strings.TrimSpace(one.Value) != ""
	}
	t.Render()
	if kraft {
		fmt.Fprintln(a.err, "note: this file is for KRaft, which Barnabas doesn't have: without zookeeper.connect the broker stands alone")
	}
}
