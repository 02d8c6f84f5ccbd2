package kafka

import "strconv"

// DefaultSocketReceiveBuffer is Apache Kafka's default of socket.receive.buffer.bytes. Here it stands for what the system does by
// itself, as -1 does.
const DefaultSocketReceiveBuffer = 100 << 10

// propertiesNetwork defines the broker properties about
// listeners, connections, sockets and requests.
func propertiesNetwork() []Definition {
	return []Definition{
		{Name: "advertised.listeners", Type: String, Null: true, Mode: PerBroker, Doc: "Addresses that clients are told to connect to; the listeners themselves when unset."},
		{Name: "connections.max.idle.ms", Type: Long, Default: "600000", Doc: "Time without traffic after which a connection is closed."},
		{Name: "fetch.max.bytes", Type: Int, Default: "57671680", Valid: atLeast(1024), Doc: "Most bytes in the answer to one fetch, whatever the client asks for."},
		{Name: "fetch.purgatory.purge.interval.requests", Type: Int, Default: "1000", NoEffect: becauseWaits, Doc: "Number of finished fetches after which their waiting list is swept."},
		{Name: "inter.broker.listener.name", Type: String, Null: true, Doc: "Listener that brokers use among themselves."},
		{Name: "inter.broker.protocol.version", Type: String, Default: "3.9-IV0", Valid: spoken{}, Doc: "Version of the requests that brokers send one another."},
		{Name: "listener.security.protocol.map", Type: String, Default: "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", Mode: PerBroker, Doc: "Security protocol of each listener name."},
		{Name: "listeners", Type: String, Default: "PLAINTEXT://127.0.0.1:9092", Mode: PerBroker, Doc: "Addresses on which the broker listens, as NAME://HOST:PORT, separated by commas."},
		{Name: "max.connection.creation.rate", Type: Int, Default: "2147483647", Valid: atLeast(0), Mode: ClusterWide, NoEffect: becauseQuota, Doc: "Most new connections in a second."},
		{Name: "max.connections", Type: Int, Default: "2147483647", Valid: atLeast(0), Mode: ClusterWide, Doc: "Most connections at a time."},
		{Name: "max.connections.per.ip", Type: Int, Default: "2147483647", Valid: atLeast(0), Mode: ClusterWide, Doc: "Most connections at a time from one address."},
		{Name: "max.connections.per.ip.overrides", Type: String, Mode: ClusterWide, Doc: "Other limits for some addresses or host names, as HOST:COUNT, separated by commas."},
		{Name: "max.incremental.fetch.session.cache.slots", Type: Int, Default: "1000", Valid: atLeast(0), Doc: "Most incremental fetch sessions at a time."},
		{Name: "max.request.partition.size.limit", Type: Int, Default: "2000", Valid: atLeast(1), Doc: "Most partitions in one answer of DescribeTopicPartitions."},
		{Name: "num.io.threads", Type: Int, Default: "8", Valid: atLeast(1), Mode: ClusterWide, NoEffect: becauseThreads, Doc: "Threads that serve requests."},
		{Name: "num.network.threads", Type: Int, Default: "3", Valid: atLeast(1), Mode: ClusterWide, NoEffect: becauseThreads, Doc: "Threads that read requests from and write answers to the network."},
		{Name: "queued.max.request.bytes", Type: Long, Default: "-1", NoEffect: becauseQueue, Doc: "Bytes of requests that may wait to be served."},
		{Name: "queued.max.requests", Type: Int, Default: "500", Valid: atLeast(1), NoEffect: becauseQueue, Doc: "Requests that may wait to be served."},
		{Name: "security.inter.broker.protocol", Type: String, Default: "PLAINTEXT", Valid: oneOf{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, Doc: "Security protocol between brokers."},
		{Name: "socket.connection.setup.timeout.max.ms", Type: Long, Default: "30000", NoEffect: becauseDialing, Doc: "Longest wait for a connection to another broker."},
		{Name: "socket.connection.setup.timeout.ms", Type: Long, Default: "10000", Doc: "First wait for a connection to another broker."},
		{Name: "socket.listen.backlog.size", Type: Int, Default: "50", Valid: atLeast(1), NoEffect: becauseBacklog, Doc: "Connections that may wait to be accepted."},
		{Name: "socket.receive.buffer.bytes", Type: Int, Default: strconv.Itoa(DefaultSocketReceiveBuffer), Doc: "Receive buffer of each connection, in bytes. -1 and the default leave it to the system, which lets it grow with what clients send; any other size is set, and stays."},
		{Name: "socket.request.max.bytes", Type: Int, Default: "104857600", Valid: atLeast(1), Doc: "Largest request, in bytes."},
		{Name: "socket.send.buffer.bytes", Type: Int, Default: "102400", Doc: "Send buffer of each connection, in bytes; -1 is the system's default."},
		{Name: "telemetry.max.bytes", Type: Int, Default: "1048576", Valid: atLeast(1), NoEffect: becauseTelemetry, Doc: "Largest set of metrics that a client may push, in bytes."},
	}
}
