package plugincheck

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/barnabas-mq/barnabas/plugins/remote"
	"github.com/barnabas-mq/barnabas/plugins/remote/proto/v1"
)

// wantsHost starts the executable as somebody does who tries it by hand: without the cookie of a host.
func (c *checker) wantsHost() error {
	path, err := exec.LookPath(c.Command)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.StartTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, c.Args...)
	cmd.Env = []string{"PLUGIN_UNIX_SOCKET_DIR=" + os.TempDir()}
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	first := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReaderSize(out, 4096).ReadSlice('\n')
		text := string(line)
		first <- text
		cancel() // it has said what it has to say, or has ended
	}()
	line := <-first
	_ = cmd.Wait()
	if regexp.MustCompile(`^\d+\|\d+\|`).MatchString(line) {
		return fmt.Errorf("without %s in its environment it serves all the same: it printed %.60q", pluginv1.CookieKey, line)
	}
	return nil
}

// introduces starts the plug-in and looks at what it says of itself.
func (c *checker) introduces(ctx context.Context) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	life, err := remote.Connect(ctx, o, silent())
	if err != nil {
		return err
	}
	defer life.End(time.Second)
	info := life.Info()
	c.report.Name, c.report.Version = info.GetName(), info.GetVersion()
	if len(info.GetRoles()) == 0 {
		return errors.New("it has no role")
	}
	if c.report.Role == "" {
		c.report.Role = info.GetRoles()[0].GetRole()
	}
	var errs []error
	if !regexp.MustCompile(`^[a-z][a-z0-9_-]*$`).MatchString(info.GetName()) {
		errs = append(errs, fmt.Errorf("its name is %.60q: want lower-case letters, digits, '-' and '_', beginning with a letter", info.GetName()))
	}
	if info.GetVersion() == "" {
		errs = append(errs, errors.New("it has no version"))
	}
	has := false
	for _, r := range info.GetRoles() {
		has = has || r.GetRole() == c.report.Role
		for _, o := range r.GetOptions() {
			if o.GetName() == "" || o.GetDoc() == "" {
				errs = append(errs, fmt.Errorf("option %q of %s has no name or no doc", o.GetName(), r.GetRole()))
			}
		}
	}
	if !has {
		errs = append(errs, fmt.Errorf("it is no %s", c.report.Role))
	}
	return errors.Join(errs...)
}

// refusesStrangers connects without a certificate.
func (c *checker) refusesStrangers(ctx context.Context) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	life, err := remote.Connect(ctx, o, silent())
	if err != nil {
		return err
	}
	defer life.End(time.Second)
	at := life.Addr()
	// Whom it takes is looked at, not who it is.
	stranger, err := grpc.NewClient("passthrough:///stranger", grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12})),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, at.Network(), at.String())
		}))
	if err != nil {
		return err
	}
	defer func() { _ = stranger.Close() }()
	limited, cancel := context.WithTimeout(ctx, c.CallTimeout)
	defer cancel()
	if _, err := pluginv1.NewPluginClient(stranger).Info(limited, &pluginv1.InfoRequest{}); err == nil {
		return errors.New("it answers whoever connects, without asking for the host's certificate")
	}
	return nil
}

// refusesOptions hands over an option that no plug-in has.
func (c *checker) refusesOptions(ctx context.Context) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	life, err := remote.Connect(ctx, o, silent())
	if err != nil {
		return err
	}
	defer life.End(time.Second)
	limited, cancel := context.WithTimeout(ctx, c.StartTimeout)
	defer cancel()
	answer, err := pluginv1.NewPluginClient(life.Conn()).Configure(limited, &pluginv1.ConfigureRequest{
		Role: c.report.Role, OptionsYaml: []byte("no_such_option: 1\n"), OptionsJson: []byte(`{"no_such_option": 1}`),
	})
	switch {
	case err != nil:
		return fmt.Errorf("configure: %w", err)
	case answer.GetError() == nil:
		return errors.New("it takes no_such_option without a word: whoever mistypes an option never hears of it")
	case answer.GetError().GetCode() != pluginv1.Code_CODE_OPTIONS:
		return fmt.Errorf("it refuses no_such_option with %s: want CODE_OPTIONS", answer.GetError().GetCode())
	}
	return nil
}

// launch starts the plug-in with its options.
func (c *checker) launch(ctx context.Context, log *slog.Logger) (*remote.Life, error) {
	o, err := c.options()
	if err != nil {
		return nil, err
	}
	return remote.Launch(ctx, c.report.Role, o, log)
}

func (c *checker) takesOptions(ctx context.Context) error {
	life, err := c.launch(ctx, silent())
	if err != nil {
		return err
	}
	life.End(time.Second)
	return nil
}

// ends wants the plug-in to end by itself.
func (c *checker) ends(ctx context.Context) error {
	life, err := c.launch(ctx, silent())
	if err != nil {
		return err
	}
	if !life.End(3 * time.Second) {
		return errNotEnded
	}
	return nil
}

// lineCounter is a slog.Handler that counts.
type lineCounter struct{ lines *atomic.Int64 }

func (lineCounter) Enabled(context.Context, slog.Level) bool { return true }
func (h lineCounter) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h lineCounter) WithGroup(string) slog.Handler          { return h }

func (h lineCounter) Handle(_ context.Context, r slog.Record) error {
	if !strings.HasPrefix(r.Message, "go-plugin: ") {
		h.lines.Add(1)
	}
	return nil
}

// quiet counts what is logged during some calls.
func (c *checker) quiet(ctx context.Context) error {
	const calls, most = 20, 20
	lines := &atomic.Int64{}
	use, stop, err := c.user(ctx, slog.New(lineCounter{lines}))
	if err != nil {
		return err
	}
	before := lines.Load()
	for range calls {
		if err := use(); err != nil {
			return errors.Join(err, stop())
		}
	}
	if err := stop(); err != nil {
		return err
	}
	if n := lines.Load() - before; n > most {
		return fmt.Errorf("%d calls made %d lines of log: nothing is to be logged per call", calls, n)
	}
	return nil
}

// survives sends messages that make no sense, and wants an answer to a ping afterwards.
func (c *checker) survives(ctx context.Context) error {
	life, err := c.launch(ctx, silent())
	if err != nil {
		return err
	}
	defer life.End(time.Second)
	for what, send := range nonsense(life.Conn()) {
		limited, cancel := context.WithTimeout(ctx, c.CallTimeout)
		refused := send(limited)
		hung := limited.Err() != nil
		cancel()
		if hung {
			return fmt.Errorf("%s: no answer within %s", what, c.CallTimeout)
		}
		select {
		case <-life.Exited():
			return fmt.Errorf("%s: the process ended", what)
		case <-time.After(20 * time.Millisecond):
		}
		if !refused {
			return fmt.Errorf("%s: it isn't refused", what)
		}
		limited, cancel = context.WithTimeout(ctx, c.CallTimeout)
		_, err := pluginv1.NewPluginClient(life.Conn()).Ping(limited, &pluginv1.PingRequest{})
		cancel()
		if err != nil {
			return fmt.Errorf("%s: it doesn't answer a ping afterwards: %w", what, err)
		}
	}
	return nil
}

// nonsense are calls that are to be refused, whatever the role: those of another role are, too.
func nonsense(conn *grpc.ClientConn) map[string]func(context.Context) (refused bool) {
	partition := func(q *pluginv1.PartitionRequest) func(context.Context) bool {
		return func(ctx context.Context) bool {
			a, err := pluginv1.NewPartitionerClient(conn).Partition(ctx, q)
			return err != nil || a.GetError() != nil
		}
	}
	stream := func(q *pluginv1.PartitionRequest) func(context.Context) bool {
		return func(ctx context.Context) bool {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			s, err := pluginv1.NewPartitionerClient(conn).PartitionStream(ctx)
			if err != nil {
				return true
			}
			_ = s.Send(q) // Recv says why it failed
			a, err := s.Recv()
			return err != nil || a.GetError() != nil
		}
	}
	two := &pluginv1.Column{Data: []byte("ab"), Sizes: []int32{1, 1}}
	return map[string]func(context.Context) bool{
		"a key longer than its column": partition(&pluginv1.PartitionRequest{Topic: "t", Partitions: 3, Keys: &pluginv1.Column{Data: []byte("a"), Sizes: []int32{1 << 30}}, Values: &pluginv1.Column{Sizes: []int32{-1}}}),
		"a size of -2":                 partition(&pluginv1.PartitionRequest{Topic: "t", Partitions: 3, Keys: &pluginv1.Column{Sizes: []int32{-2}}, Values: &pluginv1.Column{Sizes: []int32{-1}}}),
		"fewer values than keys":       partition(&pluginv1.PartitionRequest{Topic: "t", Partitions: 3, Keys: two, Values: &pluginv1.Column{Sizes: []int32{-1}}}),
		"headers that aren't there":    partition(&pluginv1.PartitionRequest{Topic: "t", Partitions: 3, Keys: two, Values: two, HeaderCounts: []uint32{1 << 31, 1}}),
		"a size of -2 on a stream":     stream(&pluginv1.PartitionRequest{Topic: "t", Partitions: 3, Keys: &pluginv1.Column{Sizes: []int32{-2}}, Values: &pluginv1.Column{Sizes: []int32{-1}}}),
		"no partitions on a stream":    stream(&pluginv1.PartitionRequest{Topic: "t", Keys: two, Values: two}),
		"no partitions":                partition(&pluginv1.PartitionRequest{Topic: "t", Keys: two, Values: two}),
		"a block that is none": func(ctx context.Context) bool {
			a, err := pluginv1.NewCompressionClient(conn).Decompress(ctx, &pluginv1.DecompressRequest{Data: []byte("no block at all, by no means"), Limit: 1 << 20})
			return err != nil || a.GetError() != nil
		},
		"an entry that is none": func(ctx context.Context) bool {
			a, err := pluginv1.NewOffsetsClient(conn).Write(ctx, &pluginv1.WriteRequest{Epoch: 1, Entries: []*pluginv1.Entry{{Key: []byte{0xff}}}})
			return err != nil || a.GetError() != nil
		},
	}
}

// kill and pause are what is done to a plug-in while it is used.
func kill(pid int) error  { return syscall.Kill(pid, syscall.SIGKILL) }
func pause(pid int) error { return syscall.Kill(pid, syscall.SIGSTOP) }

// comesBack does something to the process under use, and wants calls to fail in time and to work again.
func (c *checker) comesBack(ctx context.Context, what func(pid int) error) error {
	u, err := c.used(ctx, silent())
	if err != nil {
		return err
	}
	defer func() { _ = u.stop() }()
	if err := u.call(); err != nil {
		return err
	}
	_, _, pid := u.plugin.Describe()
	if err := what(pid); err != nil {
		return fmt.Errorf("signal to process %d: %w", pid, err)
	}
	deadline := time.Now().Add(4*c.CallTimeout + 2*c.StartTimeout)
	for {
		began := time.Now()
		err := u.call()
		if took := time.Since(began); took > c.CallTimeout+time.Second {
			return fmt.Errorf("a call took %s, its deadline was %s", took.Round(time.Millisecond), c.CallTimeout)
		}
		if _, _, now := u.plugin.Describe(); err == nil && now != pid && now != 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("it isn't back after %s: %w", time.Since(deadline.Add(-4*c.CallTimeout-2*c.StartTimeout)).Round(time.Second), err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
