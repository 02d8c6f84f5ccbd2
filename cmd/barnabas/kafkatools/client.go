package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// The options that tools which talk to a cluster have.
func bootstrapOption() option {
	return option{name: "bootstrap-server", arg: "server to connect to", about: "REQUIRED: the brokers to connect to first, HOST1:PORT1,HOST2:PORT2."}
}

func commandConfigOption() option {
	return option{name: "command-config", arg: "file", about: "Properties file with the settings of the client."}
}

// cluster is a client of the cluster that a tool talks to.
type cluster struct {
	*kgo.Client
	admin    *kadm.Client
	patience time.Duration // that one request, with all its tries, may take
}

// properties are the settings of a client, by Kafka's names. Which of them are looked up is remembered, so that the others can be told.
type properties struct {
	values map[string]string
	used   map[string]bool
}

// loadProperties reads a file of properties, none when the name is empty, and puts others over them.
func loadProperties(file string, over ...map[string]string) (*properties, error) {
	p := &properties{values: map[string]string{}, used: map[string]bool{}}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the properties: %w", err)
		}
		list, err := kafka.ParseProperties(file, data)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			p.values[one.Name] = one.Value
		}
	}
	for _, values := range over {
		for name, value := range values {
			p.values[name] = value
		}
	}
	return p, nil
}

func (p *properties) get(name, preset string) string {
	p.used[name] = true
	if v, ok := p.values[name]; ok {
		return v
	}
	return preset
}

func (p *properties) isTrue(name string) bool {
	return strings.EqualFold(strings.TrimSpace(p.get(name, "")), "true")
}

// millis reads a positive number of milliseconds.
func (p *properties) millis(name string, preset time.Duration) (time.Duration, error) {
	text := p.get(name, "")
	if text == "" {
		return preset, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s: want milliseconds, not %q", name, text)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// unused lists what nobody looked up.
func (p *properties) unused() (names []string) {
	for name := range p.values {
		if !p.used[name] {
			names = append(names, name)
		}
	}
	return names
}

// connect makes a client of the brokers and waits until one of them answers. Settings that mean nothing here are told.
func (c *call) connect(ctx context.Context, servers string, p *properties, clientID string, options ...kgo.Opt) (*cluster, error) {
	if strings.TrimSpace(servers) == "" {
		return nil, misused("--bootstrap-server: want HOST:PORT")
	}
	var seeds []string
	for _, s := range strings.Split(servers, ",") {
		s = strings.TrimSpace(s)
		if _, _, err := net.SplitHostPort(s); err != nil {
			return nil, misused("Invalid url in bootstrap.servers: %s", s)
		}
		seeds = append(seeds, s)
	}
	wait, err := p.millis("default.api.timeout.ms", time.Minute)
	if err != nil {
		return nil, err
	}
	request, err := p.millis("request.timeout.ms", 30*time.Second)
	if err != nil {
		return nil, err
	}
	secure, err := security(p)
	if err != nil {
		return nil, err
	}
	all := []kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.ClientID(p.get("client.id", clientID)), kgo.RetryTimeout(wait), kgo.RequestTimeoutOverhead(request),
		kgo.DialTimeout(min(request, 10*time.Second)), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.RetryBackoffFn(func(fails int) time.Duration { return min(20*time.Millisecond<<min(max(fails-1, 0), 10), time.Second) }),
	}
	client, err := kgo.NewClient(append(append(all, secure...), options...)...)
	if err != nil {
		return nil, err
	}
	p.get("bootstrap.servers", "") // the flag stands over it
	if names := p.unused(); len(names) > 0 {
		fmt.Fprintf(c.Err, "WARN: these settings of the client were supplied but mean nothing here: %s\n", strings.Join(sorted(names), ", "))
	}
	if err := c.reach(ctx, client, servers, wait); err != nil {
		client.Close()
		return nil, err
	}
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(int32(min(wait, time.Hour).Milliseconds()))
	return &cluster{client, admin, wait}, nil
}

// reach waits until a broker answers. As with Kafka's client, it may be that it is just about to start.
func (c *call) reach(ctx context.Context, client *kgo.Client, servers string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	told := false
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := client.Ping(ctx)
		if err == nil || !transient(err) {
			return err
		}
		if !told && ctx.Err() == nil {
			told = true
			fmt.Fprintf(c.Err, "WARN: connection to %s could not be established: no broker may be there (%v)\n", servers, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no broker answered at %s within %s: %w", servers, wait, err)
		case <-time.After(pause):
		}
	}
}

// transient says whether it may be otherwise when it is tried again: not when a broker refuses the client, or its name is none.
func transient(err error) bool {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return dns.IsTemporary || dns.IsTimeout
	}
	var code *kerr.Error
	return !errors.As(err, &code) || code.Retriable
}

// administer connects with the settings of --command-config and calls f, for as long as its requests may take.
func (c *call) administer(ctx context.Context, f func(context.Context, *cluster) error) error {
	if err := c.require("bootstrap-server"); err != nil {
		return err
	}
	p, err := loadProperties(c.text("command-config"))
	if err != nil {
		return err
	}
	k, err := c.connect(ctx, c.text("bootstrap-server"), p, "adminclient-1")
	if err != nil {
		return err
	}
	defer k.Close()
	return f(ctx, k)
}

// said is an error with what the broker said of it, which tells more than the code does, or what the code means.
func said(err error, message string) error {
	var code *kerr.Error
	switch {
	case err == nil:
		return nil
	case message != "":
		return &answer{message, err}
	case errors.As(err, &code):
		return &answer{code.Description, err}
	}
	return err
}

// answer is a broker's error in its own words.
type answer struct {
	text string
	err  error
}

func (a *answer) Error() string { return a.text }
func (a *answer) Unwrap() error { return a.err }
