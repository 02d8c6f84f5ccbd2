package zookeeper

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// The nodes, below the chroot.
const (
	consumersPath = "/consumers"
	ownPath       = "/barnabas"
	fencePath     = ownPath + "/offsets"
	detailsPath   = fencePath + "/details"
	groupsPath    = fencePath + "/groups"
	pendingPath   = fencePath + "/pending"
)

// offsetsPath is the node that has the topics of a group.
func offsetsPath(group string) string { return consumersPath + "/" + escape(group) + "/offsets" }

// offsetPath is the node that has an offset's number.
func offsetPath(k offsets.Key) string {
	return offsetsPath(k.Group) + "/" + escape(k.Topic) + "/" + strconv.Itoa(int(k.Partition))
}

// detailPath is the node that has all of an offset.
func detailPath(k offsets.Key) string {
	return detailsPath + "/" + escape(k.Group) + "/" + escape(k.Topic) + "/" + strconv.Itoa(int(k.Partition))
}

func groupPath(group string) string { return groupsPath + "/" + escape(group) }

func producerPath(id int64) string { return pendingPath + "/" + strconv.FormatInt(id, 10) }

// parent is the node above.
func parent(path string) string { return path[:strings.LastIndexByte(path, '/')] }

const hexDigits = "0123456789ABCDEF"

// empty is the node's name for the empty name, which ZooKeeper doesn't allow.
const empty = "%"

// escape makes any name one that ZooKeeper allows. Most names are, and stay as they are; bytes that ZooKeeper doesn't take, and
// "%", become "%" and two hexadecimal digits.
func escape(name string) string {
	switch name {
	case "":
		return empty
	case ".", "..":
		return strings.ReplaceAll(name, ".", "%2E")
	}
	var b strings.Builder
	for rest := name; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if allowed(r) && (r != utf8.RuneError || n > 1) {
			b.WriteString(rest[:n])
		} else {
			for _, c := range []byte(rest[:n]) {
				b.WriteByte('%')
				b.WriteByte(hexDigits[c>>4])
				b.WriteByte(hexDigits[c&15])
			}
		}
		rest = rest[n:]
	}
	return b.String()
}

// allowed says whether ZooKeeper takes a character in a node's name as it is.
func allowed(r rune) bool {
	switch {
	case r == '/', r == '%', r <= 0x1f, r >= 0x7f && r <= 0x9f, r >= 0xd800 && r <= 0xf8ff, r >= 0xfff0:
		return false // beyond 0xffff, Java sees two characters that aren't allowed
	}
	return true
}

// unescape is the way back. Names that escape doesn't make are not ok: somebody else's.
func unescape(node string) (name string, ok bool) {
	if node == empty {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(node); i++ {
		if node[i] != '%' {
			b.WriteByte(node[i])
			continue
		}
		if i+2 >= len(node) {
			return "", false
		}
		high, low := strings.IndexByte(hexDigits, node[i+1]), strings.IndexByte(hexDigits, node[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	name = b.String()
	return name, escape(name) == node
}
