package verify

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// Options say what to verify, and how hard. Zero values are the defaults of their fields.
type Options struct {
	Bootstrap []string     // brokers to ask first, HOST:PORT
	Client    []kgo.Opt    // for every client: TLS, SASL, another dialer
	Say       func(string) // told about what lasts; may be nil

	// Topic is the topic to write to. When there is none of that name it is made, and with "" one is made for the run. One
	// that was there may have other writers: their records are passed over.
	Topic       string
	Partitions  int32             // of a topic that is made; default 6
	Replication int16             // of a topic that is made; default 3, or as many as there are brokers
	MinInSync   int               // min.insync.replicas of a topic that is made; default 2, or 1 when there is one replica
	Configs     map[string]string // further ones of a topic that is made
	Keep        bool              // whether a topic that was made stays when the run ends

	Producers    int           // default 3
	Records      int64         // the producers end after so many in all, or else when Duration is over
	Duration     time.Duration // 0 and no Records: they go on until Finish
	Rate         int           // records a second in all; 0 is as many as there may be
	RecordSize   int           // bytes of a value; default 200
	Transactions bool          // whether producers write in transactions, of which every fifth is aborted

	EveryLeader bool          // at the end, make each replica of each partition its leader once, and read it as such
	Patience    time.Duration // how long an answer may be outstanding, or a replica behind, when the producers have ended; default 1 minute
	Tolerate    []history.Kind
}

// Bounds of what Options may say.
const (
	leastRecordSize = 100
	mostRecordSize  = 512 << 10
	mostProducers   = 1000
)

// Check says what is wrong with the options, all at once.
func (o Options) Check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(o.Bootstrap) == 0 {
		wrong("no broker to ask first")
	}
	for name, n := range map[string]int64{
		"partitions": int64(o.Partitions), "replication factor": int64(o.Replication), "min.insync.replicas": int64(o.MinInSync), "producers": int64(o.Producers),
		"records": o.Records, "duration": int64(o.Duration), "rate": int64(o.Rate), "patience": int64(o.Patience),
	} {
		if n < 0 {
			wrong("%s: %d is less than nothing", name, n)
		}
	}
	if o.Producers > mostProducers {
		wrong("producers: at most %d, not %d", mostProducers, o.Producers)
	}
	if o.RecordSize != 0 && (o.RecordSize < leastRecordSize || o.RecordSize > mostRecordSize) {
		wrong("record size: %d to %d bytes, not %d", leastRecordSize, mostRecordSize, o.RecordSize)
	}
	for _, kind := range o.Tolerate {
		if !slices.Contains(history.Kinds(), kind) {
			wrong("no kind of fault is called %q; there are %v", kind, history.Kinds())
		}
	}
	return errors.Join(errs...)
}

// withDefaults fills in what is zero. Brokers is how many there are.
func (o Options) withDefaults(brokers int) Options {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&o.Producers, 3)
	fill(&o.RecordSize, 200)
	if o.Partitions == 0 {
		o.Partitions = 6
	}
	if o.Replication == 0 {
		o.Replication = int16(min(3, brokers))
	}
	fill(&o.MinInSync, min(2, int(o.Replication)))
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	return o
}

// client makes a client with options on top of those that all have.
func (o Options) client(more ...kgo.Opt) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(o.Bootstrap...), kgo.ClientID("barnabas-verify"),
		// A broker that dies or hangs is found out about soon, and so is the next leader.
		kgo.DialTimeout(3 * time.Second), kgo.RequestTimeoutOverhead(5 * time.Second), kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(2 * time.Second),
		kgo.RetryBackoffFn(func(tries int) time.Duration {
			return min(time.Duration(tries)*50*time.Millisecond, 500*time.Millisecond)
		}),
	}
	return kgo.NewClient(append(append(options, o.Client...), more...)...)
}
