package member

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// ServerID is what raft calls a server: a broker's name and the identity of its raft directory, "3-7f3a9c2164be0d15". A broker that
// has lost its directory is another server: it has forgotten what it voted for and what it acknowledged, so it must not count as the
// one that did. (Kafka's KIP-853 has directory ids for the same reason.)
type ServerID string

// storeDigits is how many hexadecimal digits of a ServerID identify the directory.
const storeDigits = 16

// Generated is the name in the server id of a broker that has no broker.id yet.
const Generated = "new"

// NewServerID makes the id of a directory that is new: name is the decimal broker id, or [Generated].
func NewServerID(name string) ServerID {
	var b [storeDigits / 2]byte
	_, _ = rand.Read(b[:]) // never fails
	return ServerID(name + "-" + hex.EncodeToString(b[:]))
}

// Name is the broker's part of the id: its broker id as far as it was known when the directory was made.
func (s ServerID) Name() string {
	name, _, _ := strings.Cut(string(s), "-")
	return name
}

// Store is the directory's part of the id.
func (s ServerID) Store() string {
	_, store, _ := strings.Cut(string(s), "-")
	return store
}

// Valid says whether this can be the id of a server: ids from outside are checked with it.
func (s ServerID) Valid() bool {
	name, store, _ := strings.Cut(string(s), "-")
	if len(store) != storeDigits || strings.Trim(store, "0123456789abcdef") != "" {
		return false
	}
	if name == Generated {
		return true
	}
	id, err := strconv.ParseInt(name, 10, 32)
	return err == nil && id >= 0 && strconv.FormatInt(id, 10) == name
}

// ClusterID is the identity of a raft cluster: 22 characters of URL-safe base64, random when the cluster is made; empty for none. It isn't
// Kafka's cluster.id, which is part of what raft keeps, and stays the same when everything is copied elsewhere: two raft
// clusters must never mix, whatever they keep.
type ClusterID string

// NewClusterID makes a random one.
func NewClusterID() ClusterID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return ClusterID(base64.RawURLEncoding.EncodeToString(b[:]))
}

// Valid says whether this can be the identity of a cluster, or stands for none.
func (c ClusterID) Valid() bool {
	if c == "" {
		return true
	}
	b, err := base64.RawURLEncoding.DecodeString(string(c))
	return err == nil && len(b) == 16
}

// IdentityFile is the name of the file in the directory of the raft store.
const IdentityFile = "identity.json"

// identityFormat is the number of the file's format. Others are refused.
const identityFormat = 2

// ErrDamaged says that a file of an identity isn't as it was written.
var ErrDamaged = errors.New("the identity of this directory is damaged")

// ErrForeignCluster says that a server belongs to another raft cluster.
var ErrForeignCluster = errors.New("belongs to another raft cluster")

// Identity is who a raft directory is. Its methods may be called from any goroutine.
type Identity struct {
	dir    string
	server ServerID

	mu       sync.Mutex
	cluster  ClusterID
	proposed bool
	by       ServerID
}

// identityJSON is the file.
type identityJSON struct {
	Format  int       `json:"format"`
	Server  ServerID  `json:"server"`
	Cluster ClusterID `json:"cluster,omitempty"`
	// Proposed says that this server itself has proposed the cluster: it alone may make it.
	Proposed bool `json:"proposed,omitempty"`
	// By is the server that has proposed the cluster, when this one has promised itself to it.
	By ServerID `json:"by,omitempty"`
	// Checksum is the CRC-32C of the file as it would be with an empty one, in hexadecimal.
	Checksum string `json:"crc32c"`
}

// text gives the file, with its checksum.
func (v identityJSON) text() ([]byte, error) {
	v.Checksum = ""
	plain, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	v.Checksum = fmt.Sprintf("%08x", crc32.Checksum(plain, crc32.MakeTable(crc32.Castagnoli)))
	text, err := json.Marshal(v)
	return append(text, '\n'), err
}

// OpenIdentity reads the identity of a directory, which must exist, or gives it one: name is the decimal broker id, or [Generated].
// A file that is there and makes no sense is an error: guessing another identity could let this server vote twice.
func OpenIdentity(dir, name string) (*Identity, error) {
	id, err := ReadIdentity(dir)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return id, err
	}
	// The file comes before anything else in the directory, so what is there without it has lost it.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() != IdentityFile+".tmp" {
			return nil, fmt.Errorf("%s holds %s, but no %s: whose directory it is can't be told; restore it from a backup, or set it aside (coordination reset) to begin without it",
				dir, e.Name(), IdentityFile)
		}
	}
	fresh := NewServerID(name)
	if !fresh.Valid() {
		return nil, fmt.Errorf("%q is no broker id", name)
	}
	id = &Identity{dir: dir, server: fresh}
	return id, id.write("", false, "")
}

// ReadIdentity reads the identity of a directory. The error is [os.ErrNotExist] when it has none.
func ReadIdentity(dir string) (*Identity, error) {
	path := filepath.Join(dir, IdentityFile)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return nil, err
	}
	v, err := parseIdentity(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore the file from a backup, or remove this server from the cluster, set its store aside (coordination reset) and start the broker again", path, err)
	}
	return &Identity{dir: dir, server: v.Server, cluster: v.Cluster, proposed: v.Proposed, by: v.By}, nil
}

// parseIdentity reads the file. What isn't byte for byte as this program writes it was changed by a disk or by a hand.
func parseIdentity(text []byte) (identityJSON, error) {
	var version struct{ Format int }
	if err := json.Unmarshal(text, &version); err != nil {
		return identityJSON{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if version.Format != identityFormat {
		return identityJSON{}, fmt.Errorf("%w, or another version's: it has format %d, this program knows %d", ErrDamaged, version.Format, identityFormat)
	}
	var v identityJSON
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return identityJSON{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if want, err := v.text(); err != nil || !bytes.Equal(text, want) {
		return identityJSON{}, fmt.Errorf("%w: its checksum is wrong", ErrDamaged)
	}
	if !v.Server.Valid() || !v.Cluster.Valid() || v.Proposed && v.Cluster == "" || v.By != "" && !v.By.Valid() {
		return identityJSON{}, fmt.Errorf("%w: server %q of cluster %q makes no sense", ErrDamaged, v.Server, v.Cluster)
	}
	return v, nil
}

// Server is this server's id, which never changes.
func (i *Identity) Server() ServerID { return i.server }

// Dir is the directory.
func (i *Identity) Dir() string { return i.dir }

// Cluster is the raft cluster that this server belongs to, empty while it belongs to none.
func (i *Identity) Cluster() ClusterID {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cluster
}

// Adopt makes this server one of the cluster, for ever; durable on return. One that belongs to another returns
// [ErrForeignCluster].
func (i *Identity) Adopt(c ClusterID) error { return i.adopt(c, "") }

// Promise is Adopt for a cluster that a server has proposed, and that may never come to be: see Release.
func (i *Identity) Promise(c ClusterID, by ServerID) error { return i.adopt(c, by) }

// Promised says who has proposed the cluster that this server has promised itself to; empty when it hasn't.
func (i *Identity) Promised() ServerID {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.by
}

func (i *Identity) adopt(c ClusterID, by ServerID) error {
	if c == "" || !c.Valid() {
		return fmt.Errorf("%q is no raft cluster", c)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cluster == c {
		return nil
	}
	if i.cluster != "" {
		return fmt.Errorf("server %s of %s %w than %s", i.server, i.cluster, ErrForeignCluster, c)
	}
	return i.write(c, false, by)
}

// Propose makes this server one of a cluster that is to be made, with a new identity, durable on return; or of the one that it has
// proposed before. One that belongs to another returns [ErrForeignCluster].
func (i *Identity) Propose() (ClusterID, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.proposed {
		return i.cluster, nil
	}
	if i.cluster != "" {
		return "", fmt.Errorf("server %s of %s %w", i.server, i.cluster, ErrForeignCluster)
	}
	c := NewClusterID()
	return c, i.write(c, true, "")
}

// Proposed says whether this server itself has proposed the cluster that it belongs to.
func (i *Identity) Proposed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.proposed
}

// Refound makes this server the first of a raft cluster that begins with what it knows of the former one, with a new identity, durable on
// return: whoever belongs to the former one is a stranger from then on.
func (i *Identity) Refound() (ClusterID, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c := NewClusterID()
	return c, i.write(c, false, "")
}

// Release takes back that this server belongs to a cluster which was proposed and never came to be. Only the one who has proposed it can
// know that. It does nothing when the server belongs to another cluster or to none.
func (i *Identity) Release(c ClusterID) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cluster != c || c == "" {
		return nil
	}
	return i.write("", false, "")
}

// write replaces the file, and remembers the cluster once that is durable.
func (i *Identity) write(c ClusterID, proposed bool, by ServerID) error {
	text, err := identityJSON{Format: identityFormat, Server: i.server, Cluster: c, Proposed: proposed, By: by}.text()
	if err != nil {
		return err
	}
	path := filepath.Join(i.dir, IdentityFile)
	if err := writeDurably(path+".tmp", text); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	if err := syncDir(i.dir); err != nil {
		return err
	}
	i.cluster, i.proposed, i.by = c, proposed, by
	return nil
}

func writeDurably(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(content); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
