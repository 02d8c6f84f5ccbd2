package election

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"time"
)

// The file of a dump is text in lines, each one JSON object (RFC 8259, UTF-8) and a line feed:
//
//	{"format":"barnabas-coordination-dump","version":1,"source":"zookeeper","taken":"2026-01-31T12:00:00Z","living":false}
//	{"cluster":{"id":…,"controller_epoch":…,"broker_epoch":…,"last_broker_id":…,"next_producer_id":…}}
//	{"topic":{"name":…,"id":…,"deleting":true,"partitions":[{"replicas":[…],"adding":[…],"removing":[…],"state":{"leader":…,
//	    "leader_epoch":…,"isr":[…],"controller_epoch":…,"recovering":true,"partition_epoch":…}}, …]}}        one line for each topic
//	{"config":{"kind":"topic"|"broker","name":…,"values":{…}}}                                           one line for each configuration
//	{"end":{"topics":…,"partitions":…,"configs":…,"crc32c":"0123abcd"}}
//
// The lines come in this order, topics by name, configurations by kind and name. Ids of topics are 22 characters of URL-safe base64.
// deleting, adding, removing, state and recovering are left out when they are false, empty or missing. The last line counts what was before it, and
// has the CRC-32C of all bytes before it, in hexadecimal.
//
// There is one way to write a dump: a line is read only if it is, byte for byte, what would be written for what was read from it. So a
// member that isn't listed here, one that comes twice, a number with a fraction, or text that isn't UTF-8 is refused and never half
// understood; additions make a new version, and an older program refuses it.
const (
	dumpFormat  = "barnabas-coordination-dump"
	dumpVersion = 1
	// maxDumpLine is how long a line may be: a topic with a million partitions in three replicas has less.
	maxDumpLine = 256 << 20
)

// ErrNoDump says that a file isn't one of a dump, or is damaged.
var ErrNoDump = errors.New("not a readable dump of a coordination")

// DumpInfo says where a dump comes from.
type DumpInfo struct {
	Source string    // the name of the coordination's plug-in
	Taken  time.Time // in seconds
	Living bool      // brokers were allowed to be alive meanwhile
}

type dumpLine struct {
	Cluster *dumpCluster `json:"cluster,omitempty"`
	Topic   *dumpTopic   `json:"topic,omitempty"`
	Config  *dumpConfig  `json:"config,omitempty"`
	End     *dumpEnd     `json:"end,omitempty"`
}

type dumpHeader struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Source  string    `json:"source"`
	Taken   time.Time `json:"taken"`
	Living  bool      `json:"living"`
}

type dumpCluster struct {
	ID              string `json:"id"`
	ControllerEpoch int32  `json:"controller_epoch"`
	BrokerEpoch     int64  `json:"broker_epoch"`
	LastBrokerID    int32  `json:"last_broker_id"`
	NextProducerID  int64  `json:"next_producer_id"`
}

type dumpTopic struct {
	Name       string          `json:"name"`
	ID         string          `json:"id"`
	Deleting   bool            `json:"deleting,omitempty"`
	Partitions []dumpPartition `json:"partitions"`
}

type dumpPartition struct {
	Replicas []int32    `json:"replicas"`
	Adding   []int32    `json:"adding,omitempty"`
	Removing []int32    `json:"removing,omitempty"`
	State    *dumpState `json:"state,omitempty"`
}

type dumpState struct {
	Leader          int32   `json:"leader"`
	LeaderEpoch     int32   `json:"leader_epoch"`
	ISR             []int32 `json:"isr"`
	ControllerEpoch int32   `json:"controller_epoch"`
	Recovering      bool    `json:"recovering,omitempty"`
	PartitionEpoch  int32   `json:"partition_epoch"`
}

type dumpConfig struct {
	Kind   string            `json:"kind"`
	Name   string            `json:"name"`
	Values map[string]string `json:"values"`
}

type dumpEnd struct {
	Topics     int    `json:"topics"`
	Partitions int    `json:"partitions"`
	Configs    int    `json:"configs"`
	CRC        string `json:"crc32c"`
}

// dumpKinds are the names of kinds of entities in the file.
func dumpKind(k EntityKind) string {
	if k == TopicEntity {
		return "topic"
	}
	return "broker"
}

// canonical writes a line as it stands in the file.
func canonical(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v) // with a line feed
	return b.Bytes(), err
}

// WriteDump writes a valid dump as a file. The caller makes it durable.
func WriteDump(w io.Writer, info DumpInfo, d Dump) error {
	if err := d.Validate(); err != nil {
		return err
	}
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	out := bufio.NewWriterSize(w, 64<<10)
	put := func(v any) error {
		line, err := canonical(v)
		if err != nil {
			return err
		}
		sum.Write(line)
		_, err = out.Write(line)
		return err
	}
	if err := put(dumpHeader{dumpFormat, dumpVersion, info.Source, info.Taken.UTC().Truncate(time.Second), info.Living}); err != nil {
		return err
	}
	if err := put(dumpLine{Cluster: &dumpCluster{d.ClusterID, d.ControllerEpoch, d.BrokerEpoch, d.LastBrokerID, d.NextProducerID}}); err != nil {
		return err
	}
	for i := range d.Topics {
		if err := put(dumpLine{Topic: dumpOf(&d.Topics[i])}); err != nil {
			return err
		}
	}
	for i := range d.Configs {
		c := &d.Configs[i]
		if err := put(dumpLine{Config: &dumpConfig{dumpKind(c.Entity.Kind), c.Entity.Name, c.Values}}); err != nil {
			return err
		}
	}
	if err := put(dumpLine{End: &dumpEnd{len(d.Topics), d.Partitions(), len(d.Configs), hexSum(sum)}}); err != nil {
		return err
	}
	return out.Flush()
}

func hexSum(h hash.Hash32) string { return fmt.Sprintf("%08x", h.Sum32()) }

func dumpOf(t *Topic) *dumpTopic {
	o := &dumpTopic{Name: t.Name, ID: base64.RawURLEncoding.EncodeToString(t.ID[:]), Deleting: t.Deleting, Partitions: make([]dumpPartition, len(t.Partitions))}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		o.Partitions[i] = dumpPartition{Replicas: p.Replicas, Adding: p.Adding, Removing: p.Removing}
		if st := p.State; st != nil {
			isr := st.ISR
			if isr == nil {
				isr = []int32{}
			}
			o.Partitions[i].State = &dumpState{st.Leader, st.LeaderEpoch, isr, st.ControllerEpoch, st.Recovering, st.PartitionEpoch}
		}
	}
	return o
}

func (o *dumpTopic) topic() (t Topic, err error) {
	t = Topic{Name: o.Name, Deleting: o.Deleting, Partitions: make([]Partition, len(o.Partitions))}
	id, err := base64.RawURLEncoding.Strict().DecodeString(o.ID)
	if err != nil || len(id) != len(t.ID) {
		return t, fmt.Errorf("%q is no id of a topic", o.ID)
	}
	copy(t.ID[:], id)
	for i, p := range o.Partitions {
		t.Partitions[i].Assignment = Assignment{Replicas: p.Replicas, Adding: p.Adding, Removing: p.Removing}
		if st := p.State; st != nil {
			if st.ISR == nil {
				return t, fmt.Errorf("partition %d of %q has null for its ISR", i, o.Name)
			}
			t.Partitions[i].State = &PartitionState{Leader: st.Leader, LeaderEpoch: st.LeaderEpoch, ISR: st.ISR,
				ControllerEpoch: st.ControllerEpoch, Recovering: st.Recovering, PartitionEpoch: st.PartitionEpoch}
		}
	}
	return t, nil
}

// dumpReader reads a file line by line.
type dumpReader struct {
	in     *bufio.Reader
	sum    hash.Hash32
	number int
}

// next reads one line into v, which must come back as the same bytes. It returns the line.
func (r *dumpReader) next(v any) ([]byte, error) {
	r.number++
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if errors.Is(err, io.EOF) {
			return nil, r.damaged("the file ends within it")
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(line) > maxDumpLine {
			return nil, r.damaged("it is longer than %d bytes", maxDumpLine)
		}
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return nil, r.damaged("%w", err)
	}
	again, err := canonical(v)
	if err != nil || !bytes.Equal(again, line) {
		return nil, r.damaged("it isn't written as dumps are: a member twice, or in another place or case, or text that isn't UTF-8")
	}
	return line, nil
}

func (r *dumpReader) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: "+format, append([]any{ErrNoDump, r.number}, args...)...)
}

// ReadDump reads a file that WriteDump has written, to its end, and nothing else: what is returned without error is valid. It takes memory
// in proportion to what it has read. Errors wrap ErrNoDump, but for those of r.
func ReadDump(r io.Reader) (info DumpInfo, d Dump, err error) {
	in := &dumpReader{in: bufio.NewReaderSize(r, 64<<10), sum: crc32.New(crc32.MakeTable(crc32.Castagnoli))}
	if info, err = in.header(); err != nil {
		return DumpInfo{}, Dump{}, err
	}
	if err := in.body(&d); err != nil {
		return DumpInfo{}, Dump{}, err
	}
	if _, err := in.in.ReadByte(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("%w: something comes after its end", ErrNoDump)
		}
		return DumpInfo{}, Dump{}, err
	}
	if err := d.Validate(); err != nil {
		return DumpInfo{}, Dump{}, fmt.Errorf("%w: %w", ErrNoDump, err)
	}
	return info, d, nil
}

// header reads the first line. One of a newer version may have members that this one doesn't know, so format and version come first.
func (r *dumpReader) header() (info DumpInfo, err error) {
	start, err := r.in.Peek(r.in.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return info, err
	}
	start, _, _ = bytes.Cut(start, []byte("\n"))
	var about struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(start, &about); err != nil || about.Format != dumpFormat {
		return info, fmt.Errorf("%w: its first line doesn't say %q", ErrNoDump, dumpFormat)
	}
	if about.Version > dumpVersion {
		return info, fmt.Errorf("%w: format version %d, this program reads up to %d: use the newer one", ErrNoDump, about.Version, dumpVersion)
	}
	var h dumpHeader
	line, err := r.next(&h)
	if err != nil {
		return info, err
	}
	if h.Version != dumpVersion {
		return info, fmt.Errorf("%w: format version %d", ErrNoDump, h.Version)
	}
	if h.Taken != h.Taken.UTC().Truncate(time.Second) {
		return info, r.damaged("its time is %s: want seconds in UTC", h.Taken)
	}
	r.sum.Write(line)
	return DumpInfo{Source: h.Source, Taken: h.Taken, Living: h.Living}, nil
}

// body reads the lines behind the first.
func (r *dumpReader) body(d *Dump) error {
	for stage := 0; ; {
		var l dumpLine
		line, err := r.next(&l)
		if err != nil {
			return err
		}
		at := l.stage()
		if at < stage || stage == 0 && at != 0 {
			return r.damaged("it is none that may stand here")
		}
		stage = max(at, 1)
		switch {
		case l.Cluster != nil:
			d.ClusterID, d.ControllerEpoch, d.BrokerEpoch = l.Cluster.ID, l.Cluster.ControllerEpoch, l.Cluster.BrokerEpoch
			d.LastBrokerID, d.NextProducerID = l.Cluster.LastBrokerID, l.Cluster.NextProducerID
		case l.Topic != nil:
			t, err := l.Topic.topic()
			if err != nil {
				return r.damaged("%w", err)
			}
			d.Topics = append(d.Topics, t)
		case l.Config != nil:
			e := Entity{Kind: BrokerEntity, Name: l.Config.Name}
			if l.Config.Kind == dumpKind(TopicEntity) {
				e.Kind = TopicEntity
			} else if l.Config.Kind != dumpKind(BrokerEntity) {
				return r.damaged("a configuration of kind %q", l.Config.Kind)
			}
			d.Configs = append(d.Configs, Config{Entity: e, Values: l.Config.Values})
		default:
			want := dumpEnd{len(d.Topics), d.Partitions(), len(d.Configs), hexSum(r.sum)}
			if *l.End != want {
				return r.damaged("it says %+v, and %+v is there: the file is damaged", *l.End, want)
			}
			return nil
		}
		r.sum.Write(line)
	}
}

// stage says where in a file a line may stand; -1 for one that says not exactly one thing.
func (l *dumpLine) stage() int {
	at, n := -1, 0
	for i, there := range []bool{l.Cluster != nil, l.Topic != nil, l.Config != nil, l.End != nil} {
		if there {
			at, n = i, n+1
		}
	}
	if n != 1 {
		return -1
	}
	return at
}
