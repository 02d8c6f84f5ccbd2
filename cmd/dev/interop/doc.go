// Package interop checks a broker with real Kafka clients, each in a process of its own, and with Kafka's own tools.
//
// A client is a program around one library that keeps to the rules of package probe; its folder is named after its
// language. The runner starts it in three roles:
//
//   - checks: it creates topics, produces a corpus of texts with each codec it knows, reads from the start, the end and a
//     timestamp, commits and resumes;
//   - member: three of them play the life of a group, one is killed with SIGKILL (see group.go);
//   - read: it reads what all the other clients wrote.
//
// The corpus is made of files that nobody here wrote: licence texts and Python's library, compared byte by byte at
// the other end. Kafka's tools run inside one JVM (java/Tools.java); dump-log goes over the broker's segments when it has stopped.
//
// What only Barnabas has is checked with what others wrote, too (own.go): three clients whose partitioners disagree produce the same
// keys to topics that check them, a client of REST Proxy talks to the HTTP gateway, and Schemathesis holds the gateway against its
// OpenAPI document.
//
// A check that was expected and never reported has failed: nothing is skipped in silence.
package interop
