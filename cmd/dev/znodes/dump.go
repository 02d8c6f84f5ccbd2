package znodes

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// Node is what is compared of one node.
type Node struct {
	Data      string `json:"data,omitempty"` // JSON in one form, other text as it is
	Null      bool   `json:"null,omitempty"` // no data at all
	Ephemeral bool   `json:"ephemeral,omitempty"`
	Version   int32  `json:"version,omitempty"` // only where it says something: partition states, the controller's epoch
	ACL       string `json:"acl,omitempty"`     // "" is everything for everybody
}

// Tree is the nodes of a cluster by path below its chroot.
type Tree map[string]Node

// Names are the values that differ from run to run, by what they are called instead.
type Names struct {
	texts map[string]string // value -> name
}

// reader reads the nodes below a chroot.
type reader struct {
	conn *zk.Conn
	root string
}

// open connects to HOST:PORT,…/CHROOT.
func open(connect string) (*reader, error) {
	servers, root, _ := strings.Cut(connect, "/")
	conn, _, err := zk.Connect(strings.Split(servers, ","), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(quiet{}))
	if err != nil {
		return nil, err
	}
	if root != "" {
		root = "/" + root
	}
	return &reader{conn, root}, nil
}

// quiet is a logger that says nothing: what doesn't work shows in errors.
type quiet struct{}

// Printf does nothing.
func (quiet) Printf(string, ...any) {}

func (r *reader) close() { r.conn.Close() }

// read reads everything below a path.
func (r *reader) read(ctx context.Context, path string, raw map[string]rawNode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	data, stat, err := r.conn.Get(r.root + path)
	if err == zk.ErrNoNode {
		return nil // gone meanwhile; the tree isn't at rest, and is read again
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	acl, _, err := r.conn.GetACL(r.root + path)
	if err != nil && err != zk.ErrNoNode {
		return fmt.Errorf("read the access control of %s: %w", path, err)
	}
	if path != "" {
		raw[path] = rawNode{data: data, ephemeral: stat.EphemeralOwner != 0, version: stat.Version, acl: acl}
	}
	names, _, err := r.conn.Children(r.root + path)
	if err != nil && err != zk.ErrNoNode {
		return fmt.Errorf("list %s: %w", path, err)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := r.read(ctx, path+"/"+name, raw); err != nil {
			return err
		}
	}
	return nil
}

type rawNode struct {
	data      []byte
	ephemeral bool
	version   int32
	acl       []zk.ACL
}

// tree makes what is compared of raw nodes.
func tree(raw map[string]rawNode, names Names) Tree {
	t := Tree{}
	for path, n := range raw {
		one := Node{Data: canonical(path, n.data, names), Null: n.data == nil, Ephemeral: n.ephemeral}
		if path == "/controller" {
			one.Data = anyWinner(one.Data, raw)
		}
		if strings.HasSuffix(path, "/state") || path == "/controller_epoch" {
			one.Version = n.version
		}
		if !slices.Equal(n.acl, zk.WorldACL(zk.PermAll)) {
			one.ACL = fmt.Sprint(n.acl)
		}
		t[path] = one
	}
	return t
}

// canonical brings JSON into one form: sorted members, names for what differs from run to run.
func canonical(path string, data []byte, names Names) string {
	var value any
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &value) != nil {
		return names.in(string(data))
	}
	if path == "/latest_producer_id_block" { // whoever asks first, as often as it does, has one
		value = anyBlock(value)
	}
	value = rename(path, "", value, names)
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the names have angle brackets
	if e.Encode(value) != nil {
		return string(data)
	}
	return strings.TrimSpace(b.String())
}

// anyWinner replaces the controller's id when that broker lives: who is first to the node when a controller stops is chance.
func anyWinner(data string, raw map[string]rawNode) string {
	id := regexp.MustCompile(`"brokerid":(\d+)`).FindStringSubmatch(data)
	if id == nil {
		return data
	}
	if _, lives := raw["/brokers/ids/"+id[1]]; !lives {
		return data
	}
	return strings.Replace(data, id[0], `"brokerid":"<a living broker>"`, 1)
}

// anyBlock replaces the thousands of a block's ends, and the broker that has it.
func anyBlock(value any) any {
	v, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for k, end := range map[string]string{"block_start": "000", "block_end": "999"} {
		if text, ok := v[k].(string); ok && strings.HasSuffix("000"+text, end) {
			v[k] = "<n" + end + ">"
		}
	}
	if _, ok := v["broker"].(float64); ok {
		v["broker"] = "<any>"
	}
	return v
}

// rename replaces times by their name, wherever they are, and other values by theirs.
func rename(path, field string, value any, names Names) any {
	switch v := value.(type) {
	case map[string]any:
		for k, one := range v {
			v[k] = rename(path, k, one, names)
		}
	case []any:
		for i, one := range v {
			v[i] = rename(path, field, one, names)
		}
	case string:
		if field == "timestamp" && regexp.MustCompile(`^\d{13}$`).MatchString(v) {
			return "<time>"
		}
		return names.in(v)
	case float64:
		if field == "port" {
			return names.in(fmt.Sprint(int64(v)))
		}
	}
	return value
}

// in replaces values in a text by their names.
func (n Names) in(text string) string {
	if name, ok := n.texts[text]; ok {
		return name
	}
	for value, name := range n.texts {
		if len(value) > 8 || strings.Contains(text, ":"+value) { // addresses; a bare port would be found in other numbers
			text = strings.ReplaceAll(text, value, name)
		}
	}
	return text
}

// names finds the values of a cluster: its id, the ids of its topics, its brokers' ports.
func namesOf(raw map[string]rawNode, ports map[string]string) Names {
	n := Names{texts: map[string]string{}}
	for port, name := range ports {
		n.texts[port] = name
	}
	for path, node := range raw {
		var v struct {
			ID      string `json:"id"`
			TopicID string `json:"topic_id"`
		}
		if json.Unmarshal(node.data, &v) != nil {
			continue
		}
		if path == "/cluster/id" {
			n.texts[v.ID] = "<cluster id>"
		}
		if topic, ok := strings.CutPrefix(path, "/brokers/topics/"); ok && v.TopicID != "" {
			n.texts[v.TopicID] = "<id of " + topic + ">"
		}
	}
	return n
}
