package record

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
)

// largePayload is what few batches decompress to: the largest that a broker
// takes by default, packed to a sixteenth.
const largePayload = 16 << 20

// Inflation bounds the memory that batches decompress to in all. As many at a
// time as there are processors may become largePayload, and one may become more.
// Without it a hundred bombs of a hundred KB each, sent at once, would take all
// memory. It is shared by whoever decompresses what clients sent, from any
// goroutine.
type Inflation struct {
	slots chan struct{} // one is taken while a batch is decompressed
	turn  sync.Mutex    // held by the one that becomes more than largePayload
}

// NewInflation returns an Inflation for this process's processors.
func NewInflation() *Inflation {
	return &Inflation{slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Do calls f with a limit on what a batch may decompress to. When f says that
// it is too little (ErrPayloadTooLarge) and limit is more, f is called again with
// limit. f doesn't wait for anything, and keeps nothing that it decompressed.
func (i *Inflation) Do(limit int, f func(limit int) error) error {
	err := i.inSlot(min(limit, largePayload), f)
	if limit <= largePayload || !errors.Is(err, ErrPayloadTooLarge) {
		return err
	}
	return i.inTurn(limit, f)
}

func (i *Inflation) inSlot(limit int, f func(limit int) error) error {
	i.slots <- struct{}{}
	defer i.leave()
	return f(limit)
}

func (i *Inflation) leave() { <-i.slots }

// inTurn gives the memory back before the next one's turn, rather than when the
// collector comes around to it: it may let the heap double before.
func (i *Inflation) inTurn(limit int, f func(limit int) error) error {
	i.turn.Lock()
	defer i.turn.Unlock()
	defer debug.FreeOSMemory()
	return f(limit)
}
