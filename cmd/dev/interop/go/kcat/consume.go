package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/dev/interop/probe"
)

// format is how kcat is to print a record: its numbers and the lengths on one line, then key and value.
const format = `%p %o %T %K %S\n%k%s\n`

// next reads one record of that format, and its partition.
func next(r *bufio.Reader) (probe.Record, int32, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return probe.Record{}, 0, err
	}
	var partition int32
	var offset, ms int64
	var key, value int
	if _, err := fmt.Sscanf(line, "%d %d %d %d %d", &partition, &offset, &ms, &key, &value); err != nil {
		return probe.Record{}, 0, fmt.Errorf("kcat prints %q: %w", line, err)
	}
	body := make([]byte, max(key, 0)+max(value, 0)+1) // a length of -1 is null
	if _, err := io.ReadFull(r, body); err != nil {
		return probe.Record{}, 0, err
	}
	return probe.Record{Key: body[:max(key, 0)], Value: body[max(key, 0) : len(body)-1], Time: time.UnixMilli(ms), Offset: offset}, partition, nil
}

// read runs a consuming kcat until it has given n records.
func read(cmd *exec.Cmd, n int) ([]probe.Record, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var records []probe.Record
	buffered := bufio.NewReader(out)
	for len(records) < n {
		r, _, err := next(buffered)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("after %d of %d records: %w", len(records), n, err), cmd.Wait())
		}
		records = append(records, r)
	}
	return records, cmd.Wait()
}

func (k *kcat) Consume(ctx context.Context, topic string, from int64, n int) ([]probe.Record, error) {
	offset := strconv.FormatInt(from, 10)
	switch from {
	case probe.FromStart:
		offset = "beginning"
	case probe.FromEnd:
		offset = "end"
	}
	return read(k.command(ctx, "-C", "-q", "-t", topic, "-p", "0", "-o", offset, "-c", strconv.Itoa(n), "-f", format), n)
}

func (k *kcat) OffsetAt(ctx context.Context, topic string, at time.Time) (int64, error) {
	return k.query(ctx, topic, at.UnixMilli())
}

// GroupRead leaves the committing to kcat: it stores what it has printed and commits that when it ends.
func (k *kcat) GroupRead(ctx context.Context, group, topic string, n int) ([]probe.Record, error) {
	return read(k.command(ctx, "-q", "-c", strconv.Itoa(n), "-f", format, "-X", "auto.offset.reset=earliest", "-G", group, topic), n)
}

// Member ends with kcat's own clean stop, which commits what was printed.
func (k *kcat) Member(ctx context.Context, group, topic string, tell func(probe.Event)) error {
	// -E: it would end when its other connections were just lost and not made anew yet, as the next broker goes down.
	cmd := exec.Command(k.path, "-b", k.bootstrap, "-u", "-E", "-f", format, "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000",
		"-X", "heartbeat.interval.ms=1000", "-X", "auto.commit.interval.ms=200", "-G", group, topic)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	notes, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	done := make(chan struct{})
	go func() { // ends with kcat
		defer close(done)
		assignments(notes, tell)
	}()
	records := bufio.NewReader(out)
	for {
		r, partition, err := next(records)
		if err != nil {
			break // kcat has ended
		}
		tell(probe.Event{Event: probe.EventRecord, Partition: partition, Offset: r.Offset, Value: string(r.Value)})
	}
	<-done
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// assignments reads kcat's notes: "% Group g rebalanced (memberid m): assigned: t [0], t [1]", or "revoked: …".
func assignments(notes io.Reader, tell func(probe.Event)) {
	rebalanced := regexp.MustCompile(`rebalanced \(memberid .*\): (assigned|revoked):`)
	partition := regexp.MustCompile(` \[(\d+)\]`)
	lines := bufio.NewScanner(notes)
	for lines.Scan() {
		found := rebalanced.FindStringSubmatch(lines.Text())
		if found == nil {
			continue
		}
		var owned []int32
		if found[1] == "assigned" { // kcat's assignors are the eager ones: a revocation takes everything
			for _, p := range partition.FindAllStringSubmatch(lines.Text(), -1) {
				n, _ := strconv.ParseInt(p[1], 10, 32)
				owned = append(owned, int32(n))
			}
		}
		tell(probe.Event{Event: probe.EventAssigned, Partitions: owned})
	}
}
