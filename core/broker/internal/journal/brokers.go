package journal

import "fmt"

// Registered says that this broker is known to its cluster from now on.
type Registered struct {
	Broker int32 `json:"broker"`
	Epoch  int64 `json:"epoch"` // of the broker
	Again  bool  `json:"again"` // it was before
}

// Kind is "registered".
func (Registered) Kind() string { return "registered" }

// About is the broker.
func (e Registered) About() Subject { return OfBroker(e.Broker) }

func (e Registered) String() string {
	if e.Again {
		return fmt.Sprintf("registered again, under epoch %d", e.Epoch)
	}
	return fmt.Sprintf("registered under epoch %d", e.Epoch)
}

// RegistrationLost says that the cluster doesn't know this broker any more: it was not heard of for the session's timeout.
type RegistrationLost struct {
	Broker int32 `json:"broker"`
	Epoch  int64 `json:"epoch"`
}

// Kind is "registration-lost".
func (RegistrationLost) Kind() string { return "registration-lost" }

// About is the broker.
func (e RegistrationLost) About() Subject { return OfBroker(e.Broker) }

func (e RegistrationLost) String() string {
	return fmt.Sprintf("its registration, of epoch %d, is lost: the coordination did not hear of it in time", e.Epoch)
}

// CameAlive says that another broker is alive, as the controller told this one.
type CameAlive struct {
	Broker int32 `json:"broker"`
}

// Kind is "came-alive".
func (CameAlive) Kind() string { return "came-alive" }

// About is that broker.
func (e CameAlive) About() Subject { return OfBroker(e.Broker) }

func (e CameAlive) String() string { return fmt.Sprintf("broker %d is alive", e.Broker) }

// WentAway says that another broker isn't alive any more, as the controller told this one: it stopped, died, or the coordination doesn't
// hear of it.
type WentAway struct {
	Broker int32 `json:"broker"`
}

// Kind is "went-away".
func (WentAway) Kind() string { return "went-away" }

// About is that broker.
func (e WentAway) About() Subject { return OfBroker(e.Broker) }

func (e WentAway) String() string {
	return fmt.Sprintf("broker %d is not alive any more", e.Broker)
}

// ControllerChanged says that this broker heard of another controller.
type ControllerChanged struct {
	Broker int32 `json:"broker"` // this one
	From   int32 `json:"from"`   // -1 none
	To     int32 `json:"to"`
	Epoch  int32 `json:"epoch"` // of the controller
}

// Kind is "controller-changed".
func (ControllerChanged) Kind() string { return "controller-changed" }

// About is this broker.
func (e ControllerChanged) About() Subject { return OfBroker(e.Broker) }

func (e ControllerChanged) String() string {
	return fmt.Sprintf("broker %d is controller, under epoch %d", e.To, e.Epoch)
}

// DirFailed says that a log directory of this broker failed.
type DirFailed struct {
	Broker int32  `json:"broker"`
	Dir    string `json:"dir"`
	Err    string `json:"error"`
}

// Kind is "log-dir-failed".
func (DirFailed) Kind() string { return "log-dir-failed" }

// About is this broker.
func (e DirFailed) About() Subject { return OfBroker(e.Broker) }

func (e DirFailed) String() string {
	return fmt.Sprintf("log directory %s failed: %s", e.Dir, e.Err)
}

// Phase says how far this broker has come in starting, or that it stops.
type Phase struct {
	Broker int32  `json:"broker"`
	Phase  string `json:"phase"`
	Took   Millis `json:"took_ms,omitempty"`
}

// Kind is "phase".
func (Phase) Kind() string { return "phase" }

// About is this broker.
func (e Phase) About() Subject { return OfBroker(e.Broker) }

func (e Phase) String() string {
	if e.Took > 0 {
		return fmt.Sprintf("%s, after %s", e.Phase, e.Took)
	}
	return e.Phase
}

// CannotGoOn says that this broker has to be stopped.
type CannotGoOn struct {
	Broker int32  `json:"broker"`
	Err    string `json:"error"`
}

// Kind is "cannot-go-on".
func (CannotGoOn) Kind() string { return "cannot-go-on" }

// About is this broker.
func (e CannotGoOn) About() Subject { return OfBroker(e.Broker) }

func (e CannotGoOn) String() string { return "can't go on: " + e.Err }

// Unreachable says that this broker, a follower, can't fetch from another that leads. It is recorded once, until Reached.
type Unreachable struct {
	Broker int32  `json:"broker"`
	Err    string `json:"error"`
}

// Kind is "unreachable".
func (Unreachable) Kind() string { return "unreachable" }

// About is the broker that leads.
func (e Unreachable) About() Subject { return OfBroker(e.Broker) }

func (e Unreachable) String() string {
	return fmt.Sprintf("this broker can't fetch from broker %d: %s", e.Broker, e.Err)
}

// Reached says that fetching from another broker goes on after Unreachable.
type Reached struct {
	Broker int32 `json:"broker"`
}

// Kind is "reached".
func (Reached) Kind() string { return "reached" }

// About is the broker that leads.
func (e Reached) About() Subject { return OfBroker(e.Broker) }

func (e Reached) String() string {
	return fmt.Sprintf("this broker fetches from broker %d again", e.Broker)
}

// PluginSaid is a warning or an error that a plug-in logged.
type PluginSaid struct {
	Role  string `json:"role"`
	Name  string `json:"name"`
	Level string `json:"level"`
	Text  string `json:"text"` // with the attributes, as in a log line
}

// Kind is "plugin-said".
func (PluginSaid) Kind() string { return "plugin-said" }

// About is the plug-in.
func (e PluginSaid) About() Subject { return OfPlugin(e.Role, e.Name) }

func (e PluginSaid) String() string { return e.Level + ": " + e.Text }
