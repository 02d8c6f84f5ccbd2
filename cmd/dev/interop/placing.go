package interop

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
	"github.com/barnabas-mq/barnabas/cmd/dev/target"
	"github.com/barnabas-mq/barnabas/cmd/dev/task"
)

// placingName is the name of the checks of topics that check where their records are.
const placingName = "placing"

// placer is a client with its default partitioner. Its program takes an address and topics, reads keys in hexadecimal, one a
// line, produces each to each topic in a request of its own, and prints a line for each: topic, key, partition, and
// whether it was kept, separated by tabs. A refusal that isn't INVALID_RECORD ends it.
type placer struct {
	name        string
	software    string // as the client calls itself (KIP-511)
	partitioner string // the name that the default has in Barnabas
	install     func(context.Context) (command, error)
}

func (i installer) placers() []placer {
	return []placer{
		{"java", "apache-kafka-java", "murmur2", i.java("java-clients", "clients.pom.xml", "placing")},
		{"confluent-python", "confluent-kafka-python", "crc32", i.python("placing.py")},
		{"sarama", "sarama", "fnv1a", i.golang("placing")},
	}
}

// placingPartitions is how many partitions the topics have.
const placingPartitions = 12

// placed is what became of one key.
type placed struct {
	partition string
	kept      bool
}

// placing has clients whose partitioners disagree produce the same keys to topics that declare one of them. Where a key belongs is
// told by the client whose partitioner it is; from that follows, for each client, which keys are refused
// (barnabas.partitioner.check=reject) and how many are counted (check=count). The broker tells the counts in its log.
func (r Runner) placing(ctx context.Context) (results []probe.Result, err error) {
	placers := installer{env: r.Env, tools: r.Tools}.placers()
	broker, stop, err := r.startOwn(ctx, target.Options{})
	if err != nil {
		return nil, err
	}
	defer stop()
	var topics []string
	for _, p := range placers {
		topics = append(topics, p.partitioner+"-count", p.partitioner+"-reject")
	}
	if err := createChecking(ctx, broker.Addr, topics); err != nil {
		return nil, err
	}
	told := map[string]map[string]map[string]placed{} // by client, topic and key
	for _, p := range placers {
		if told[p.name], err = p.produce(ctx, r.Env, broker.Addr, topics); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if err := broker.Stop(); err != nil {
		return nil, err
	}
	return judgePlacing(placers, told, elsewhere(broker.Output())), nil
}

// judgePlacing compares what each client was told, by client, topic and key, with where the clients themselves put the keys, and
// the counts with both.
func judgePlacing(placers []placer, told map[string]map[string]map[string]placed, counted map[source]outcome) (results []probe.Result) {
	for _, declared := range placers {
		count, reject := declared.partitioner+"-count", declared.partitioner+"-reject"
		home := told[declared.name][count]
		for _, p := range placers {
			moved := 0
			var faults []error
			for key, at := range told[p.name][count] {
				away := at.partition != home[key].partition
				if away {
					moved++
				}
				if !at.kept {
					faults = append(faults, fmt.Errorf("%s was refused", key))
				}
				if got := told[p.name][reject][key]; got.kept == away {
					faults = append(faults, fmt.Errorf("%s of partition %s, which belongs into %s: kept is %t", key, at.partition, home[key].partition, got.kept))
				}
			}
			if (moved == 0) != (p.name == declared.name) {
				faults = append(faults, fmt.Errorf("%d of %d keys are elsewhere", moved, len(home)))
			}
			if got, want := counted[source{count, p.software}], (outcome{appended: moved}); got != want {
				faults = append(faults, fmt.Errorf("the broker counted %+v: want %+v", got, want))
			}
			if got, want := counted[source{reject, p.software}], (outcome{refused: moved}); got != want {
				faults = append(faults, fmt.Errorf("the broker counted %+v: want %+v", got, want))
			}
			result := probe.Result{Client: placingName, Check: p.name + " where " + declared.partitioner + " is declared", OK: len(faults) == 0}
			if !result.OK {
				result.Detail = errors.Join(faults...).Error()
			}
			results = append(results, result)
		}
	}
	return results
}

// createChecking creates topics whose names are a partitioner's and what its check is to do.
func createChecking(ctx context.Context, addr string, topics []string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, topic := range topics {
		partitioner, check, _ := strings.Cut(topic, "-")
		configs := map[string]*string{"barnabas.partitioner": &partitioner, "barnabas.partitioner.check": &check}
		if _, err := kadm.NewClient(client).CreateTopic(ctx, placingPartitions, 1, configs, topic); err != nil {
			return err
		}
	}
	return nil
}

// produce runs the client's program and gives what it told, by topic and key.
func (p placer) produce(ctx context.Context, e *task.Env, addr string, topics []string) (map[string]map[string]placed, error) {
	program, err := p.install(ctx)
	if err != nil {
		return nil, err
	}
	keys := recordedKeys()[1:] // librdkafka takes the empty one for none
	out, err := e.Output(ctx, task.Command{Env: program.env, Args: append(append(program.args, addr), topics...), Stdin: strings.NewReader(strings.Join(keys, "\n") + "\n")})
	if err != nil {
		return nil, err
	}
	told := map[string]map[string]placed{}
	for _, topic := range topics {
		told[topic] = map[string]placed{}
	}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 || told[f[0]] == nil {
			return nil, fmt.Errorf("not a line of the program: %q", line)
		}
		told[f[0]][f[1]] = placed{f[2], f[3] == "true"}
	}
	for topic, at := range told {
		if len(at) != len(keys) {
			return nil, fmt.Errorf("%d of %d keys are told of in %s", len(at), len(keys), topic)
		}
	}
	return told, nil
}

// source is whose records were elsewhere, and in which topic.
type source struct{ topic, software string }

// outcome is what became of them.
type outcome struct{ appended, refused, unchecked int }

// elsewhere adds up what a broker's log tells of records in other partitions than their topic's partitioner chooses.
func elsewhere(log string) map[source]outcome {
	sums := map[source]outcome{}
	line := regexp.MustCompile(`records were produced to other partitions .*?topic=(\S+) client=(\S+) version=\S* appended=(\d+) refused=(\d+) unchecked=(\d+)`)
	for _, m := range line.FindAllStringSubmatch(log, -1) {
		number := func(i int) int {
			n, _ := strconv.Atoi(m[i]) // digits, by the expression
			return n
		}
		sum := sums[source{m[1], m[2]}]
		sums[source{m[1], m[2]}] = outcome{sum.appended + number(3), sum.refused + number(4), sum.unchecked + number(5)}
	}
	return sums
}
