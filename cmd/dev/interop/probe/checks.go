package probe

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// checker plays RoleChecks and RoleRead with one client.
type checker struct {
	args   Args
	client Client
	quirks Quirks
	files  []File
	out    *Lines
}

// check runs f under a deadline, reports it and returns whether it went well.
func (c *checker) check(ctx context.Context, name string, f func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r := Result{Client: c.args.Client, Version: c.client.Version(), Check: name, OK: true}
	if err := f(ctx); err != nil {
		r.OK, r.Detail = false, err.Error()
	}
	c.out.Put(r)
	return r.OK
}

func (c *checker) topic(name string) string { return c.args.Prefix + "-" + name }

func (c *checker) checks(ctx context.Context) {
	if !c.quirks.NoAdmin {
		c.check(ctx, "create", c.create)
		c.check(ctx, "delete", c.delete)
	}
	for _, codec := range c.args.Codecs {
		topic := c.topic(codec)
		wrote := c.check(ctx, "produce "+codec, func(ctx context.Context) error { return c.produce(ctx, topic, codec) })
		c.check(ctx, "consume from start "+codec, func(ctx context.Context) error {
			if !wrote {
				return errors.New("could not be written")
			}
			records, err := c.client.Consume(ctx, topic, FromStart, len(c.files))
			if err != nil {
				return err
			}
			return CompareAll(c.files, 0, records, !c.quirks.NoTimestamps)
		})
	}
	c.check(ctx, "consume from end", c.consumeEnd)
	c.check(ctx, "consume by timestamp", c.consumeTime)
	c.check(ctx, "commit and resume", c.resume)
}

func (c *checker) create(ctx context.Context) error {
	const partitions = 3
	topic := c.topic("created")
	if err := c.client.CreateTopic(ctx, topic, partitions); err != nil {
		return err
	}
	if n, err := c.client.Partitions(ctx, topic); err != nil || n != partitions {
		return fmt.Errorf("metadata shows %d partitions instead of %d (%w)", n, partitions, err)
	}
	if c.client.CreateTopic(ctx, topic, partitions) == nil {
		return errors.New("creating the topic again is no error")
	}
	for _, name := range append([]string{"end"}, c.args.Codecs...) {
		if err := c.client.CreateTopic(ctx, c.topic(name), 1); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) delete(ctx context.Context) error {
	topic := c.topic("deleted")
	if err := c.client.CreateTopic(ctx, topic, 1); err != nil {
		return err
	}
	if err := c.client.DeleteTopic(ctx, topic); err != nil {
		return err
	}
	if c.client.DeleteTopic(ctx, topic) == nil {
		return errors.New("deleting the topic again is no error")
	}
	return nil
}

func (c *checker) produce(ctx context.Context, topic, codec string) error {
	records := make([]Record, len(c.files))
	for i, f := range c.files {
		records[i] = f.Record()
	}
	first, err := c.client.Produce(ctx, topic, codec, records)
	if err == nil && first != 0 {
		err = fmt.Errorf("the first record got offset %d", first)
	}
	return err
}

// consumeEnd opens a consumer at the end and keeps writing markers until one arrives: where libraries look the end
// up is their own affair, what must not happen is that a record from before shows up.
func (c *checker) consumeEnd(ctx context.Context) error {
	topic := c.topic("end")
	old := []Record{{Value: []byte("old 1")}, {Value: []byte("old 2")}, {Value: []byte("old 3")}}
	if _, err := c.client.Produce(ctx, topic, "none", old); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-time.After(700 * time.Millisecond):
				if _, err := c.client.Produce(ctx, topic, "none", []Record{{Value: []byte("marker")}}); err != nil && ctx.Err() == nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	records, err := c.client.Consume(ctx, topic, FromEnd, 1)
	cancel()
	if perr := <-done; perr != nil {
		return perr
	}
	if err != nil {
		return err
	}
	if string(records[0].Value) != "marker" || records[0].Offset < int64(len(old)) {
		return fmt.Errorf("got %q at offset %d", records[0].Value, records[0].Offset)
	}
	return nil
}

func (c *checker) consumeTime(ctx context.Context) error {
	topic := c.topic(c.args.Codecs[0])
	middle := len(c.files) / 2
	times := make([]time.Time, len(c.files))
	for i, f := range c.files {
		times[i] = f.Time
	}
	if c.quirks.NoTimestamps { // the library's own stamps: many records may share one
		records, err := c.client.Consume(ctx, topic, FromStart, len(c.files))
		if err != nil {
			return err
		}
		for i, r := range records {
			times[i] = r.Time
		}
		for middle > 0 && times[middle-1].Equal(times[middle]) {
			middle--
		}
	}
	for _, t := range []struct {
		at   time.Time
		want int64
	}{
		{times[0].Add(-time.Hour), 0},
		{times[middle], int64(middle)},
		{times[len(times)-1].Add(time.Hour), NoOffset},
	} {
		got, err := c.client.OffsetAt(ctx, topic, t.at)
		if err != nil {
			return err
		}
		if got != t.want {
			return fmt.Errorf("timestamp %d is at offset %d instead of %d", t.at.UnixMilli(), got, t.want)
		}
	}
	records, err := c.client.Consume(ctx, topic, int64(middle), len(c.files)-middle)
	if err != nil {
		return err
	}
	return CompareAll(c.files, middle, records, !c.quirks.NoTimestamps)
}

func (c *checker) resume(ctx context.Context) error {
	topic, group := c.topic(c.args.Codecs[0]), c.topic("resume")
	half := len(c.files) / 2
	records, err := c.client.GroupRead(ctx, group, topic, half)
	if err != nil {
		return fmt.Errorf("first half: %w", err)
	}
	if err := CompareAll(c.files[:half], 0, records, false); err != nil {
		return fmt.Errorf("first half: %w", err)
	}
	records, err = c.client.GroupRead(ctx, group, topic, len(c.files)-half)
	if err != nil {
		return fmt.Errorf("second half: %w", err)
	}
	if err := CompareAll(c.files, half, records, false); err != nil {
		return fmt.Errorf("second half: %w", err)
	}
	return nil
}

func (c *checker) read(ctx context.Context) {
	for _, w := range c.args.Topics {
		c.check(ctx, "read "+w.Codec+" from "+w.Client, func(ctx context.Context) error {
			records, err := c.client.Consume(ctx, w.Topic, FromStart, len(c.files))
			if err != nil {
				return err
			}
			return CompareAll(c.files, 0, records, false)
		})
	}
}
