// Package health says whether a broker is alive, ready and well, and why not. It is pure: [Facts] go in, [Check]s come out.
//
// Three questions, for three kinds of askers. Live: would a restart of this process help? It depends on nothing outside of the process, so
// that a cluster that is in trouble isn't restarted broker by broker. Ready: can this broker serve clients now? All: is there anything
// that somebody ought to look at? What is wrong with the cluster, or with one disk of several, is a warning there and fails nothing.
//
// What isn't its business: finding the facts (core/broker), HTTP, and the cluster as a whole.
package health
