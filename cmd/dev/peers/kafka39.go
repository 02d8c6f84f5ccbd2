package peers

import (
	"context"
	_ "embed" // the pom and the log configuration
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/barnabas-mq/barnabas/cmd/dev/tools"
)

//go:embed kafka39.pom.xml
var kafka39Pom []byte // immutable

//go:embed log4j.properties
var log4jProperties []byte // immutable

// Kafka39Version is the release that the embedded pom names: the last line of Kafka that runs on ZooKeeper.
const Kafka39Version = "3.9.1"

// Kafka39Jars fetches the jars of the Kafka that runs on ZooKeeper, and of its tools.
func Kafka39Jars(ctx context.Context, t *tools.Tools) (Java, error) {
	lib, err := t.Jars(ctx, "kafka-"+Kafka39Version, kafka39Pom)
	if err != nil {
		return Java{}, err
	}
	return withLogConfig(lib, "log4j.properties", log4jProperties, "-Dlog4j.configuration=file:")
}

// Kafka39Options is how one broker of a cluster on ZooKeeper is to be started.
type Kafka39Options struct {
	Dir        string            // its folder: made when missing, kept on stop
	ID         int               // its broker.id
	Port       int               // of the only listener, on 127.0.0.1; 0 is any free one
	ZooKeeper  string            // HOST:PORT/CHROOT
	Heap       string            // the JVM's -Xms and -Xmx; "" is 1G, Kafka's own
	Properties map[string]string // over the defaults of the files that Kafka ships
}

// StartKafka39 starts one broker, and returns once it answers clients. Stop it before its ZooKeeper: its shutdown waits
// for a ZooKeeper that is gone.
func StartKafka39(ctx context.Context, j Java, o Kafka39Options) (*Peer, error) {
	if o.Heap == "" {
		o.Heap = "1G"
	}
	port, err := pickPort(o.Port)
	if err != nil {
		return nil, err
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	data := filepath.Join(o.Dir, "logs")
	properties := map[string]string{
		"broker.id": strconv.Itoa(o.ID),
		"listeners": "PLAINTEXT://" + addr, "advertised.listeners": "PLAINTEXT://" + addr,
		"log.dirs":            data,
		"num.network.threads": "3", "num.io.threads": "8",
		"socket.send.buffer.bytes": "102400", "socket.receive.buffer.bytes": "102400", "socket.request.max.bytes": "104857600",
		"zookeeper.connect": o.ZooKeeper, "zookeeper.connection.timeout.ms": "18000",
	}
	maps.Copy(properties, o.Properties)
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	conf := filepath.Join(o.Dir, "server.properties")
	if err := os.WriteFile(conf, []byte(render(properties)), 0o644); err != nil {
		return nil, err
	}
	return Start(ctx, j.broker(o.Heap, conf), addr, data)
}
