package interop

import (
	"context"
	"fmt"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/peers"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
)

// clusterChecks are the checks that java/tools reports in its role "cluster", in its order.
func clusterChecks() []string {
	return []string{
		"topics create with assigned replicas", "producer-perf-test with acks=all", "reassign-partitions --generate", "reassign-partitions --execute and --verify",
		"reassign-partitions --list and --cancel", "reassign-partitions with a throttle", "leader-election", "consumer-groups", "log-dirs of three brokers", "topics delete",
	}
}

// RunCluster checks a cluster of the brokers 1, 2 and 3: with the tools of Kafka's last release that runs on ZooKeeper, and
// with clients that go on while its brokers are killed in turn. The error says that it couldn't be done; failed checks are in the
// Report.
func (r Runner) RunCluster(ctx context.Context, c *target.Cluster) (Report, error) {
	report := Report{Target: c.Name}
	prefix := fmt.Sprintf("cluster%d", time.Now().Unix()%1e6)
	java, err := peers.Kafka39Jars(ctx, r.Tools)
	if err != nil {
		return report, err
	}
	tell := func(results []probe.Result) {
		for _, one := range results {
			if !one.OK {
				r.Env.Say("  FAILED %s: %s: %s", one.Client, one.Check, one.Detail)
			}
		}
		report.Results = append(report.Results, results...)
	}
	if r.chosen(ToolsName) {
		kafka, err := compileKafkaTools(ctx, r.Env, r.Tools, java)
		if err != nil {
			return report, err
		}
		r.Env.Say("%s: Kafka's tools for replicas, leaders and groups", c.Name)
		args := probe.Args{Role: "cluster", Bootstrap: c.Addrs(), Prefix: prefix}
		tell(kafka.installed.play(ctx, r.Env, args, clusterChecks()))
	}
	for _, client := range Clients(r.Env, r.Tools) {
		producer, ok := lineProducers(c.Addrs(), java)[client.Name]
		if !ok || !r.chosen(client.Name) {
			continue
		}
		cmd, err := client.Install(ctx)
		if err != nil {
			return report, fmt.Errorf("client %s: %w", client.Name, err)
		}
		r.Env.Say("%s: %s goes on while brokers are killed in turn", c.Name, client.Name)
		tell(survive(ctx, installed{Client: client, command: cmd}, producer, c, prefix+"-"+client.Name))
	}
	return report, ctx.Err()
}

// lineProducers are the clients that work while brokers are killed, each with a program that sends the lines of its input and ends
// when it is done with all. The topic is its last argument. kcat would end (-E) when all its connections have broken, though it has only not tried
// yet to reach brokers that are there again.
func lineProducers(addrs string, java peers.Java) map[string]command {
	return map[string]command{
		"java": {args: java.Command("128M", "ERROR", nil, "kafka.tools.ConsoleProducer", "--bootstrap-server", addrs,
			"--producer-property", "acks=all", "--producer-property", "enable.idempotence=true", "--producer-property", "delivery.timeout.ms=120000",
			"--message-send-max-retries", "1000000", "--topic")},
		"kcat": {args: []string{"kcat", "-P", "-E", "-b", addrs, "-X", "acks=all", "-X", "enable.idempotence=true", "-X", "message.timeout.ms=120000", "-t"}},
	}
}
