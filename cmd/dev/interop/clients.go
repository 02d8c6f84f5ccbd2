package interop

import (
	"context"
	"os"
	"path/filepath"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

// Client is a Kafka library with its program.
type Client struct {
	Name   string
	Codecs []string     // what it can compress with; the first is the one that checks use that do not care
	Quirks probe.Quirks // what it cannot do
	// Install gets what the program needs and returns its command line without flags.
	Install func(context.Context) (command, error)
}

// command is how a program starts.
type command struct {
	args []string
	env  []string // NAME=value
}

// Clients are all clients of the suite. They install themselves through t.
func Clients(e *task.Env, t *tools.Tools) []Client {
	i := installer{env: e, tools: t}
	all := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	return []Client{
		{Name: "java", Codecs: all, Install: i.java("java-clients", "clients.pom.xml", "client")},
		{Name: "java-old", Codecs: all, Install: i.java("java-clients-old", "clients-old.pom.xml", "client")},
		{Name: "kcat", Codecs: all, Quirks: probe.Quirks{NoAdmin: true, NoTimestamps: true}, Install: i.kcat},
		{Name: "confluent-python", Codecs: all, Install: i.python("client_confluent.py")},
		{Name: "kafka-python", Codecs: all, Install: i.python("client_kafka_python.py")},
		{Name: "kafkajs", Codecs: all, Install: i.node("client_kafkajs.js")},
		{Name: "sarama", Codecs: all, Install: i.golang("sarama")},
		{Name: "franz-go", Codecs: all, Install: i.golang("franz")},
		{Name: "kafka-go", Codecs: all, Install: i.golang("kafkago")},
	}
}

// installer makes the Install functions, one a language.
type installer struct {
	env   *task.Env
	tools *tools.Tools
}

func (i installer) dir(names ...string) string {
	return filepath.Join(append([]string{i.env.Root, "cmd", "dev", "interop"}, names...)...)
}

// lightJVM makes a JVM start fast and take little: these programs run for seconds, several at a time.
func lightJVM() []string {
	return []string{"java", "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"}
}

// java installs one of the Java programs with the jars of a pom.
func (i installer) java(name, pom, program string) func(context.Context) (command, error) {
	return func(ctx context.Context) (command, error) {
		b, err := os.ReadFile(i.dir("java", pom))
		if err != nil {
			return command{}, err
		}
		lib, err := i.tools.Jars(ctx, name, b)
		if err != nil {
			return command{}, err
		}
		sources, err := i.javaSources(program)
		if err != nil {
			return command{}, err
		}
		classes, err := i.tools.Javac(ctx, name, lib, sources...)
		if err != nil {
			return command{}, err
		}
		cp := classes + string(os.PathListSeparator) + filepath.Join(lib, "*")
		return command{args: append(lightJVM(), "-cp", cp, program+".Main")}, nil
	}
}

// javaSources are the sources of one Java program, with what all of them share.
func (i installer) javaSources(program string) ([]string, error) {
	own, err := filepath.Glob(i.dir("java", program, "*.java"))
	return append(own, i.dir("java", "report", "Report.java")), err
}

func (i installer) python(program string) func(context.Context) (command, error) {
	return func(ctx context.Context) (command, error) {
		b, err := os.ReadFile(i.dir("python", "requirements.txt"))
		if err != nil {
			return command{}, err
		}
		python, err := i.tools.Python(ctx, "interop", b)
		return command{args: []string{python, "-B", "-u", i.dir("python", program)}}, err
	}
}

func (i installer) node(program string) func(context.Context) (command, error) {
	return func(ctx context.Context) (command, error) {
		packages, err := os.ReadFile(i.dir("node", "package.json"))
		if err != nil {
			return command{}, err
		}
		lock, err := os.ReadFile(i.dir("node", "package-lock.json"))
		if err != nil {
			return command{}, err
		}
		modules, err := i.tools.Node(ctx, "interop", packages, lock)
		return command{args: []string{"node", i.dir("node", program)}, env: []string{"NODE_PATH=" + modules}}, err
	}
}

func (i installer) golang(program string) func(context.Context) (command, error) {
	return func(ctx context.Context) (command, error) {
		bin, err := i.tools.GoBuild(ctx, "./cmd/dev/interop/go/"+program)
		return command{args: []string{bin}}, err
	}
}

func (i installer) kcat(ctx context.Context) (command, error) {
	if _, err := i.tools.Debian(ctx, "kcat", "kcat"); err != nil {
		return command{}, err
	}
	return i.golang("kcat")(ctx)
}
