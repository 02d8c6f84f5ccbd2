package verify

import (
	"slices"
	"sync"
	"time"

	"github.com/barnabas-mq/barnabas/cmd/barnabas/verify/history"
)

// book is where everything that clients are told is written down. Any goroutine may write into it.
type book struct {
	start time.Time
	pages []*page

	mu           sync.Mutex
	producers    int32
	transactions []history.Transaction
	complaints   map[string]int
	sent, acked  int64
}

// page is the book of one partition.
type page struct {
	mu sync.Mutex
	history.Partition
}

func newBook(partitions int) *book {
	b := &book{start: time.Now(), complaints: map[string]int{}}
	for i := range partitions {
		b.pages = append(b.pages, &page{Partition: history.Partition{Number: int32(i)}})
	}
	return b
}

// now is the time since the start of the run.
func (b *book) now() time.Duration { return time.Since(b.start) }

// producer numbers a producer's session.
func (b *book) producer() int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.producers++
	return b.producers - 1
}

// begin notes a transaction and gives its number.
func (b *book) begin(producer int32) int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.transactions = append(b.transactions, history.Transaction{Producer: producer})
	return int32(len(b.transactions) - 1)
}

// ending notes that a transaction's end is about to be asked for.
func (b *book) ending(transaction int32, abort bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &b.transactions[transaction]
	t.Ending, t.Abort = b.now(), abort
}

// ended notes that the end that was asked for is acknowledged.
func (b *book) ended(transaction int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := &b.transactions[transaction]
	t.Outcome = history.WasCommitted
	if t.Abort {
		t.Outcome = history.WasAborted
	}
}

// send notes that a record is about to be sent, and gives its sequence.
func (b *book) send(partition, producer, transaction int32) int32 {
	b.mu.Lock()
	b.sent++
	b.mu.Unlock()
	p := b.pages[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	for int(producer) >= len(p.Writes) {
		p.Writes = append(p.Writes, nil)
	}
	p.Writes[producer] = append(p.Writes[producer], history.Write{Sent: b.now(), Transaction: transaction})
	return int32(len(p.Writes[producer]) - 1)
}

// told notes an acknowledgement.
func (b *book) told(partition, producer, sequence int32, offset int64) {
	b.mu.Lock()
	b.acked++
	b.mu.Unlock()
	p := b.pages[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &p.Writes[producer][sequence]
	w.Acknowledged, w.Told, w.Offset = true, b.now(), offset
}

// counts says how many records were sent and acknowledged so far.
func (b *book) counts() (sent, acked int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sent, b.acked
}

// complain notes what a client was refused, for people: it is no fault.
func (b *book) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) < 100 || b.complaints[what] > 0 {
		b.complaints[what]++
	}
}

// view adds what a reader saw.
func (b *book) view(partition int32, v history.View) {
	p := b.pages[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Views = append(p.Views, v)
}

// end adds an end that was told.
func (b *book) end(partition int32, e history.End) {
	p := b.pages[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Ends = append(p.Ends, e)
}

// loss adds that a reader was told of a loss.
func (b *book) loss(partition int32, l history.Loss) {
	p := b.pages[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Losses = append(p.Losses, l)
}

// acknowledgedTo is the offset behind the highest that was acknowledged in a partition.
func (b *book) acknowledgedTo(partition int32) int64 {
	p := b.pages[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	end := p.Start
	for _, writes := range p.Writes {
		for i := range writes {
			if writes[i].Acknowledged {
				end = max(end, writes[i].Offset+1)
			}
		}
	}
	return end
}

// history closes the book. Nobody may write into it any more.
func (b *book) history(shared bool) *history.History {
	h := &history.History{Transactions: b.transactions, Shared: shared}
	for _, p := range b.pages {
		h.Partitions = append(h.Partitions, p.Partition)
	}
	return h
}

// silence is the longest time that a partition had records to send and none was acknowledged, and when it began.
func (b *book) silence() (longest time.Duration, partition int32, from time.Duration) {
	for _, p := range b.pages {
		var sent, told []time.Duration
		p.mu.Lock()
		for _, writes := range p.Writes {
			for i := range writes {
				if writes[i].Acknowledged {
					sent, told = append(sent, writes[i].Sent), append(told, writes[i].Told)
				}
			}
		}
		p.mu.Unlock()
		slices.Sort(sent)
		slices.Sort(told)
		for i, at := range told { // the i-th answer: before it, i were answered; the next one was due from when it was sent
			since := sent[i]
			if i > 0 {
				since = max(since, told[i-1])
			}
			if at-since > longest {
				longest, partition, from = at-since, p.Number, since
			}
		}
	}
	return longest, partition, from
}
