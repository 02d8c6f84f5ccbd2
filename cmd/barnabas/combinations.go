package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/barnabas-mq/barnabas/core/config"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/plugin"
)

// together is a composition on which values that are fine one by one are looked at together.
type together struct {
	root   config.Section
	c      *composition
	layers kafka.Layers
}

// combinations warns of values that together don't do what they seem to. Only what somebody wrote is warned of.
func combinations(root config.Section, c *composition) []string {
	t := together{root, c, c.layers}
	var warnings []string
	for _, check := range []func() (key, why string){
		t.shadowedDirectory,
		t.tooFewReplicas,
		t.tooFewReplicasOfTransactions,
		t.unclean,
		t.retentionBelowSegment,
		t.retentionBelowCheck,
		t.batchAboveRequest,
		t.compactedWithoutCleaner,
		t.advertisedLoopback,
		t.forgottenOffsets,
	} {
		if key, why := check(); why != "" {
			warnings = append(warnings, t.warn(key, why))
		}
	}
	for _, family := range [][]string{
		{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
		{"log.roll.ms", "log.roll.hours"},
		{"log.roll.jitter.ms", "log.roll.jitter.hours"},
	} {
		warnings = append(warnings, t.shadowedUnits(family)...)
	}
	return append(warnings, t.shadowedProperties()...)
}

// warn puts the place of a property, or of a role, in front of a warning.
func (t together) warn(name, why string) string {
	sub, isRole := t.root.Sub(name)
	if !isRole {
		broker, _ := t.root.Sub("broker")
		sub, _ = broker.Sub(name)
	}
	return (&config.Error{File: sub.File(), Line: sub.Line(), Path: sub.Path(), Err: errors.New(why)}).Error()
}

// given says whether somebody wrote a property.
func (t together) given(name string) bool {
	_, ok := t.layers.Static[name]
	return ok
}

// first gives the first of properties that somebody wrote, "" when there is none.
func (t together) first(names ...string) string {
	if at := slices.IndexFunc(names, t.given); at >= 0 {
		return names[at]
	}
	return ""
}

func (t together) text(name string) string {
	value, _, _ := t.layers.Get(name)
	return value
}

// number is 0 for what is unset.
func (t together) number(name string) int64 {
	n, _ := strconv.ParseInt(t.text(name), 10, 64)
	return n
}

func (t together) shadowedUnits(family []string) (warnings []string) {
	wins := t.first(family...)
	for _, name := range family {
		if name != wins && t.given(name) {
			warnings = append(warnings, t.warn(name, "has no effect: "+wins+" is set, and the smallest unit wins"))
		}
	}
	return warnings
}

func (t together) shadowedDirectory() (key, why string) {
	if t.given("log.dirs") && t.given("log.dir") {
		return "log.dir", "has no effect: log.dirs is set"
	}
	return "", ""
}

// shadowedProperties finds properties of the coordination that its own options go over, such as zookeeper.connect.
func (t together) shadowedProperties() (warnings []string) {
	name, options, ok := electionOptions(t.root)
	if !ok {
		return nil
	}
	for option, property := range map[string]string{"connect": "connect", "session_timeout": "session.timeout.ms", "connection_timeout": "connection.timeout.ms"} {
		if _, there := options.Sub(option); there && t.given(name+"."+property) {
			warnings = append(warnings, t.warn(name+"."+property, "has no effect: "+options.Path()+"."+option+" is set"))
		}
	}
	slices.Sort(warnings)
	return warnings
}

func (t together) tooFewReplicas() (key, why string) {
	replicas, needed := t.number("default.replication.factor"), t.number("min.insync.replicas")
	if key = t.first("min.insync.replicas", "default.replication.factor"); key == "" || needed <= replicas {
		return "", ""
	}
	return key, fmt.Sprintf("topics with the default of %d replicas take no writes with acks=all, for min.insync.replicas is %d", replicas, needed)
}

func (t together) tooFewReplicasOfTransactions() (key, why string) {
	const replicas, needed = "transaction.state.log.replication.factor", "transaction.state.log.min.isr"
	if key = t.first(needed, replicas); key == "" || t.number(needed) <= t.number(replicas) {
		return "", ""
	}
	return key, fmt.Sprintf("transactions can't be written: %s is %d, and %s %d", replicas, t.number(replicas), needed, t.number(needed))
}

func (t together) unclean() (key, why string) {
	if key = "unclean.leader.election.enable"; t.text(key) == "true" && t.number("min.insync.replicas") > 1 {
		return key, "records that min.insync.replicas protected may be lost: a replica that isn't in sync may become leader"
	}
	return "", ""
}

func (t together) retentionBelowSegment() (key, why string) {
	if key = t.first("log.retention.bytes", "log.segment.bytes"); key == "" {
		return "", ""
	}
	if keep, segment := t.number("log.retention.bytes"), t.number("log.segment.bytes"); keep >= 0 && keep < segment {
		return key, fmt.Sprintf("a partition keeps more than log.retention.bytes (%d): only whole segments are deleted, and log.segment.bytes is %d", keep, segment)
	}
	return "", ""
}

func (t together) retentionBelowCheck() (key, why string) {
	const check = "log.retention.check.interval.ms"
	key = t.first("log.retention.ms", "log.retention.minutes", "log.retention.hours")
	if key == "" {
		return "", ""
	}
	unit := map[string]time.Duration{"log.retention.ms": time.Millisecond, "log.retention.minutes": time.Minute, "log.retention.hours": time.Hour}[key]
	// Above a day nobody minds when, and the product can't overflow.
	keep := t.number(key)
	if keep <= 0 || keep > int64(24*time.Hour/unit) {
		return "", ""
	}
	if every := time.Duration(t.number(check)) * time.Millisecond; time.Duration(keep)*unit < every {
		return key, fmt.Sprintf("records stay longer than that: %s looks for old ones every %s only", check, every)
	}
	return "", ""
}

func (t together) batchAboveRequest() (key, why string) {
	const batch, request = "message.max.bytes", "socket.request.max.bytes"
	if key = t.first(batch, request); key == "" || t.number(batch) <= t.number(request) {
		return "", ""
	}
	return key, fmt.Sprintf("no batch of %s (%d) comes through, for a request has at most %s (%d)", batch, t.number(batch), request, t.number(request))
}

func (t together) compactedWithoutCleaner() (key, why string) {
	if key = "log.cleaner.enable"; t.text(key) == "false" {
		return key, "compacted topics grow for ever, that of consumers' offsets among them"
	}
	return "", ""
}

// advertisedLoopback finds listeners for other machines whose clients are sent to themselves.
func (t together) advertisedLoopback() (key, why string) {
	for _, a := range t.c.broker.Advertised {
		at := slices.IndexFunc(t.c.broker.Listeners, func(l kafka.Listener) bool { return l.Name == a.Name })
		if at >= 0 && loopback(a.Host) && !loopback(t.c.broker.Listeners[at].Host) {
			return "advertised.listeners", fmt.Sprintf("clients on other machines are told %s, which is themselves", a.Host)
		}
	}
	return "", ""
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// forgottenOffsets finds a cluster whose brokers keep groups' offsets each for itself.
func (t together) forgottenOffsets() (key, why string) {
	if t.c.alone || t.c.offsets.Name() != "memory" {
		return "", ""
	}
	return "offsets", "memory: groups begin anew whenever another broker coordinates them"
}

// tryElection makes the coordination, to see whether it can be made of its options and the broker's properties together, and whether
// it ever has other members. What is made is never started, and so is felt nowhere (plugin.Component, 1).
func (c *composition) tryElection() error {
	made, err := c.election.New(election.Settings{
		Settings:   plugin.Settings{Logger: slog.New(slog.DiscardHandler)},
		DataDir:    c.broker.LogDirs[0],
		Properties: c.layers.Static,
	})
	_, c.alone = made.(election.Solitary)
	return err
}

// clashes refuses addresses on which what serves HTTP would listen, and the broker, or the other, as well.
func (c *composition) clashes(root config.Section) error {
	var gateway, admin string
	var errs []error
	if c.gateway != nil {
		gateway = optionOf(c.gatewayMade.Effective(*c.gateway), "listen")
		errs = append(errs, c.clash(*c.gateway, gateway))
	}
	if c.admin != nil {
		section, _ := root.Sub(adminKey)
		admin = c.admin.Listen
		errs = append(errs, c.clash(section, admin))
		if _, port, err := net.SplitHostPort(admin); admin == gateway && err == nil && port != "0" {
			errs = append(errs, section.Wrap(config.At("listen", fmt.Errorf("%s is taken by the %s", admin, gatewayKey))))
		}
	}
	return config.Join(errs...)
}

// clash refuses the address of what serves HTTP when a listener of the broker has it.
func (c *composition) clash(key config.Section, address string) error {
	host, port, err := net.SplitHostPort(address)
	if wrong := err != nil; wrong || port == "0" { // its own check has said so; or any free one will do
		port = ""
	}
	for _, l := range c.broker.Listeners {
		if strconv.Itoa(int(l.Port)) == port && (l.Host == host || everywhere(l.Host) || everywhere(host)) {
			return key.Wrap(config.At("listen", fmt.Errorf("%s is taken by the listener %s", address, l)))
		}
	}
	return nil
}

// everywhere tells the hosts that stand for all addresses of a machine.
func everywhere(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}
