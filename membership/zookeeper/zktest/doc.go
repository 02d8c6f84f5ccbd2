// Package zktest starts real ZooKeeper servers, alone or as an ensemble, as processes on 127.0.0.1: for tests, and for whoever
// wants a cluster on one machine.
//
//	zk := zktest.New(t, 1)           // a test's own, gone when the test ends
//	options.Connect = zk.Connect() + "/kafka"
//
//	zk, err := zktest.Start(ctx, zktest.Options{Dir: dir, Servers: 3})
//	defer zk.Stop()
//
// Each [Server] can be stopped, killed (SIGKILL), paused (SIGSTOP), and started again on the same port and data. What can be
// done to the network between a server and its clients is the business of a proxy in front of it, not of this package.
//
// ZooKeeper is Java: a "java" must be on the PATH. Its jars are those of ZOOKEEPER_HOME (its lib folder, as in a release), or are
// fetched once by Maven ("mvn") into the cache: the folder .cache of the module in whose tree the program runs, otherwise the
// user's cache folder.
package zktest
