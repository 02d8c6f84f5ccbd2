package verify

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// Run is a run that goes on. Its methods may be called from any goroutine, Finish once.
type Run struct {
	options Options
	cluster *cluster
	topic   string
	name    string // of the run, in its records
	made    bool   // whether the topic was made for it
	started time.Time

	book    *book
	pace    *pace
	readers []*reader

	stop     chan struct{} // closed when the producers are to end
	stopped  sync.Once
	produced chan struct{}      // closed when they have ended
	cancel   context.CancelFunc // ends the producers, answered or not
	endReads context.CancelFunc // ends readers and the asking for ends
	watching chan struct{}      // closed when nobody asks for ends any more
	closed   sync.Once
}

// Verify makes a whole run. ctx ends it early, without a report.
func Verify(ctx context.Context, o Options, progress func(Progress)) (*Report, error) {
	r, err := Start(ctx, o)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if progress != nil {
				progress(r.Progress())
			}
			continue
		case <-ctx.Done():
		case <-r.Produced():
		}
		return r.Finish(ctx)
	}
}

// Start makes the topic, if need be, and starts producers and readers. ctx bounds only the start. Finish must be called after.
func Start(ctx context.Context, o Options) (*Run, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	client, err := o.client()
	if err != nil {
		return nil, err
	}
	r := &Run{cluster: &cluster{client, kadm.NewClient(client)}, started: time.Now(), stop: make(chan struct{}), produced: make(chan struct{}), watching: make(chan struct{})}
	r.name = strconv.FormatInt(r.started.UnixMicro(), 36)
	if err := r.begin(ctx, o); err != nil {
		client.Close()
		return nil, err
	}
	return r, nil
}

func (r *Run) begin(ctx context.Context, o Options) error {
	brokers, err := r.cluster.brokers(ctx)
	if err != nil {
		return err
	}
	r.options = o.withDefaults(brokers)
	r.topic = o.Topic
	if r.topic == "" {
		r.topic = "barnabas-verify-" + r.name
	}
	if r.made, err = r.cluster.makeTopic(ctx, r.topic, r.options); err != nil {
		return err
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.pace = &pace{rate: r.options.Rate, most: r.options.Records}
	if o.Duration > 0 {
		r.pace.until = time.Now().Add(o.Duration)
	}
	return r.launch(context.WithoutCancel(ctx))
}

// prepare waits for the topic's leaders, and opens the book at the partitions' ends.
func (r *Run) prepare(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, r.options.Patience)
	defer cancel()
	l, err := r.cluster.settled(patient, r.topic)
	if err != nil {
		return err
	}
	r.book = newBook(len(l.partitions))
	for {
		ends := r.cluster.ends(patient, r.topic)
		if len(ends) == len(l.partitions) {
			for i := range l.partitions {
				r.book.pages[i].Start = ends[int32(i)]
			}
			return nil
		}
		if err := wait(patient, 100*time.Millisecond); err != nil {
			return fmt.Errorf("only %d of the %d partitions of %s told their end: %w", len(ends), len(l.partitions), r.topic, err)
		}
	}
}

// launch starts readers and producers. They end through Finish.
func (r *Run) launch(ctx context.Context) error {
	reading, endReads := context.WithCancel(ctx)
	r.endReads = endReads
	for _, committed := range []bool{false, true} {
		if committed && !r.options.Transactions {
			continue
		}
		rd, err := r.startReader(reading, committed)
		if err != nil {
			endReads()
			return err
		}
		r.readers = append(r.readers, rd)
	}
	go func() {
		defer close(r.watching)
		r.watchEnds(reading)
	}()
	producing, cancel := context.WithCancel(ctx)
	r.cancel = cancel
	var producers sync.WaitGroup
	for i := range r.options.Producers {
		producers.Go(func() { (&producer{r, i}).work(producing) })
	}
	go func() {
		producers.Wait()
		close(r.produced)
	}()
	return nil
}

// askEvery is the time between questions for the partitions' ends.
const askEvery = 100 * time.Millisecond

// watchEnds asks for the partitions' ends, over and over.
func (r *Run) watchEnds(ctx context.Context) {
	for wait(ctx, askEvery) == nil {
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		asked := r.book.now()
		ends := r.cluster.ends(asking, r.topic)
		cancel()
		told := r.book.now()
		for partition, end := range ends {
			if int(partition) < len(r.book.pages) {
				r.book.end(partition, history.End{Asked: asked, Told: told, Offset: end})
			}
		}
	}
}

// Topic is the topic that is written to.
func (r *Run) Topic() string { return r.topic }

// Produced is closed when the producers have ended by themselves: all records written, or the time over.
func (r *Run) Produced() <-chan struct{} { return r.produced }

// Acknowledged is how many records were acknowledged so far.
func (r *Run) Acknowledged() int64 {
	_, acked := r.book.counts()
	return acked
}

// Finish ends the producers, waits for what they still have to be told, reads everything and judges. The run is over then,
// whatever it returns: no goroutine is left, and a topic that was made is deleted unless it is to be kept. An error says
// that there is no judgement.
func (r *Run) Finish(ctx context.Context) (*Report, error) {
	r.stopped.Do(func() { close(r.stop) })
	report, err := r.finish(ctx)
	r.close()
	if r.made && !r.options.Keep {
		deleting, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		if _, e := r.cluster.admin.DeleteTopic(deleting, r.topic); e != nil {
			r.options.Say(fmt.Sprintf("topic %s was not deleted: %v", r.topic, e))
		}
	}
	r.cluster.client.Close()
	return report, err
}

func (r *Run) finish(ctx context.Context) (*Report, error) {
	r.options.Say("waiting for the last acknowledgements")
	patience := time.NewTimer(r.options.Patience)
	defer patience.Stop()
	select {
	case <-r.produced:
	case <-patience.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.cancel()
	<-r.produced
	unread, err := r.readAll(ctx)
	if err != nil {
		return nil, err
	}
	r.close()
	r.options.Say("judging")
	return r.report(unread), ctx.Err()
}

// close ends all goroutines, and takes what readers saw into the book. It may be called again.
func (r *Run) close() {
	r.closed.Do(func() {
		r.cancel()
		r.endReads()
		<-r.produced
		<-r.watching
		for _, rd := range r.readers {
			rd.finish()
		}
	})
}

// Progress is how far a run is.
type Progress struct {
	Sent, Acknowledged, Read int64
	Elapsed                  time.Duration
}

// Progress says how far the run is.
func (r *Run) Progress() Progress {
	p := Progress{Elapsed: r.book.now()}
	p.Sent, p.Acknowledged = r.book.counts()
	for i, page := range r.book.pages {
		p.Read += r.readers[0].position[i].Load() - page.Start
	}
	return p
}
