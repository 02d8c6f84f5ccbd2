// Package compare measures Barnabas beside Apache Kafka, in the same hour on the same machine, and holds the figures
// against the targets that Barnabas has set itself.
//
// Loads are put on both brokers in turn (A B A B …), after a warm-up that gives Kafka's just-in-time compiler the time it
// needs; medians count. Both run with the same settings, their defaults. How load is made and measured is the business of
// the bench package; this one knows what is measured, and what is good enough.
package compare
