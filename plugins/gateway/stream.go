package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// chunkRecords and chunkBytes bound how much of a stream is sent together.
	chunkRecords = 1000
	chunkBytes   = 1 << 20
	// chunksAhead is how many chunks may wait for their reports while more are read.
	chunksAhead = 4
)

// chunk is a part of a stream: records that were sent together.
type chunk struct {
	entries []entry
	sent    *delivery
	last    error // the stream ends after it, for this reason
}

// produceRecords answers a stream of records. The goroutine of the request reads and sends; another one writes reports, as
// they become known, until the first has ended.
func (g *Gateway) produceRecords(c *call) (any, error) {
	ctx, cancel := c.bound()
	at, err := c.cluster(ctx)
	if err == nil {
		_, err = g.topics.get(ctx, c.param("topic_name"), true)
	}
	cancel()
	if err != nil {
		return nil, err
	}
	s := &stream{call: c, at: at, topic: c.param("topic_name"), input: bufio.NewReaderSize(c.r.Body, 64<<10), control: http.NewResponseController(c.w)}
	defer context.AfterFunc(g.closing, func() { _ = s.control.SetReadDeadline(time.Now()) })()
	first, err := s.next()
	if err != nil {
		return nil, err
	}
	// From here on reports are written while the body is still coming in.
	if err := s.control.EnableFullDuplex(); err != nil {
		return nil, err
	}
	c.w.Header().Set("Content-Type", mediaJSON)
	chunks := make(chan chunk, chunksAhead)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		s.write(chunks)
	}()
	for ch := first; ; {
		chunks <- ch
		if ch.last != nil {
			break
		}
		if ch, err = s.next(); err != nil {
			ch = chunk{last: err}
		}
	}
	close(chunks)
	<-reported
	return written{}, nil
}

// stream is one request with records.
type stream struct {
	*call
	at      place
	topic   string
	input   *bufio.Reader
	control *http.ResponseController
	begun   bool // the first chunk is sent
}

// next reads and sends one chunk: what has come in, at least one record. Before the first chunk, an error says what is wrong
// with the request and nothing was sent; io.EOF is the regular end of a stream.
func (s *stream) next() (chunk, error) {
	var ch chunk
	size := 0
	for len(ch.entries) < chunkRecords && size < chunkBytes {
		if len(ch.entries) > 0 && s.input.Buffered() == 0 {
			break // what is there goes on its way
		}
		data, err := s.object(len(ch.entries) > 0)
		if err == errLater {
			break
		}
		if err != nil {
			if len(ch.entries) == 0 {
				if err == io.EOF && !s.begun {
					err = fail(http.StatusBadRequest, "The body is empty.")
				}
				return ch, err
			}
			ch.last = err
			break
		}
		size += len(data)
		e := readRecordV3(data)
		ch.entries = append(ch.entries, e)
	}
	return ch, s.send(&ch)
}

// errLater says that more bytes must come before there is another record.
var errLater = errors.New("later")

// send routes and sends what can be sent of a chunk. Only before the first chunk it returns an error.
func (s *stream) send(ch *chunk) error {
	records, err := s.routable(ch)
	if err == nil && len(records) > 0 {
		err = s.g.producer.route(s.r.Context(), s.topic, records)
	}
	if err != nil {
		if !s.begun {
			return err
		}
		for i := range ch.entries {
			if e := &ch.entries[i]; e.err == nil {
				e.err = err
			}
		}
		records = nil
	}
	s.begun = true
	ch.sent = s.g.producer.send(s.r.Context(), s.topic, records)
	return nil
}

// routable gives the records that are well-formed and name no partition that isn't there: one that does must not spoil
// the others, unless it is the first of all.
func (s *stream) routable(ch *chunk) ([]*kgo.Record, error) {
	info, err := s.g.topics.get(s.r.Context(), s.topic, true)
	if err != nil {
		return nil, err
	}
	records := make([]*kgo.Record, 0, len(ch.entries))
	for i := range ch.entries {
		e := &ch.entries[i]
		if e.err == nil && e.record.Partition >= info.partitions {
			e.err = noPartition()
		}
		switch {
		case e.err == nil:
			records = append(records, e.record)
		case i == 0 && !s.begun:
			return nil, e.err
		}
	}
	return records, nil
}

// object reads the bytes of one JSON object. With ready it doesn't wait for more than has come in.
func (s *stream) object(ready bool) ([]byte, error) {
	if err := s.begin(ready); err != nil {
		return nil, err
	}
	var split splitter
	var data []byte
	for {
		if s.input.Buffered() == 0 {
			s.patience()
			if _, err := s.input.Peek(1); err != nil {
				return nil, s.broken(err, true)
			}
		}
		have, _ := s.input.Peek(s.input.Buffered())
		n, complete := split.feed(have)
		if len(data)+n > int(s.g.options.MaxBody) {
			return nil, s.tooLarge()
		}
		data = append(data, have[:n]...)
		_, _ = s.input.Discard(n)
		if complete {
			return data, nil
		}
	}
}

// begin passes over what stands between records.
func (s *stream) begin(ready bool) error {
	for {
		if s.input.Buffered() == 0 {
			if ready {
				return errLater
			}
			s.patience()
		}
		b, err := s.input.ReadByte()
		if err != nil {
			return s.broken(err, false)
		}
		switch b {
		case ' ', '\t', '\r', '\n':
		case '{':
			return s.input.UnreadByte()
		default:
			return fail(http.StatusBadRequest, "Malformed JSON: want an object.")
		}
	}
}

// patience gives the next bytes their time.
func (s *stream) patience() {
	_ = s.control.SetReadDeadline(time.Now().Add(s.g.options.BodyTimeout))
	if s.g.closing.Err() != nil {
		_ = s.control.SetReadDeadline(time.Now())
	}
}

// broken says why a stream ended, within a record or between two.
func (s *stream) broken(err error, within bool) error {
	switch {
	case !within && (err == io.EOF || s.g.closing.Err() != nil):
		return io.EOF
	case within && (err == io.EOF || err == io.ErrUnexpectedEOF):
		return fail(http.StatusBadRequest, "Malformed JSON: it ends within a record.")
	}
	return s.unread(err)
}

// write writes the reports of all chunks, in order.
func (s *stream) write(chunks <-chan chunk) {
	gone, names := false, reportNames(s.at, s.topic)
	for ch := range chunks {
		var failed map[*kgo.Record]error
		if ch.sent != nil {
			failed = ch.sent.settled()
		}
		out := make([]byte, 0, 256*len(ch.entries))
		for i := range ch.entries {
			e := &ch.entries[i]
			err := e.err
			if err == nil {
				err = failed[e.record]
			}
			out = e.report(out, names, err)
		}
		if ch.last != nil && ch.last != io.EOF {
			out = reportFailure(out, ch.last)
		}
		if gone || len(out) == 0 {
			continue // who is gone is told nothing; what was sent stays sent
		}
		s.deadline()
		_, err := s.w.Write(out)
		if err == nil {
			err = s.control.Flush()
		}
		gone = err != nil
	}
}
