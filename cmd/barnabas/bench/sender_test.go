package bench

import (
	"encoding/binary"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/record"
)

// answering is a connection whose broker takes everything at once: each request, which is written as a head and a body, has an
// answer to read.
type answering struct {
	net.Conn
	answer []byte
	ready  []byte
	body   bool // comes next
}

func (a *answering) Write(p []byte) (int, error) {
	if a.body {
		a.ready = append(a.ready, a.answer...)
	}
	a.body = !a.body
	return len(p), nil
}

func (a *answering) Read(p []byte) (int, error) {
	if len(a.ready) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(p, a.ready)
	a.ready = a.ready[:copy(a.ready, a.ready[n:])]
	return n, nil
}

func (a *answering) Close() error { return nil }

// producing makes a sender of so many requests whose broker answers.
func producing(t testing.TB, p *Produce, requests int64, by *producer, stamped bool) *sender {
	p.Topic, p.Acks = "t", -1
	response := kmsg.NewPtrProduceResponse()
	response.SetVersion(produceVersion)
	topic := kmsg.NewProduceResponseTopic()
	topic.Topic, topic.Partitions = "t", []kmsg.ProduceResponseTopicPartition{kmsg.NewProduceResponseTopicPartition()}
	response.Topics = []kmsg.ProduceResponseTopic{topic}
	answer := response.AppendTo(make([]byte, 4+4+1)) // size, correlation id, tags
	binary.BigEndian.PutUint32(answer, uint32(len(answer)-4))
	templates, err := p.templates(1, stamped)
	require.NoError(t, err)
	m := newMeter(1)
	m.from.Store(1)
	w := m.worker(m.latency)
	w.left = requests
	c := &conn{nc: &answering{answer: answer}, stage: make([]byte, 16<<10)}
	return newSender(c, w, p, templates, []int32{3, 5}, by, schedule{})
}

// TestRawPathAllocatesNothing holds that sending costs no allocation, neither per record nor per request.
func TestRawPathAllocatesNothing(t *testing.T) {
	for name, p := range map[string]*Produce{
		"one":     {InFlight: 1, RecordSize: 1000},
		"several": {InFlight: 50, RecordSize: 100},
		"batches": {InFlight: 1, RecordSize: 100, BatchSize: 64 << 10},
	} {
		for _, by := range []*producer{nil, {id: 7, sequences: make([]int32, 2)}} {
			t.Run(name, func(t *testing.T) {
				const requests = 2000
				s := producing(t, p, 100, by, by != nil)
				require.NoError(t, s.lockstep()) // buffers are as large as they get
				n := testing.AllocsPerRun(3, func() {
					s.worker.left = requests
					if err := s.lockstep(); err != nil {
						panic(err)
					}
				})
				require.Less(t, n/requests, 0.01)
				require.EqualValues(t, 100+4*requests, s.answered.Load())
			})
		}
	}
}

// TestFramesAreWhole holds that what is written anew for each request makes batches that a broker takes: checksum, sequence
// numbers of each partition, producer and stamp.
func TestFramesAreWhole(t *testing.T) {
	p := &Produce{InFlight: 1, RecordSize: 40, BatchSize: 300, Keys: 2, Load: Load{Topic: "t"}, Acks: -1}
	templates, err := p.templates(3, true)
	require.NoError(t, err)
	require.Len(t, templates, variety)
	by := &producer{id: 77, epoch: 2, sequences: []int32{0, 1<<31 - 2}}
	next := []int32{0, 1<<31 - 2}
	for i, template := range templates {
		at := i % 2
		template.stamp(int64(1000 + i))
		frame := append(template.appendHead(nil, int32(i), int32(10+at), by, at), template.body...)
		require.Equal(t, len(frame)-4, int(binary.BigEndian.Uint32(frame)))
		require.EqualValues(t, i, binary.BigEndian.Uint32(frame[8:]))
		request := kmsg.NewPtrProduceRequest()
		request.SetVersion(produceVersion)
		require.NoError(t, request.ReadFrom(frame[4+2+2+4+2+len(clientID)+1:]))
		part := request.Topics[0].Partitions[0]
		require.EqualValues(t, 10+at, part.Partition)
		batch, rest, err := record.Next(part.Records)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.NoError(t, record.CheckCRC(batch))
		h := batch.Header()
		require.EqualValues(t, 77, h.ProducerID)
		require.EqualValues(t, 2, h.ProducerEpoch)
		require.Equal(t, next[at], h.BaseSequence)
		next[at] = record.AddSequence(next[at], h.Count)
		require.EqualValues(t, template.records, h.Count)
		it := record.Iterate(h, batch.Records())
		for it.Next() {
			require.EqualValues(t, 1000+i, binary.BigEndian.Uint64(it.Record.Value))
			require.Contains(t, []string{"key-0", "key-1"}, string(it.Record.Key))
		}
		require.NoError(t, it.Err())
	}
}

func TestAnswersThatLie(t *testing.T) {
	p := &Produce{InFlight: 2, RecordSize: 10}
	s := producing(t, p, 10, nil, false)
	a := s.conn.nc.(*answering)
	a.answer = append(a.answer, a.answer...)
	require.ErrorContains(t, s.lockstep(), "not sent")
	for cut := range len(a.answer)/2 - 4 {
		short := append([]byte(nil), a.answer[:4+cut]...)
		binary.BigEndian.PutUint32(short, uint32(cut))
		s := producing(t, p, 1, nil, false)
		s.conn.nc.(*answering).answer = short
		if cut < s.codeAt+2 {
			require.Error(t, s.lockstep(), cut)
		}
	}
	refused := producing(t, p, 1, nil, false)
	binary.BigEndian.PutUint16(refused.conn.nc.(*answering).answer[4+refused.codeAt:], 6)
	require.ErrorContains(t, refused.lockstep(), "NOT_LEADER")
}

func BenchmarkSend(b *testing.B) {
	for name, p := range map[string]*Produce{
		"one-1K":   {InFlight: 1, RecordSize: 1000},
		"fifty-1K": {InFlight: 50, RecordSize: 1000},
		"64K":      {InFlight: 1, RecordSize: 1000, BatchSize: 64 << 10},
	} {
		b.Run(name, func(b *testing.B) {
			s := producing(b, p, int64(b.N), nil, false)
			b.SetBytes(s.templates[0].wire())
			b.ReportAllocs()
			if err := s.lockstep(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
