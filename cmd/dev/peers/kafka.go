// Package peers starts other brokers, to prove a test against them or to measure beside them: Apache Kafka.
//
// A Peer is one process with its data in one folder. Fetching it is the business of package tools, and what is done with
// it is that of whoever starts it.
package peers

import (
	"bytes"
	"context"
	_ "embed" // the pom and the log configuration
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/barnabas-mq/barnabas/cmd/dev/task"
	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

//go:embed kafka.pom.xml
var kafkaPom []byte // immutable

//go:embed log4j2.properties
var log4j2Properties []byte // immutable

// KafkaVersion is the release that the embedded pom names.
const KafkaVersion = "4.4.0"

// clusterID is what the storage is formatted with; any 16 bytes in base64 do.
const clusterID = "QmFybmFiYXMtcGVlci0wMQ"

// Java says how to start a Java program on Kafka's own class path.
type Java struct {
	Lib       string // the folder of Kafka's jars
	logConfig string // the flag that names the logging library's configuration
}

// KafkaJars fetches Kafka's jars.
func KafkaJars(ctx context.Context, t *tools.Tools) (Java, error) {
	lib, err := t.Jars(ctx, "kafka-"+KafkaVersion, kafkaPom)
	if err != nil {
		return Java{}, err
	}
	return withLogConfig(lib, "log4j2.properties", log4j2Properties, "-Dlog4j2.configurationFile=")
}

// withLogConfig puts the configuration of the logging library beside the jars.
func withLogConfig(lib, name string, content []byte, flag string) (Java, error) {
	conf := filepath.Join(lib, "..", name)
	if have, err := os.ReadFile(conf); err != nil || !bytes.Equal(have, content) {
		if err := os.WriteFile(conf, content, 0o644); err != nil {
			return Java{}, err
		}
	}
	return Java{Lib: lib, logConfig: flag + conf}, nil
}

// Command is the command line of a class on Kafka's class path, with more folders or jars in front of it.
func (j Java) Command(heap, logLevel string, classPath []string, class string, args ...string) []string {
	cp := ""
	for _, p := range classPath {
		cp += p + string(os.PathListSeparator)
	}
	return append([]string{
		"java", "-Xmx" + heap, "-Djava.awt.headless=true", "-Dpeer.loglevel=" + logLevel,
		j.logConfig, "-cp", cp + filepath.Join(j.Lib, "*"), class,
	}, args...)
}

// KafkaOptions is how a Kafka broker is to be started.
type KafkaOptions struct {
	Dir        string            // its folder: made when missing, formatted when new, kept on stop
	Port       int               // of the client listener on 127.0.0.1; 0 is any free one
	Heap       string            // the JVM's -Xms and -Xmx; "" is 1G, Kafka's own
	Properties map[string]string // over the defaults of the files that Kafka ships
}

// StartKafka starts one node that is broker and controller, and returns once it answers clients.
func StartKafka(ctx context.Context, e *task.Env, j Java, o KafkaOptions) (*Peer, error) {
	if o.Heap == "" {
		o.Heap = "1G"
	}
	port, err := pickPort(o.Port)
	if err != nil {
		return nil, err
	}
	controller, err := pickPort(0)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(o.Dir, "logs")
	properties := map[string]string{
		"process.roles": "broker,controller", "node.id": "1",
		"controller.quorum.voters":       fmt.Sprintf("1@127.0.0.1:%d", controller),
		"listeners":                      fmt.Sprintf("PLAINTEXT://127.0.0.1:%d,CONTROLLER://127.0.0.1:%d", port, controller),
		"advertised.listeners":           fmt.Sprintf("PLAINTEXT://127.0.0.1:%d", port),
		"controller.listener.names":      "CONTROLLER",
		"inter.broker.listener.name":     "PLAINTEXT",
		"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
		"log.dirs":                       data,
		"num.network.threads":            "3", "num.io.threads": "8",
		"socket.send.buffer.bytes": "102400", "socket.receive.buffer.bytes": "102400", "socket.request.max.bytes": "104857600",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
	maps.Copy(properties, o.Properties)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	conf := filepath.Join(o.Dir, "server.properties")
	if err := os.WriteFile(conf, []byte(render(properties)), 0o644); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(data, "meta.properties")); err != nil {
		format := j.Command("256M", "WARN", nil, "kafka.tools.StorageTool", "format", "-t", clusterID, "-c", conf)
		if err := e.Run(ctx, task.Command{Args: format}); err != nil {
			return nil, fmt.Errorf("format Kafka's storage: %w", err)
		}
	}
	return Start(ctx, j.broker(o.Heap, conf), net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), data)
}

// broker is the command of a broker, with the flags of Kafka's own start script.
func (j Java) broker(heap, conf string) *exec.Cmd {
	args := j.Command(heap, "WARN", nil, "kafka.Kafka", conf)
	args = slices.Insert(args, 1, "-server", "-Xms"+heap, "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35",
		"-XX:+ExplicitGCInvokesConcurrent", "-XX:MaxInlineLevel=15")
	return exec.Command(args[0], args[1:]...)
}

func render(properties map[string]string) string {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&b, "%s=%s\n", k, properties[k])
	}
	return b.String()
}

// pickPort returns port, or a free one for 0. Another process may take it before the broker does: then the broker says so.
func pickPort(port int) (int, error) {
	if port != 0 {
		return port, nil
	}
	return FreePort()
}
