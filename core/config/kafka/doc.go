// Package kafka knows Apache Kafka's configuration properties: which there are for brokers and for topics, their
// types, defaults and valid values, which may be changed while the broker runs, and what each does here.
//
// It answers for five things.
//   - The table: every property of Kafka 3.9, as a [Definition]. What Barnabas doesn't act on is in it too, with the
//     reason, so that a configuration written for Kafka is understood word by word.
//   - Reading: [Static] properties from the `broker` section of a YAML file, with warnings for what has no effect.
//   - Resolving: [Layers] says for each property which of the places it may be set at wins, typed for the broker
//     ([BrokerConfig], [TopicConfig]) and in full for DescribeConfigs ([Entry]).
//   - Changing: [ChangeTopic], [ChangeBroker] and their incremental twins check and apply what AlterConfigs and
//     IncrementalAlterConfigs ask for.
//   - Importing: [ParseProperties] reads a server.properties, and [Import] says what becomes of each of its properties.
//
// Everything is a pure function over values, but for [RoutableHost], which asks the system for its name. Keeping the
// changes, and turning faults into Kafka's error codes, is the broker's business; a [Fault] carries the kind that
// decides the code.
//
// Sources: KafkaConfig, LogConfig and DynamicBrokerConfig of Kafka 3.9.1; KIP-226 (dynamic configuration), KIP-339
// (incremental changes), KIP-524 (synonyms).
package kafka
