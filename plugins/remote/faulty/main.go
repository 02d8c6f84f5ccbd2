// Command faulty is a plug-in with one fault, named by its first argument: what the tests of plugins/remote and
// plugins/sdk/plugincheck start to see that a broker gets over each, and that each is found out. `good` has none.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
	"github.com/barnabas-mq/barnabas/plugins/sdk"
)

func main() {
	mode := "good"
	if len(os.Args) > 1 {
		mode = os.Args[1]
	}
	if early, ok := beforeHandshake()[mode]; ok {
		early()
		return
	}
	if strings.HasPrefix(mode, "raw-") {
		serveRaw(mode)
		return
	}
	options := []sdk.Option{sdk.Version("1.2.3")}
	switch mode {
	case "codec":
		options = append(options, sdk.Compression(codecFactory()))
	case "store":
		options = append(options, sdk.Offsets(storeFactory()))
	case "all":
		options = append(options, sdk.Partitioner(partitionerFactory("good")), sdk.Compression(codecFactory()), sdk.Offsets(storeFactory()))
	default:
		options = append(options, sdk.Partitioner(partitionerFactory(mode)))
	}
	sdk.Serve(options...)
	if mode == "deaf" {
		select {}
	}
}

// beforeHandshake are the faults of plug-ins that never get as far as a call.
func beforeHandshake() map[string]func() {
	line := func(text string) { fmt.Fprintln(os.Stdout, text) }
	return map[string]func(){
		"hello":  func() { line("hello"); sdk.Serve(sdk.Partitioner(partitionerFactory("good"))) },
		"exit":   func() { fmt.Fprintln(os.Stderr, "cannot open the map of regions"); syscall.Exit(1) },
		"silent": func() { time.Sleep(time.Hour) },
		"endless": func() {
			for {
				fmt.Fprint(os.Stdout, strings.Repeat("x", 4096))
			}
		},
		"version": func() { line("1|99|unix|/nowhere|grpc|"); time.Sleep(time.Hour) },
		"core":    func() { line("7|1|unix|/nowhere|grpc|"); time.Sleep(time.Hour) },
		"netrpc":  func() { line("1|1|unix|/nowhere|netrpc|"); time.Sleep(time.Hour) },
		"nowhere": func() { line("1|1|unix|/nowhere|grpc|"); time.Sleep(time.Hour) },
		"cookie": func() {
			if os.Getenv("ANOTHER_COOKIE") == "" {
				fmt.Fprintln(os.Stderr, "this is a plug-in for something else")
				syscall.Exit(1)
			}
		},
		"nocookie": func() {
			// Takes anybody for its host.
			_ = os.Setenv(pluginv1.CookieKey, pluginv1.CookieValue)
			sdk.Serve(sdk.Partitioner(partitionerFactory("good")))
		},
		"child": func() {
			// Something that holds the pipes and outlives its parent.
			signal.Ignore(syscall.SIGHUP, syscall.SIGTERM)
			c := exec.Command("sleep", "3600")
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			_ = c.Start()
			syscall.Exit(1)
		},
	}
}
