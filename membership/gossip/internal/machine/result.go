package machine

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/election"
)

// resultJSON is a Result on its way to another server. Only items that failed are in it.
type resultJSON struct {
	Err    *errorJSON         `json:"err,omitempty"`
	Items  int                `json:"items,omitempty"`
	Failed map[int]*errorJSON `json:"failed,omitempty"`
	Epochs []int32            `json:"epochs,omitempty"`
	Number int64              `json:"number,omitempty"`
	Count  int32              `json:"count,omitempty"`
	Text   string             `json:"text,omitempty"`
}

type errorJSON struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// codes names the errors that keep their identity between servers.
func codes() map[string]error {
	return map[string]error{
		"unavailable": election.ErrUnavailable, "stale_controller": election.ErrStaleController, "broker_exists": election.ErrBrokerExists,
		"topic_exists": election.ErrTopicExists, "unknown_topic": election.ErrUnknownTopic, "unknown_partition": election.ErrUnknownPartition,
		"conflict": election.ErrConflict, "invalid": election.ErrInvalid,
		"no_session": ErrNoSession, "seat_taken": ErrSeatTaken, "not_empty": ErrNotEmpty, "withdrawn": ErrWithdrawn,
	}
}

func encodeError(err error) *errorJSON {
	if err == nil {
		return nil
	}
	for code, sentinel := range codes() {
		if errors.Is(err, sentinel) {
			return &errorJSON{code, err.Error()}
		}
	}
	return &errorJSON{"unavailable", err.Error()}
}

// remote is an error from another server: its text, and what it is.
type remote struct {
	text string
	kind error
}

func (e *remote) Error() string { return e.text }
func (e *remote) Unwrap() error { return e.kind }

func (e *errorJSON) decode() error {
	if e == nil {
		return nil
	}
	if sentinel, ok := codes()[e.Code]; ok {
		return &remote{e.Text, sentinel}
	}
	return fmt.Errorf("%w: %s (%s)", election.ErrUnavailable, e.Text, e.Code)
}

// MarshalJSON implements json.Marshaler.
func (r Result) MarshalJSON() ([]byte, error) {
	w := resultJSON{Err: encodeError(r.Err), Items: len(r.Items), Epochs: r.Epochs, Number: r.Number, Count: r.Count, Text: r.Text}
	for i, err := range r.Items {
		if err != nil {
			if w.Failed == nil {
				w.Failed = map[int]*errorJSON{}
			}
			w.Failed[i] = encodeError(err)
		}
	}
	return json.Marshal(w)
}

// maxItems bounds what a result may claim to have: as many as the largest command can hold.
const maxItems = 8 << 20

// UnmarshalJSON implements json.Unmarshaler.
func (r *Result) UnmarshalJSON(text []byte) error {
	var w resultJSON
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	if w.Items < 0 || w.Items > maxItems || w.Epochs != nil && len(w.Epochs) != w.Items {
		return fmt.Errorf("a result of %d items with %d epochs", w.Items, len(w.Epochs))
	}
	*r = Result{Err: w.Err.decode(), Epochs: w.Epochs, Number: w.Number, Count: w.Count, Text: w.Text}
	if w.Items > 0 {
		r.Items = make([]error, w.Items)
	}
	for i, e := range w.Failed {
		if i < 0 || i >= w.Items || e == nil {
			return fmt.Errorf("a result of item %d of %d", i, w.Items)
		}
		r.Items[i] = e.decode()
	}
	return nil
}
