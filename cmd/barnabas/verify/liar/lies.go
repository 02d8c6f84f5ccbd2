package liar

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// state counts what comes by, over all connections of a proxy. The zero value is ready.
type state struct {
	sync.Mutex
	produces int             // produce requests
	others   int             // whatever else a lie counts
	ends     map[int32]int64 // of each partition, as far as the answers said; for lies about a single topic
}

// nth says whether this is the nth call with this counter.
func (s *state) nth(counter *int, n int) bool {
	s.Lock()
	defer s.Unlock()
	*counter++
	return *counter == n
}

// noteEnds learns from a produce response how far partitions go.
func (s *state) noteEnds(req kmsg.Request, resp kmsg.Response) {
	answer, ok := resp.(*kmsg.ProduceResponse)
	if !ok {
		return
	}
	s.Lock()
	defer s.Unlock()
	if s.ends == nil {
		s.ends = map[int32]int64{}
	}
	lengths := map[int32]int64{}
	produced(req, func(_ string, p *kmsg.ProduceRequestTopicPartition) { lengths[p.Partition] = count(p.Records) })
	for _, t := range answer.Topics {
		for _, p := range t.Partitions {
			if p.ErrorCode == 0 {
				s.ends[p.Partition] = max(s.ends[p.Partition], p.BaseOffset+lengths[p.Partition])
			}
		}
	}
}

// answerProduce is an answer that says what code says, and offsets as if everything had been appended.
func (s *state) answerProduce(req kmsg.Request, code int16) kmsg.Response {
	s.Lock()
	defer s.Unlock()
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	resp.SetVersion(req.GetVersion())
	produced(req, func(topic string, p *kmsg.ProduceRequestTopicPartition) {
		rp := kmsg.NewProduceResponseTopicPartition()
		rp.Partition, rp.ErrorCode, rp.BaseOffset, rp.LogAppendTime = p.Partition, code, s.ends[p.Partition], -1
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
		resp.Topics = append(resp.Topics, rt)
	})
	return resp
}

// onProduce makes a lie that passes batches on without their producer, but for the nth produce request, with which it does
// something else. Produce requests go one at a time.
func onProduce(n int, other func(s *state, ask Ask, req kmsg.Request) (kmsg.Response, error)) Lie {
	var s state
	var turn sync.Mutex
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		if !produced(req, func(_ string, p *kmsg.ProduceRequestTopicPartition) { p.Records = anonymous(p.Records) }) {
			return ask(req)
		}
		turn.Lock()
		defer turn.Unlock()
		if s.nth(&s.produces, n) {
			return other(&s, ask, req)
		}
		resp, err := ask(req)
		if err == nil {
			s.noteEnds(req, resp)
		}
		return resp, err
	}
}

// onFetch makes a lie that changes one partition's records in a fetch response, once, and passes everything else on. change
// says whether it found something to change.
func onFetch(change func(req *kmsg.FetchRequest, p *kmsg.FetchResponseTopicPartition) bool) Lie {
	var s state
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if err != nil {
			return resp, err
		}
		fetched(resp, func(p *kmsg.FetchResponseTopicPartition) {
			s.Lock()
			defer s.Unlock()
			if s.others == 0 && change(req.(*kmsg.FetchRequest), p) {
				s.others++
			}
		})
		return resp, nil
	}
}

// LosesOne acknowledges a batch that it doesn't append.
func LosesOne(n int) Lie {
	return onProduce(n, func(s *state, _ Ask, req kmsg.Request) (kmsg.Response, error) { return s.answerProduce(req, 0), nil })
}

// AppendsTwice appends a batch twice.
func AppendsTwice(n int) Lie {
	return onProduce(n, func(_ *state, ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if err == nil {
			_, err = ask(req)
		}
		return resp, err
	})
}

// Reverses turns the records of each batch around from the nth on.
func Reverses(n int) Lie {
	var s state
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		produced(req, func(_ string, p *kmsg.ProduceRequestTopicPartition) {
			s.Lock()
			defer s.Unlock()
			p.Records = anonymous(p.Records)
			if s.produces++; s.produces >= n {
				p.Records = reversed(p.Records)
			}
		})
		return ask(req)
	}
}

// TellsWrongOffset acknowledges a batch at the offset behind its own.
func TellsWrongOffset(n int) Lie {
	return onProduce(n, func(_ *state, ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if answer, ok := resp.(*kmsg.ProduceResponse); ok {
			for i := range answer.Topics {
				for j := range answer.Topics[i].Partitions {
					answer.Topics[i].Partitions[j].BaseOffset++
				}
			}
		}
		return resp, err
	})
}

// WritesItsOwn appends a record that nobody sent.
func WritesItsOwn(n int) Lie {
	return onProduce(n, func(_ *state, ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if err != nil {
			return resp, err
		}
		produced(req, func(_ string, p *kmsg.ProduceRequestTopicPartition) { p.Records = alien() })
		_, err = ask(req)
		return resp, err
	})
}

// ShowsWhatFails shows readers a batch that it then refuses to have taken.
func ShowsWhatFails(n int) Lie {
	var s state
	var held []byte // set once, with the first offset that it would have had
	refuse := onProduce(n, func(s2 *state, _ Ask, req kmsg.Request) (kmsg.Response, error) {
		s2.Lock()
		produced(req, func(_ string, p *kmsg.ProduceRequestTopicPartition) {
			s.Lock()
			defer s.Unlock()
			held = behind(p.Records, s2.ends[p.Partition])
		})
		s2.Unlock()
		return s2.answerProduce(req, kerr.InvalidRecord.Code), nil
	})
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := refuse(ask, req)
		r, ok := req.(*kmsg.FetchRequest)
		if !ok || err != nil {
			return resp, err
		}
		s.Lock()
		defer s.Unlock()
		if held == nil || len(r.Topics) != 1 || len(r.Topics[0].Partitions) != 1 {
			return resp, err
		}
		base := int64(0)
		for _, b := range held[:8] {
			base = base<<8 | int64(b)
		}
		answer := resp.(*kmsg.FetchResponse)
		if len(answer.Topics) == 1 && r.Topics[0].Partitions[0].FetchOffset == base {
			p := &answer.Topics[0].Partitions[0]
			p.RecordBatches, p.HighWatermark, p.LastStableOffset = held, base+count(held), base+count(held)
			held = nil
		}
		return resp, err
	}
}

// ShowsTooEarly shows records, and says that partitions end before them, until it was asked for ends n times.
func ShowsTooEarly(n int) Lie {
	var s state
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if err != nil {
			return resp, err
		}
		s.Lock()
		defer s.Unlock()
		if answer, ok := resp.(*kmsg.ListOffsetsResponse); ok {
			s.others++
			for i := range answer.Topics {
				for j := range answer.Topics[i].Partitions {
					if s.others < n {
						answer.Topics[i].Partitions[j].Offset /= 2
					}
				}
			}
		}
		if s.others < n {
			fetched(resp, func(p *kmsg.FetchResponseTopicPartition) { p.HighWatermark /= 2 })
		}
		return resp, nil
	}
}

// ChangesValue shows a record with another value, once.
func ChangesValue() Lie {
	return onFetch(func(_ *kmsg.FetchRequest, p *kmsg.FetchResponseTopicPartition) bool {
		p.RecordBatches = altered(p.RecordBatches)
		return true
	})
}

// Skips leaves out the first batch of a fetch response that has several, once.
func Skips() Lie {
	return onFetch(func(_ *kmsg.FetchRequest, p *kmsg.FetchResponseTopicPartition) bool {
		size := 12 + int(p.RecordBatches[8])<<24 + int(p.RecordBatches[9])<<16 + int(p.RecordBatches[10])<<8 + int(p.RecordBatches[11])
		if size >= len(p.RecordBatches) {
			return false
		}
		p.RecordBatches = p.RecordBatches[size:]
		return true
	})
}

// HidesAborts doesn't tell readers which transactions were aborted.
func HidesAborts() Lie {
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if err == nil {
			fetched(resp, func(p *kmsg.FetchResponseTopicPartition) { p.AbortedTransactions = nil })
		}
		return resp, err
	}
}

// ReadsUncommitted shows everything to who wants to read only what is committed.
func ReadsUncommitted() Lie {
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		if r, ok := req.(*kmsg.FetchRequest); ok {
			r.IsolationLevel = 0
		}
		resp, err := ask(req)
		if err == nil {
			fetched(resp, func(p *kmsg.FetchResponseTopicPartition) { p.LastStableOffset = p.HighWatermark })
		}
		return resp, err
	}
}

// Turns ends the nth transaction that is to be committed by an abort, or the other way round, and says that all is well.
func Turns(commit bool, n int) Lie {
	var s state
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		if r, ok := req.(*kmsg.EndTxnRequest); ok && r.Commit == commit && s.nth(&s.others, n) {
			r.Commit = !commit
		}
		return ask(req)
	}
}

// TellsOldEnd tells half the end to the nth who asks for it.
func TellsOldEnd(n int) Lie {
	var s state
	return func(ask Ask, req kmsg.Request) (kmsg.Response, error) {
		resp, err := ask(req)
		if answer, ok := resp.(*kmsg.ListOffsetsResponse); ok && err == nil && s.nth(&s.others, n) {
			for i := range answer.Topics {
				for j := range answer.Topics[i].Partitions {
					answer.Topics[i].Partitions[j].Offset /= 2
				}
			}
		}
		return resp, err
	}
}
