// Package acceptance is the tests of the program from outside: real processes, real sockets, real files.
//
// The tests named TestA01… replay what users of other brokers reported in public; each names its sources. The others send
// what no honest client sends, take away the disk, kill the process, and look at what is left. What a room of the house can
// test by itself isn't tested here.
package acceptance
