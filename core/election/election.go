// Package election is the contract for coordination: who is controller, who is alive, and what the cluster is made of.
//
// One factory gives a [Coordination] with four small interfaces. [Election] makes one broker controller, under an epoch
// that only rises. [Membership] says which brokers are alive, each under an epoch of its own. [Metadata] keeps what must
// outlive every broker: topics, assignments, partition states, configurations, producer ids. [Requests] is what others ask of
// the controller without a connection to it.
//
// The contract is semantic, not a tree of keys, so that it fits ZooKeeper's nodes, a state machine under raft and one local
// file alike; who calls it cannot tell which it stands on. It decides nothing: which replica leads, where a topic's
// partitions go, whether a value makes sense, is the controller's business, and pushing decisions to brokers is too.
//
// # Rules for all methods
//
//	0.1  They may be called from any goroutine at the same time.
//	0.2  What they return belongs to the caller, and what they are given stays the caller's: neither is changed or kept.
//	0.3  Each waits at most until its ctx ends and then returns ctx's error. Before Start and after Stop they return
//	     [ErrClosed]; Stop makes those that wait return it.
//	0.4  A write that returned without error is durable, and seen by every read that begins later, on any member.
//	0.5  A write that returned [ErrUnavailable] or ctx's error may have happened or not, never half of one item. The caller
//	     reads before it decides again.
//	0.6  A write with the epoch of a controller that has a successor returns [ErrStaleController] and changes nothing,
//	     also when the successor was elected while the write was on its way.
//	0.7  Names and values are UTF-8; other bytes give [ErrInvalid] where an item has a result, and are never altered.
//
// The suite for implementations is in core/election/electiontest; its sub-tests are named by the clause numbers.
package election

import (
	"context"
	"errors"

	"github.com/barnabas-mq/barnabas/core/plugin"
)

// Sentinel errors. Implementations wrap them with what they did to what.
var (
	// ErrClosed says that the coordination isn't started, or is stopped.
	ErrClosed = errors.New("coordination is closed")
	// ErrUnavailable says that the coordination can't be reached or can't write now. Whether the write happened is unknown.
	ErrUnavailable = errors.New("coordination is unavailable")
	// ErrStaleController says that a later controller has been elected than the one whose epoch was given, or that this
	// one has resigned. Nothing was written.
	ErrStaleController = errors.New("controller epoch is stale")
	// ErrBrokerExists says that a living broker is registered under the same id, or advertises one of the same addresses.
	ErrBrokerExists = errors.New("broker is registered already")
	// ErrTopicExists says that there is a topic of that name, maybe one that is being deleted.
	ErrTopicExists = errors.New("topic exists")
	// ErrUnknownTopic says that there is no such topic, or not with that id.
	ErrUnknownTopic = errors.New("unknown topic")
	// ErrUnknownPartition says that the topic has no such partition.
	ErrUnknownPartition = errors.New("unknown partition")
	// ErrConflict says that somebody else has written since the version or partition epoch that was given.
	ErrConflict = errors.New("changed by somebody else")
	// ErrInvalid says that what was given can never be written: an empty name, a gap in the partitions, a negative epoch.
	ErrInvalid = errors.New("invalid argument")
)

// Settings is what the broker gives every coordination.
type Settings struct {
	plugin.Settings
	// DataDir is the first of the broker's log directories. It exists, and belongs to this broker alone. Implementations
	// may keep plain files of their own in it, but no directories: Apache Kafka refuses a log directory that holds
	// directories it doesn't know.
	DataDir string
	// Properties are the broker's own, by Kafka's names, as far as they were set. A coordination may take them where its
	// options say nothing: zookeeper.connect, for one.
	Properties map[string]string
}

// Factory makes a coordination from its part of the YAML file.
type Factory = plugin.Factory[Settings, Coordination]

// Coordination is one broker's access to what all brokers agree on.
type Coordination interface {
	plugin.Component

	// Election, Membership, Metadata and Requests never return nil, and always the same. They may be called before Start.
	Election() Election
	Membership() Membership
	Metadata() Metadata
	Requests() Requests
}

// Solitary is implemented by a Coordination that never has a second member. A broker on it may do what in a cluster would take
// things from others: take over topics that it finds in its directories and that nobody knows, and keep topics for itself in
// fewer replicas than it was told to.
type Solitary interface {
	// Solitary does nothing.
	Solitary()
}

// NoBroker stands for "no broker" where an id is expected.
const NoBroker int32 = -1

// Election decides which broker is controller.
type Election interface {
	// Campaign waits until the broker is controller, and returns its term of office.
	//
	//  1.1  Epochs only rise: each term's is higher than that of every term before it, on any member, through restarts.
	//       The first is at least 1.
	//  1.2  While a term lasts, nobody else's Campaign returns.
	//  1.3  A broker with a term that lasts gets another one only after the first has ended.
	//  1.4  When ctx ends first, the broker is no candidate any more and has no term.
	Campaign(ctx context.Context, brokerID int32) (Term, error)

	// Controller says who is controller: broker and epoch.
	//
	//  1.5  Nobody is: NoBroker with the last epoch that there was, 0 before the first.
	Controller(ctx context.Context) (brokerID, epoch int32, err error)
}

// Term is one broker's time as controller.
type Term interface {
	// Epoch is the controller epoch, which every write of this controller carries.
	Epoch() int32

	// Lost is closed when the term is over.
	//
	//  1.6  It is closed at once when this member learns of it, at the latest before another term's writes are seen here;
	//       by Resign and by Stop too.
	//  1.7  When in doubt (the session may have expired) it is closed. It never opens again.
	Lost() <-chan struct{}

	// Resign ends the term, so that another broker can be elected without waiting for anything to expire.
	//
	//  1.8  Writes with the term's epoch return ErrStaleController from then on, even while there is no successor.
	//  1.9  A term that is over is resigned without error.
	Resign(ctx context.Context) error
}

// Endpoint is where a broker can be reached through one of its listeners.
type Endpoint struct {
	Listener string // the listener's name, such as PLAINTEXT or INTERNAL
	Protocol string // its security protocol: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
	Host     string // the advertised host, never empty
	Port     int32  // the advertised port, 1 to 65535
}

// Broker describes a living broker.
type Broker struct {
	ID        int32
	Epoch     int64  // given by Register; 0 in what is given to Register
	Rack      string // empty when it has none
	Endpoints []Endpoint
}

// Membership says which brokers are alive.
type Membership interface {
	// ClusterID returns the cluster's id: 22 characters of URL-safe base64, 16 bytes, as Kafka writes it.
	//
	//  2.1  A cluster that has none takes proposed, for ever, when that isn't empty, or a random one. All callers get the
	//       same.
	ClusterID(ctx context.Context, proposed string) (string, error)

	// NewBrokerID returns a broker id that nobody was given before, counting up from 1001.
	//
	//  2.2  It is not given again, even when it is never used.
	NewBrokerID(ctx context.Context) (int32, error)

	// Register makes the broker alive, and returns its registration.
	//
	//  2.3  Broker epochs only rise: each is higher than every one before it, of any broker, through restarts.
	//  2.4  ErrBrokerExists when a broker with that id is alive, or one that advertises the same host and port; that one
	//       is left alone. A registration of this same member whose session is over is no obstacle.
	//  2.5  ErrInvalid for a negative id, no endpoint, an empty host, a port out of range, or a listener named twice.
	Register(ctx context.Context, b Broker) (Registration, error)

	// Brokers lists the living brokers by ascending id.
	Brokers(ctx context.Context) ([]Broker, error)

	// Watch begins a watch over Brokers. Its changes are of kind BrokersChanged.
	Watch(ctx context.Context) (Watch, error)
}

// Registration is one broker's time alive.
type Registration interface {
	// Epoch is the broker epoch.
	Epoch() int64

	// Lost is closed when the broker isn't registered any more: its session expired, it left, or the coordination was
	// stopped. It may register again, under a new epoch.
	//
	//  2.6  Like a term (1.6, 1.7): at once, in doubt too, never to open again.
	Lost() <-chan struct{}

	// Leave takes the registration back.
	//
	//  2.7  Brokers doesn't list it from then on. One that is lost is left without error.
	Leave(ctx context.Context) error
}

// Watch tells what may have changed. It belongs to one goroutine; Close alone may be called from others.
type Watch interface {
	// Next waits until something may have changed since Next returned the last time, or since the watch began, and returns
	// what. The caller reads what it is interested in.
	//
	//  3.1  No change is missed: a read after Next, or after the beginning of the watch, sees the state before a change or
	//       the change is reported by a later Next.
	//  3.2  Changes of one thing may be reported once for many. What wasn't changed may be reported as well.
	//  3.3  However slowly it is called, it costs memory per thing that changed, not per change.
	//  3.4  After Close it returns ErrClosed.
	Next(ctx context.Context) ([]Change, error)

	// Close ends the watch. It may be called again.
	Close()
}

// ChangeKind says what kind of thing may have changed.
type ChangeKind int8

const (
	// BrokersChanged: who is alive, or where.
	BrokersChanged ChangeKind = iota + 1
	// TopicChanged: a topic appeared, disappeared, was marked for deletion, or its assignment changed; or a partition's state was
	// changed by somebody else than a controller. That a controller wrote a state need not be reported: it knows, and tells.
	TopicChanged
	// ConfigChanged: the configuration of one entity.
	ConfigChanged
	// RequestsChanged: what is asked of the controller.
	RequestsChanged
	// EverythingChanged: the member was cut off for a while; everything is to be read anew.
	EverythingChanged
)

// Change is a hint that something may be different from what was read before.
type Change struct {
	Kind   ChangeKind
	Topic  string // of TopicChanged
	Entity Entity // of ConfigChanged
}
