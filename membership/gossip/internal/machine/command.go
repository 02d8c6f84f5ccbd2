package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/core/election/state"
)

// Command is one entry of raft's log, as JSON. Exactly one member is set besides Epoch.
type Command struct {
	// Epoch is the controller epoch on whose behalf the command is; used by those of a controller only.
	Epoch int32 `json:"epoch,omitempty"`

	OpenSession   *OpenSession `json:"open_session,omitempty"`
	CloseSessions []uint64     `json:"close_sessions,omitempty"` // sessions that left, or expired
	Campaign      *Campaign    `json:"campaign,omitempty"`
	Resign        *Holding     `json:"resign,omitempty"`
	Register      *Register    `json:"register,omitempty"`
	Leave         *Holding     `json:"leave,omitempty"`
	Identify      string       `json:"identify,omitempty"` // the cluster id that is proposed
	NewBrokerID   bool         `json:"new_broker_id,omitempty"`
	ProducerIDs   *ProducerIDs `json:"producer_ids,omitempty"`
	DirFailed     *DirFailed   `json:"dir_failed,omitempty"`
	Import        []state.Op   `json:"import,omitempty"` // all that an empty cluster begins with

	CreateTopics     []NewTopic       `json:"create_topics,omitempty"`
	SetAssignments   []state.TopicOp  `json:"set_assignments,omitempty"`
	UpdatePartitions []state.StateOp  `json:"update_partitions,omitempty"` // with the partition epochs that are expected
	MarkDeleted      []string         `json:"mark_deleted,omitempty"`
	RemoveTopics     []string         `json:"remove_topics,omitempty"`
	Unmark           []string         `json:"unmark,omitempty"`
	SetConfigs       []state.ConfigOp `json:"set_configs,omitempty"` // with the versions that are expected
	Done             []Request        `json:"done,omitempty"`
	Nothing          bool             `json:"nothing,omitempty"` // a controller's write of no items: only its epoch is checked
}

// OpenSession begins a session; its result is the session's id.
type OpenSession struct {
	// Server is the server that the session stands for. Sessions of the same server that were opened before end: only one
	// process has a server's directory at a time, so who held them is gone.
	Server string `json:"server"`
}

// Holding names what belongs to a session: Nonce is that of the command which made it.
type Holding struct {
	Session uint64 `json:"session"`
	Nonce   string `json:"nonce"`
}

// Campaign makes a broker controller, unless there is one; its result is the epoch. To campaign again under the same nonce finds the
// term that it has.
type Campaign struct {
	Holding
	Broker int32 `json:"broker"`
}

// Register makes a broker alive; its result is the broker epoch. To register again under the same nonce finds the registration that
// it has.
type Register struct {
	Holding
	Broker Broker `json:"broker"`
}

// Broker is an [election.Broker].
type Broker struct {
	ID        int32      `json:"id"`
	Epoch     int64      `json:"epoch,omitempty"`
	Rack      string     `json:"rack,omitempty"`
	Endpoints []Endpoint `json:"endpoints"`
}

// Endpoint is an [election.Endpoint].
type Endpoint struct {
	Listener string `json:"listener"`
	Protocol string `json:"protocol"`
	Host     string `json:"host"`
	Port     int32  `json:"port"`
}

// NewBroker describes a broker.
func NewBroker(b election.Broker) Broker {
	w := Broker{ID: b.ID, Epoch: b.Epoch, Rack: b.Rack}
	for _, e := range b.Endpoints {
		w.Endpoints = append(w.Endpoints, Endpoint(e))
	}
	return w
}

// Election gives the broker in the contract's terms. It shares nothing with this one.
func (b *Broker) Election() election.Broker {
	e := election.Broker{ID: b.ID, Epoch: b.Epoch, Rack: b.Rack, Endpoints: make([]election.Endpoint, len(b.Endpoints))}
	for i, p := range b.Endpoints {
		e.Endpoints[i] = election.Endpoint(p)
	}
	return e
}

// ProducerIDs takes a block of producer ids.
type ProducerIDs struct {
	Broker int32 `json:"broker"`
	From   int64 `json:"from"`
}

// DirFailed reports that a broker has lost a log directory.
type DirFailed struct {
	Broker int32 `json:"broker"`
}

// NewTopic is an [election.NewTopic].
type NewTopic struct {
	state.TopicOp
	Config map[string]string `json:"config,omitempty"`
}

// Request is an [election.Request] of the kind DirFailed; nothing else is asked for through this coordination.
type Request struct {
	Broker int32  `json:"broker"`
	ID     string `json:"id"`
}

// ErrCommand says that a command can't be read, or isn't one: it makes no sense, or comes from a later version.
var ErrCommand = errors.New("not a command that this version knows")

// DecodeCommand reads a command strictly. Its errors are ErrCommand.
func DecodeCommand(text []byte) (*Command, error) {
	var c Command
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCommand, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows it", ErrCommand)
	}
	if n := c.members(); n != 1 {
		return nil, fmt.Errorf("%w: it has %d members", ErrCommand, n)
	}
	return &c, nil
}

// members counts what is set.
func (c *Command) members() (n int) {
	for _, set := range []bool{c.OpenSession != nil, c.CloseSessions != nil, c.Campaign != nil, c.Resign != nil, c.Register != nil,
		c.Leave != nil, c.Identify != "", c.NewBrokerID, c.ProducerIDs != nil, c.DirFailed != nil, c.Import != nil, c.CreateTopics != nil,
		c.SetAssignments != nil, c.UpdatePartitions != nil, c.MarkDeleted != nil, c.RemoveTopics != nil, c.Unmark != nil,
		c.SetConfigs != nil, c.Done != nil, c.Nothing} {
		if set {
			n++
		}
	}
	return n
}

// Repeatable says that to apply the command twice does what to apply it once does, or nothing worse than to skip an id: whoever
// doesn't know whether it was applied may try again.
func (c *Command) Repeatable() bool {
	return c.OpenSession != nil || c.CloseSessions != nil || c.Campaign != nil || c.Resign != nil || c.Register != nil || c.Leave != nil ||
		c.Identify != "" || c.NewBrokerID || c.ProducerIDs != nil || c.MarkDeleted != nil || c.Done != nil || c.Nothing
}
