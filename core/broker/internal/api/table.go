package api

import (
	"context"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/meter"
	"github.com/barnabas-mq/barnabas/core/broker/internal/wire"
)

// Handlers lists what the broker serves: every key, with its range of versions and its handler. A room that d does not
// have (nil) has no rows, and so isn't advertised either.
func Handlers(d Deps) *Table {
	h := newHandlers(d)
	t := &Table{interBroker: d.InterBroker, ready: d.Ready, meter: h.Meter}
	t.add(kmsg.ApiVersions, 0, 4, func(ctx context.Context, r *Request) Reply { return h.apiVersions(t, r) })
	if d.Partitions != nil {
		t.addRaw(kmsg.Produce, 0, 13, h.produce)
		t.addRaw(kmsg.Fetch, 0, 18, h.fetch)
		t.add(kmsg.ListOffsets, 0, 11, h.listOffsets)
		t.add(kmsg.DeleteRecords, 0, 2, h.deleteRecords)
		t.add(kmsg.OffsetForLeaderEpoch, 0, 4, h.offsetForLeaderEpoch)
	}
	if d.Cluster != nil {
		t.add(kmsg.Metadata, 0, 13, h.metadata)
		t.add(kmsg.CreateTopics, 0, 7, h.createTopics)
		t.add(kmsg.DeleteTopics, 0, 6, h.deleteTopics)
		t.add(kmsg.DescribeConfigs, 0, 4, h.describeConfigs)
		t.add(kmsg.AlterConfigs, 0, 2, h.alterConfigs)
		t.add(kmsg.CreatePartitions, 0, 3, h.createPartitions)
		t.add(kmsg.ElectLeaders, 0, 2, h.electLeaders)
		t.add(kmsg.IncrementalAlterConfigs, 0, 1, h.incrementalAlterConfigs)
		t.add(kmsg.AlterPartitionAssignments, 0, 1, h.alterPartitionAssignments)
		t.add(kmsg.ListPartitionReassignments, 0, 0, h.listPartitionReassignments)
		t.add(kmsg.DescribeCluster, 0, 2, h.describeCluster)
		t.add(kmsg.DescribeTopicPartitions, 0, 0, h.describeTopicPartitions)
	}
	if d.Cluster != nil && d.Partitions != nil {
		t.add(kmsg.DescribeProducers, 0, 0, h.describeProducers)
	}
	if d.LogDirs != nil {
		t.add(kmsg.AlterReplicaLogDirs, 0, 2, h.alterReplicaLogDirs)
		t.add(kmsg.DescribeLogDirs, 0, 5, h.describeLogDirs)
	}
	if d.Groups != nil && d.Cluster != nil {
		h.addGroups(t)
	}
	if d.Transactions != nil && d.Groups != nil && d.Cluster != nil {
		h.addTransactions(t)
	}
	if d.ProducerIDs != nil {
		t.add(kmsg.InitProducerID, 0, 5, h.initProducerID)
	}
	h.addControl(t)
	return t
}

// Table says for each key which versions are served, and by whom. It does not change once it is made.
type Table struct {
	rows [128]*row

	interBroker string          // the listener that brokers use among themselves
	ready       <-chan struct{} // closed when clients are to be answered; nil: at once
	meter       *meter.Requests
	// large lets one oversized body be decoded at a time.
	large sync.Mutex
	// requests are those of handlers that decode bodies themselves, to be used again.
	requests sync.Pool
}

type row struct {
	min, max int16
	flexible int16 // the first flexible version
	maxBody  int   // bytes
	raw      bool  // the handler decodes the body
	between  bool  // only brokers send it
	handler  Handler
	codes    *codePlaces // of the response, for those that kmsg encodes
}

// Range is what ApiVersions says about a key.
type Range struct{ Key, Min, Max int16 }

const (
	// ordinaryBody is the largest body of a request that kmsg decodes. What kmsg makes of a body may be some thirty times as
	// large as the body: without a bound a single frame of 100 MiB could take all memory.
	ordinaryBody = 4 << 20
	// groupBody is the same for requests which carry what members of a group say to one another, for a whole group.
	groupBody = 16 << 20
	// largeBody is from where on only one body is decoded at a time.
	largeBody = 256 << 10
)

// add puts a request that kmsg decodes into the table.
func (t *Table) add(key kmsg.Key, min, max int16, h Handler) {
	limit := ordinaryBody
	if key == kmsg.JoinGroup || key == kmsg.SyncGroup {
		limit = groupBody
	}
	t.put(key, &row{min: min, max: max, maxBody: limit, handler: h})
}

// addRaw puts a request into the table whose handler decodes the body itself.
func (t *Table) addRaw(key kmsg.Key, min, max int16, h Handler) {
	t.put(key, &row{min: min, max: max, raw: true, handler: h})
}

func (t *Table) put(key kmsg.Key, r *row) {
	req := kmsg.RequestForKey(key.Int16())
	if req == nil || t.rows[key] != nil || r.min > r.max || r.max > req.MaxVersion() {
		panic(fmt.Sprintf("api: row for %s cannot be served", key.Name()))
	}
	r.flexible = req.MaxVersion() + 1
	for v := req.MaxVersion(); v >= 0; v-- {
		if req.SetVersion(v); req.IsFlexible() {
			r.flexible = v
		}
	}
	if !r.raw {
		r.codes = findCodes(reflect.TypeOf(req.ResponseKind()).Elem())
	}
	t.rows[key] = r
}

// Ranges lists what is served, in order of the keys.
func (t *Table) Ranges() []Range {
	var all []Range
	for key, r := range t.rows {
		if r != nil {
			all = append(all, Range{int16(key), r.min, r.max})
		}
	}
	return slices.Clip(all)
}

// row is the row of a key and version, nil when it isn't served.
func (t *Table) row(key, version int16) *row {
	if key < 0 || int(key) >= len(t.rows) {
		return nil
	}
	r := t.rows[key]
	if r == nil || version < r.min || version > r.max {
		return nil
	}
	return r
}

// Form says which headers a key and version have; it makes a Table a wire.Handler.
func (t *Table) Form(key, version int16) wire.Form {
	r := t.row(key, version)
	switch {
	case r == nil && key == kmsg.ApiVersions.Int16() && t.rows[key] != nil:
		return wire.Unread
	case r == nil:
		return wire.Refused
	case key == kmsg.ControlledShutdown.Int16() && version == 0:
		return wire.NoClient
	case version < r.flexible:
		return wire.Plain
	case key == kmsg.ApiVersions.Int16():
		return wire.FlexiblePlain
	}
	return wire.Flexible
}

// Refuse is told of a request that Form refuses; it makes a Table a wire.Handler.
func (t *Table) Refuse(key, version int16) error {
	newest := int16(-1)
	if key >= 0 && int(key) < len(t.rows) && t.rows[key] != nil {
		newest = t.rows[key].max
	}
	t.meter.Refused(key, version, newest)
	return fmt.Errorf("no request with key %d and version %d", key, version)
}

// Serve decodes a request and lets its handler answer; it makes a Table a wire.Handler. A body that does not decode closes
// the connection, as in Kafka; bytes behind it are ignored.
func (t *Table) Serve(ctx context.Context, w *wire.Request) Reply {
	r := t.row(w.Key, w.Version)
	if r == nil {
		return t.unsupportedApiVersions(&Request{wire: w, meter: t.meter})
	}
	if instead, ok := t.mayPass(ctx, r, w); !ok {
		return instead
	}
	if r.raw {
		return t.serveRaw(ctx, r, w)
	}
	body, err := t.decode(r, w)
	if err != nil {
		return wire.Close(err)
	}
	return r.handler(ctx, &Request{wire: w, row: r, meter: t.meter, Body: body})
}

// serveRaw is Serve for handlers that decode the body themselves, and keep nothing of the request.
func (t *Table) serveRaw(ctx context.Context, r *row, w *wire.Request) Reply {
	req, ok := t.requests.Get().(*Request)
	if !ok {
		req = &Request{}
	}
	*req = Request{wire: w, row: r, meter: t.meter}
	reply := r.handler(ctx, req)
	*req = Request{}
	t.requests.Put(req)
	return reply
}

func (t *Table) decode(r *row, w *wire.Request) (kmsg.Request, error) {
	body := kmsg.RequestForKey(w.Key)
	body.SetVersion(w.Version)
	switch n := len(w.Body); {
	case n > r.maxBody:
		return nil, fmt.Errorf("%s: body of %d bytes, the limit is %d", kmsg.NameForKey(w.Key), n, r.maxBody)
	case n > largeBody:
		t.large.Lock()
		defer t.large.Unlock()
	}
	if err := wire.ReadBody(body, w.Body); err != nil {
		return nil, fmt.Errorf("%s version %d: malformed body: %w", kmsg.NameForKey(w.Key), w.Version, err)
	}
	if len(w.Body) <= strictBody && nullArray(w.Body, wire.AppendBody(nil, body), body.IsFlexible()) {
		return nil, fmt.Errorf("%s version %d: malformed body: null where there must be an array", kmsg.NameForKey(w.Key), w.Version)
	}
	return body, nil
}

// strictBody is the largest body that is looked through for null arrays.
const strictBody = 4 << 10

// nullArray reports whether a body has null where only an array may be, which Kafka takes for malformed and kmsg for an empty
// array. encoded is what kmsg makes of what it read: the two part where one has null and the other an empty array. Where they
// part in another way, it is a matter of taste, such as the order of tagged fields.
func nullArray(body, encoded []byte, flexible bool) bool {
	i := 0
	for i < len(body) && i < len(encoded) && body[i] == encoded[i] {
		i++
	}
	if flexible {
		return i < len(body) && i < len(encoded) && body[i] == 0 && encoded[i] == 1
	}
	return i+4 <= len(body) && i+4 <= len(encoded) && binary.BigEndian.Uint32(body[i:]) == 1<<32-1 && binary.BigEndian.Uint32(encoded[i:]) == 0
}
