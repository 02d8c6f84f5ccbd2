package zookeeper

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
)

// sessionFile is the plain file in the first log directory that remembers the session which a broker registered in. After a crash,
// the node of that session is still there until ZooKeeper expires it; who knows the session's id, and advertises the same
// address, is the broker that made it, and needn't wait. Apache Kafka ignores plain files that it doesn't know.
const sessionFile = "barnabas-zookeeper-session.json"

type savedSession struct {
	Session string `json:"session"` // the id, as ZooKeeper logs it: 0x and hexadecimal digits
}

// saveSession writes the file. It needs no fsync: without it a restart only takes longer.
func (c *coordination) saveSession(id int64) error {
	if c.dir == "" || c.savedSession() == id {
		return nil
	}
	text, err := json.Marshal(savedSession{hex(id)})
	if err != nil {
		return err
	}
	path := filepath.Join(c.dir, sessionFile)
	if err := os.WriteFile(path+".tmp", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// savedSession reads the file; 0 when there is none that makes sense.
func (c *coordination) savedSession() int64 {
	if c.dir == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(c.dir, sessionFile))
	if err != nil || len(text) > 256 {
		return 0
	}
	var s savedSession
	if json.Unmarshal(text, &s) != nil {
		return 0
	}
	id, err := strconv.ParseUint(s.Session, 0, 64)
	if err != nil {
		return 0
	}
	return int64(id)
}
