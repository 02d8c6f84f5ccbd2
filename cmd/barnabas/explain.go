package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/broker/adminhttp"
)

// watched are the admin servers of brokers that a command asks, and how patiently.
type watched struct {
	admin   []string
	timeout time.Duration
}

func (w *watched) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&w.admin, "admin", []string{adminhttp.DefaultOptions().Listen}, "admin servers of brokers, HOST:PORT, comma separated (key `admin` of their configuration)")
	cmd.Flags().DurationVar(&w.timeout, "timeout", 10*time.Second, "how long to wait for each broker's answer")
}

// check finds what is wrong with the flags.
func (w *watched) check() error {
	if w.timeout <= 0 {
		return wrong(fmt.Errorf("--timeout: want a positive duration, not %s", w.timeout))
	}
	if len(w.admin) == 0 {
		return wrong(errors.New("--admin: want HOST:PORT"))
	}
	for _, address := range w.admin {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return wrong(fmt.Errorf("--admin: want HOST:PORT, not %q", address))
		}
	}
	return nil
}

// maxAnswer bounds what is read of a broker's answer: its whole journal is a few MB.
const maxAnswer = 32 << 20

// get asks one admin server, and gives the status and the body of its answer.
func (w *watched) get(ctx context.Context, address, path string, query url.Values) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	at := url.URL{Scheme: "http", Host: address, Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Accept", "application/json")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return 0, nil, fmt.Errorf("no admin server listens at %s: start the broker, give it the key `admin: {}`, or name another address with --admin: %w", address, err)
	case err != nil:
		return 0, nil, fmt.Errorf("no answer from the admin server at %s: %w", address, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, nil, fmt.Errorf("the answer of %s breaks off: %w", address, err)
	}
	return resp.StatusCode, body, nil
}

// explanation is what a broker answers to why.
type explanation struct {
	About    string           `json:"about"`
	Broker   int32            `json:"broker"`
	At       time.Time        `json:"at"`
	Summary  string           `json:"summary"`
	Findings []finding        `json:"findings"`
	Ask      []asked          `json:"ask"`
	State    json.RawMessage  `json:"state,omitempty"`
	Events   []rememberedFact `json:"events"`
}

type finding struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

type asked struct {
	Broker int32  `json:"broker"`
	Why    string `json:"why"`
}

// rememberedFact is an event of a broker's journal.
type rememberedFact struct {
	Seq   uint64          `json:"seq"`
	At    time.Time       `json:"at"`
	Kind  string          `json:"kind"`
	About string          `json:"about"`
	Text  string          `json:"text"`
	Facts json.RawMessage `json:"facts"`
}

func newExplain(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Tell why a group rebalances, a partition is under-replicated, or a broker isn't ready",
		Long: `Asks brokers why things are as they are. A broker explains from what is true now and from what it remembers, which is what happened
lately and since it started.

Brokers are asked at their admin servers (key ` + "`admin`" + ` of the configuration), each for what it knows itself: the coordinator of a group
knows its members, the leader of a partition how far its followers are, and the controller why it chose the leader. An answer says
who else knows more; --admin takes several addresses.`,
	}
	cmd.AddCommand(
		newExplainOne(a, "group GROUP", "Tell who caused a group's last rebalances, which timeout passed, and who was late",
			"  barnabas explain group audit\n  barnabas explain group audit --admin b1:9644,b2:9644,b3:9644", "/explain/group", "GROUP"),
		newExplainOne(a, "partition TOPIC-PARTITION", "Tell why a partition is under-replicated, and why its leader is who it is",
			"  barnabas explain partition orders-3\n  barnabas explain partition orders-3 --output json", "/explain/partition", "TOPIC-PARTITION"),
		newExplainOne(a, "broker", "Tell why a broker isn't ready, or what is worth a look though it is",
			"  barnabas explain broker\n  barnabas explain broker --admin b1:9644", "/explain/broker"),
	)
	return cmd
}

// newExplainOne makes the command for one kind of subject, whose name is the argument, if it has one.
func newExplainOne(a *app, use, short, example, path string, names ...string) *cobra.Command {
	var at watched
	var out output
	var events bool
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: exactly(names...),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(out.check(), at.check()); err != nil {
				return err
			}
			query := url.Values{}
			if len(args) > 0 {
				query.Set("name", args[0])
			}
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			list, failures := at.ask(ctx, path, query)
			if len(list) == 0 {
				return errors.Join(failures...)
			}
			err := out.print(a, list, func() { a.printExplanations(telling(list), events) })
			return errors.Join(append(failures, err)...)
		},
	}
	at.flags(cmd)
	out.flags(cmd)
	cmd.Flags().BoolVar(&events, "events", false, "show all that the broker remembers of it, too (--output json and yaml always do)")
	return cmd
}

// ask asks all brokers, in their order.
func (w *watched) ask(ctx context.Context, path string, query url.Values) (list []explanation, failures []error) {
	for _, address := range w.admin {
		status, body, err := w.get(ctx, address, path, query)
		if err == nil && status != http.StatusOK {
			err = refusal(address, status, body)
		}
		var e explanation
		if err == nil {
			if err = json.Unmarshal(body, &e); err != nil {
				err = fmt.Errorf("what listens at %s is no admin server of a broker: %w", address, err)
			}
		}
		if err != nil {
			failures = append(failures, err)
			continue
		}
		list = append(list, e)
	}
	return list, failures
}

// refusal is the error that an admin server answered with.
func refusal(address string, status int, body []byte) error {
	var e adminhttp.Error
	if json.Unmarshal(body, &e) != nil || e.Message == "" {
		e.Message = http.StatusText(status)
	}
	err := fmt.Errorf("%s: %s", address, e.Message)
	if status == http.StatusBadRequest {
		return wrong(err)
	}
	return err
}

// telling leaves out the brokers that only say who knows more, when those who do were asked, too.
func telling(list []explanation) []explanation {
	if some := slices.DeleteFunc(slices.Clone(list), func(e explanation) bool { return len(e.State) == 0 }); len(some) > 0 {
		return some
	}
	return list
}

func (a *app) printExplanations(list []explanation, events bool) {
	answered := map[int32]bool{}
	for _, e := range list {
		answered[e.Broker] = true
	}
	for i, e := range list {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "%s, as broker %d sees it: %s\n", e.About, e.Broker, e.Summary)
		for _, f := range e.Findings {
			fmt.Fprintf(a.out, "  - %s\n", f.Text)
		}
		if events {
			fmt.Fprintln(a.out, "  remembered:")
			for _, ev := range e.Events {
				fmt.Fprintf(a.out, "    %s  %s\n", ev.At.Local().Format(time.DateTime+".000"), strings.TrimSpace(ev.Text))
			}
		}
		for _, ask := range e.Ask {
			if !answered[ask.Broker] {
				fmt.Fprintf(a.out, "  broker %d knows more: %s (--admin asks several)\n", ask.Broker, ask.Why)
			}
		}
	}
}
