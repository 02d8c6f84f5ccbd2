package interop

import (
	"slices"
	"strings"
)

func sortedLines(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// words makes arguments of a line; a word may not have blanks.
func words(line string) []string { return strings.Fields(line) }

// twinSteps are the command lines that are compared, in their order; those that read the broker's files only where it is known
// where they are.
func twinSteps(files bool) []twinStep {
	topics := func(line string) twinStep { return twinStep{tool: "kafka-topics", args: words(line)} }
	configs := func(line string) twinStep { return twinStep{tool: "kafka-configs", args: words(line)} }
	offsets := func(line string) twinStep { return twinStep{tool: "kafka-get-offsets", args: words(line)} }
	groups := func(line string) twinStep { return twinStep{tool: "kafka-consumer-groups", args: words(line)} }
	produce := func(line, input string) twinStep {
		return twinStep{tool: "kafka-console-producer", args: words(line), input: input}
	}
	consume := func(line string) twinStep { return twinStep{tool: "kafka-console-consumer", args: words(line)} }
	code := func(s twinStep) twinStep { s.quiet = true; return s }
	loose := func(s twinStep) twinStep { s.sort = true; return s }
	steps := []twinStep{
		topics("--create --topic @-text --partitions 1 --replication-factor 1 --config retention.ms=86400000"),
		topics("--create --topic @-many --partitions 3"),
		topics("--create --topic @-idle --replica-assignment 1,1"),
		topics("--create --topic @-many --if-not-exists"),
		topics("--create --topic @-many"),
		code(topics("--create --topic @-none --partitions 0")),
		code(topics("--create --topic @-none --config no.such=1")),
		code(topics("--create")),
		code(topics("--list --describe")),
		code(topics("--list --nonsense")),
		topics("--list --topic @-.*"),
		topics("--list --topic @-none"),
		topics("--describe --topic @-text"),
		topics("--describe --topic @-many"),
		topics("--describe --topic @-many --topics-with-overrides"),
		topics("--describe --topic @-text --topics-with-overrides"),
		topics("--describe --topic @-text --under-replicated-partitions"),
		topics("--describe --topic @-many --at-min-isr-partitions"),
		topics("--describe --topic @-none --if-exists"),
		code(topics("--describe --topic @-none")),
		topics("--alter --topic @-many --partitions 4"),
		topics("--alter --topic @-many --partitions 2"),
		topics("--describe --topic @-many"),

		configs("--alter --entity-type topics --entity-name @-text --add-config cleanup.policy=[delete,compact],min.insync.replicas=1"),
		configs("--describe --entity-type topics --entity-name @-text"),
		configs("--describe --topic @-many"),
		configs("--describe --all --topic @-text"),
		configs("--alter --topic @-text --delete-config cleanup.policy"),
		configs("--alter --topic @-text --delete-config cleanup.policy"),
		configs("--describe --entity-type topics --entity-name @-none"),
		configs("--describe --entity-type brokers --entity-name 1"),
		configs("--alter --entity-type brokers --entity-name 1 --add-config message.max.bytes=1000013"),
		configs("--describe --broker 1"),
		configs("--alter --entity-type brokers --entity-name 1 --delete-config message.max.bytes"),
		configs("--describe --entity-type brokers --entity-default"),
		code(configs("--alter --entity-type brokers --entity-name x --add-config a=b")),
		code(configs("--describe --entity-type nonsense")),

		produce("--topic @-text --reader-property parse.key=true --reader-property key.separator=: --reader-property parse.headers=true", "h1:v1,h2:v2\tk1:one\nh1:v3\tk2:two\n"),
		produce("--topic @-text --reader-property null.marker=NIL --sync --compression-codec", "three\nNIL\nfünf\r\n"),
		produce("--topic @-text --compression-codec zstd --request-required-acks 1", "six"),
		code(produce("--topic @-text --reader-property parse.key=true", "no key\n")),
		produce("--topic @-many --reader-property parse.key=true --command-property acks=all", "a\t1\nb\t2\nc\t3\nd\t4\ne\t5\nf\t6\n"),

		consume("--topic @-text --from-beginning --max-messages 6 --timeout-ms 30000"),
		consume("--topic @-text --partition 0 --offset 2 --max-messages 2 --formatter-property print.key=true --formatter-property print.partition=true --formatter-property print.offset=true"),
		consume("--topic @-text --partition 0 --offset earliest --max-messages 4 --formatter-property print.headers=true --formatter-property print.key=true --formatter-property print.timestamp=true --formatter-property key.separator=| --formatter-property null.literal=NIL"),
		consume("--topic @-text --partition 0 --offset earliest --max-messages 1 --formatter-property print.value=false --formatter-property print.key=true --formatter-property line.separator=;"),
		loose(consume("--topic @-many --from-beginning --max-messages 6 --timeout-ms 30000 --formatter-property print.key=true --formatter-property print.partition=true --isolation-level read_committed")),
		consume("--topic @-text --group @-g --from-beginning --max-messages 4 --timeout-ms 30000"),
		code(consume("--topic @-text --partition 0 --group @-g")),

		offsets("--topic @-text"),
		offsets("--topic @-.* --time earliest"),
		offsets("--topic-partitions @-many:1-3,@-text,@-idle:0"),
		offsets("--topic @-many --partitions 0,2 --time -1"),
		offsets("--topic @-many --time 9999999999999"),
		offsets("--topic @-text --time max-timestamp"),
		offsets("--topic @-text --time 1000"),
		code(offsets("--topic @-none")),
		code(offsets("--topic @-text --time soon")),

		groups("--describe --group @-g"),
		groups("--describe --group @-g --members"),
		groups("--describe --group @-g --members --verbose"),
		groups("--describe --group @-g --state"),
		groups("--describe --group @-g --state --verbose"),
		code(groups("--describe --group @-none")),
		groups("--reset-offsets --group @-g --topic @-text --to-earliest --dry-run"),
		groups("--reset-offsets --group @-g --topic @-text --to-offset 3 --execute"),
		groups("--describe --group @-g --offsets"),
		groups("--describe --group @-g --verbose"),
		groups("--reset-offsets --group @-g --topic @-text:0 --shift-by -2 --execute"),
		groups("--reset-offsets --group @-g --all-topics --shift-by 100 --execute"),
		groups("--reset-offsets --group @-g --topic @-text --to-datetime 2000-01-01T00:00:00.000 --execute"),
		groups("--reset-offsets --group @-g --topic @-text --to-datetime 2100-01-01T00:00:00.000 --dry-run"),
		groups("--reset-offsets --group @-g --topic @-text --by-duration PT1H --execute"),
		groups("--reset-offsets --group @-g --topic @-text --to-current --dry-run --export"),
		groups("--reset-offsets --group @-new --topic @-text --to-latest --execute"),
		code(groups("--reset-offsets --group @-g --topic @-text:7 --to-latest --execute")),
		code(groups("--reset-offsets --group @-g --to-latest")),
		groups("--delete-offsets --group @-new --topic @-text"),
		groups("--delete --group @-g"),
		groups("--delete --group @-none"),
		groups("--validate-regex [a-z]+"),
		groups("--validate-regex [a-z"),
	}
	if files {
		dump := func(line string) twinStep { return twinStep{tool: "kafka-dump-log", args: words(line)} }
		steps = append(steps,
			dump("--files %DATA%.log"),
			dump("--files %DATA%.log --deep-iteration"),
			dump("--files %DATA%.log --print-data-log"),
			dump("--files %DATA%.log --print-data-log --skip-record-metadata"),
			dump("--files %DATA%.log,%DATA%.index,%DATA%.timeindex --max-bytes 200"),
			dump("--files %DATA%.timeindex --index-sanity-check"),
			code(dump("--files")),
			code(dump("--files %DATA%.nothing.log")),
		)
	}
	return append(steps,
		topics("--delete --topic @-many,@-idle"),
		code(topics("--delete --topic @-none")),
		topics("--delete --topic @-none --if-exists"),
		topics("--list --topic @-.*"),
	)
}
