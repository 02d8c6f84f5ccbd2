package zktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Options say which servers to start, and where.
type Options struct {
	Dir     string        // the folder of their data, logs and configuration, made when missing, kept on Stop
	Servers int           // 1, or 3 and more for an ensemble; 0 is 1
	Ports   []int         // of the servers, for clients; empty for free ones
	Jars    string        // the folder of ZooKeeper's jars; empty for those that Jars finds in Cache
	Tick    time.Duration // ZooKeeper's tickTime; 0 is 500 ms. Sessions last at least two ticks
	Sync    bool          // whether each write is forced to the disk, as in production; without it tests are quicker
	Heap    string        // the JVM's -Xmx; empty is 128M
	Config  []string      // further lines of zoo.cfg
	JVM     []string      // further arguments of the JVM
}

// Ensemble is one or more servers that belong together.
type Ensemble struct {
	servers []*Server
}

// Start starts the servers and returns when all answer. When one doesn't, none is left running.
func Start(ctx context.Context, o Options) (*Ensemble, error) {
	if o.Servers == 0 {
		o.Servers = 1
	}
	if o.Tick == 0 {
		o.Tick = 500 * time.Millisecond
	}
	if o.Heap == "" {
		o.Heap = "128M"
	}
	if o.Servers < 1 || o.Servers == 2 || len(o.Ports) > 0 && len(o.Ports) != o.Servers {
		return nil, fmt.Errorf("zktest: %d servers on %d ports: want 1, or at least 3, and a port for each or none", o.Servers, len(o.Ports))
	}
	if o.Jars == "" {
		cache, err := Cache()
		if err != nil {
			return nil, err
		}
		if o.Jars, err = Jars(ctx, cache); err != nil {
			return nil, err
		}
	}
	e := &Ensemble{}
	if err := e.configure(&o); err != nil {
		return nil, err
	}
	if err := e.each(func(s *Server) error { return s.Start(ctx) }); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// configure gives each server its ports and writes its files.
func (e *Ensemble) configure(o *Options) error {
	perServer := 1
	if o.Servers > 1 {
		perServer = 3 // for clients, for the leader's followers, for elections
	}
	ports, err := freePorts(o.Servers * perServer)
	if err != nil {
		return err
	}
	var members strings.Builder
	for i := range o.Servers {
		if len(o.Ports) > 0 {
			ports[i*perServer] = o.Ports[i]
		}
		if o.Servers > 1 {
			fmt.Fprintf(&members, "server.%d=127.0.0.1:%d:%d\n", i+1, ports[i*3+1], ports[i*3+2])
		}
	}
	for i := range o.Servers {
		dir, err := filepath.Abs(filepath.Join(o.Dir, strconv.Itoa(i+1)))
		if err != nil {
			return err
		}
		data := filepath.Join(dir, "data")
		s := &Server{ID: i + 1, Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i*perServer])), dir: dir}
		var cfg strings.Builder
		fmt.Fprintf(&cfg, "dataDir=%s\nclientPort=%d\nclientPortAddress=127.0.0.1\ntickTime=%d\ninitLimit=40\nsyncLimit=20\n", data, ports[i*perServer], o.Tick.Milliseconds())
		fmt.Fprintf(&cfg, "maxClientCnxns=0\nmaxSessionTimeout=120000\nadmin.enableServer=false\n4lw.commands.whitelist=ruok,srvr,stat,cons,dump\nautopurge.purgeInterval=0\n")
		if !o.Sync {
			cfg.WriteString("forceSync=no\n")
		}
		cfg.WriteString(members.String())
		for _, line := range o.Config {
			cfg.WriteString(line + "\n")
		}
		logConfig := filepath.Join(dir, "logback.xml")
		if err := errors.Join(os.MkdirAll(data, 0o755),
			os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(s.ID)+"\n"), 0o644),
			os.WriteFile(logConfig, logback, 0o644),
			os.WriteFile(filepath.Join(dir, "zoo.cfg"), []byte(cfg.String()), 0o644)); err != nil {
			return err
		}
		// Quick to start and small rather than quick in the long run: a server of a test lives for seconds.
		s.command = append([]string{"java", "-Xmx" + o.Heap, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
			"-Djava.awt.headless=true", "-Dzookeeper.jmx.log4j.disable=true", "-Dlogback.configurationFile=" + logConfig}, o.JVM...)
		if o.Servers > 1 { // an election that begins before all are up would wait for late votes
			s.command = append(s.command, "-Dzookeeper.fastleader.maxNotificationInterval=1000")
		}
		s.command = append(s.command, "-cp", filepath.Join(o.Jars, "*"), "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(dir, "zoo.cfg"))
		e.servers = append(e.servers, s)
	}
	return nil
}

// Connect lists the servers' addresses, as clients want them: "127.0.0.1:2181,127.0.0.1:2182".
func (e *Ensemble) Connect() string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.Addr
	}
	return strings.Join(addrs, ",")
}

// Servers lists the servers. They stay the same, whether they run or not.
func (e *Ensemble) Servers() []*Server { return append([]*Server{}, e.servers...) }

// Leader waits until one of the running servers leads (or is alone), and returns it.
func (e *Ensemble) Leader(ctx context.Context) (*Server, error) {
	for {
		for _, s := range e.servers {
			if mode := s.Mode(); mode == "leader" || mode == "standalone" {
				return s, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("zktest: no server leads: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop ends all servers. It may be called again.
func (e *Ensemble) Stop() error { return e.each((*Server).Stop) }

// each does something with all servers at the same time.
func (e *Ensemble) each(do func(*Server) error) error {
	errs := make([]error, len(e.servers))
	var wg sync.WaitGroup
	for i, s := range e.servers {
		wg.Go(func() { errs[i] = do(s) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// freePorts finds TCP ports of 127.0.0.1 that nobody listens on at the moment, below those that systems give to outgoing
// connections, so that a server that is started again finds its own free.
func freePorts(n int) ([]int, error) {
	const lowest, beyond = 10_000, 32_768
	var ports []int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close() // nothing was done with it
		}
	}()
	for tries := 0; len(ports) < n; tries++ {
		port := lowest + rand.IntN(beyond-lowest)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			if tries > 100*n {
				return nil, fmt.Errorf("zktest: no free port: %w", err)
			}
			continue
		}
		held, ports = append(held, l), append(ports, port)
	}
	return ports, nil
}
