// Package kafkatools is Apache Kafka's command-line tools under their own names: kafka-topics, kafka-console-producer,
// kafka-console-consumer, kafka-consumer-groups, kafka-configs, kafka-get-offsets and kafka-dump-log, with their flags, what they
// print, and the codes that they exit with. So what is written down for them, in scripts and in run-books, goes on working,
// without a JVM, and against any cluster that speaks Kafka's protocol.
//
// The measure is Kafka 4.x. Flags that only 3.9 has, or has under other names, are understood as well. What these tools print on
// standard output is the same; what they complain about on standard error is said in other words. Where two of Kafka's lines
// have no order (topics, groups), these have one. What is left out is refused, and never ignored: Java classes of others as
// readers, formatters, serializers and decoders, key stores that aren't PEM, and the decoders of topics that only Kafka has.
//
// The tools of the verbs (topic, group, ...), which print for people and as JSON, are none of this package's business.
package kafkatools
