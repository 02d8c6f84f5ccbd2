// Command barnabas is the message broker and the tools that go with it.
//
// main.go starts, components.go names every implementation in the binary, compose.go turns a configuration into a
// composition of them, and each command has a file of its own. What a broker does is none of this package's business.
package main

import "os"

func main() {
	os.Exit(runAs(os.Args[0], newApp(os.Stdin, os.Stdout, os.Stderr, os.Environ()), os.Args[1:]))
}
