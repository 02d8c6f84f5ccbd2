// Package compare measures Barnabas beside Apache Kafka, in the same hour on the same machine, and holds the figures
// against the targets that Barnabas has set itself.
//
// Loads are put on both brokers in turn (A B A B …), after a warm-up that gives Kafka's just-in-time compiler the time it
// needs; medians of the rounds' ratios count. What the machine alone costs for the same (package limits) is measured in the
// same rounds, as the bound that neither can pass. Both run with the same settings, their defaults. How load is made and
// measured is the business of the bench package; this one knows what is measured, and what is good enough.
//
// Clusters are three brokers on a ZooKeeper of their own, each partition with three replicas of which two have to be in sync,
// beside as many brokers of the last Kafka that runs there. Their throughput and processor time are of idempotent producers that
// send batches that are made beforehand; delays and fail-over are seen by a real client's idempotent producer, the same for all.
package compare
