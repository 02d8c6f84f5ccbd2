package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-zookeeper/zk"

	"github.com/barnabas-mq/barnabas/core/election"
	"github.com/barnabas-mq/barnabas/membership/zookeeper/internal/znode"
)

// Where things are, below the root. FORMAT.md says what they hold.
const (
	clusterIDPath       = "/cluster/id"
	brokersPath         = "/brokers/ids"
	brokerSequencePath  = "/brokers/seqid"
	topicsPath          = "/brokers/topics"
	controllerPath      = "/controller"
	controllerEpochPath = "/controller_epoch"
	featurePath         = "/feature"
	deletionsPath       = "/admin/delete_topics"
	reassignPath        = "/admin/reassign_partitions"
	preferredPath       = "/admin/preferred_replica_election"
	configPath          = "/config"
	configChangesPath   = "/config/changes"
	configChangePrefix  = configChangesPath + "/config_change_"
	isrChangesPath      = "/isr_change_notification"
	dirEventsPath       = "/log_dir_event_notification"
	dirEventPrefix      = dirEventsPath + "/log_dir_event_"
	producerIDsPath     = "/latest_producer_id_block"
)

// persistentPaths are the nodes that a broker of Kafka 3.9 creates at its start when they are missing.
func persistentPaths() []string {
	return []string{"/consumers", brokersPath, topicsPath, configChangesPath, deletionsPath, brokerSequencePath, isrChangesPath, producerIDsPath,
		dirEventsPath, "/config/topics", "/config/clients", "/config/users", "/config/brokers", "/config/ips"}
}

func brokerPath(id int32) string        { return brokersPath + "/" + strconv.Itoa(int(id)) }
func topicPath(topic string) string     { return topicsPath + "/" + topic }
func deletionPath(topic string) string  { return deletionsPath + "/" + topic }
func partsPath(topic string) string     { return topicPath(topic) + "/partitions" }
func topicConfig(topic string) string   { return "/config/topics/" + topic }
func partPath(t string, n int32) string { return partsPath(t) + "/" + strconv.Itoa(int(n)) }
func statePath(t string, n int32) string {
	return partPath(t, n) + "/state"
}

// isName says whether a text can be the name of a node.
func isName(name string) bool {
	if name == "" || name == "." || name == ".." || !utf8.ValidString(name) {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0 && r <= 0xffff
	})
}

// acl gives who may do what with a node, as Kafka does: everybody everything; or, with zookeeper.set.acl, all for the user who makes
// it, and reading for everybody unless secrets are in it.
func (c *coordination) acl(path string) []zk.ACL {
	if !c.o.SetACL {
		return zk.WorldACL(zk.PermAll)
	}
	own := zk.AuthACL(zk.PermAll)
	for _, secret := range []string{"/config/users", "/config/brokers", "/delegation_token/tokens"} {
		if path == secret || strings.HasPrefix(path, secret+"/") {
			return own
		}
	}
	return append(own, zk.WorldACL(zk.PermRead)...)
}

// prepare creates what must be there before a broker can do anything: the root, as Kafka does, and the nodes above those that it
// writes.
func (c *coordination) prepare(ctx context.Context, s *session) error {
	if err := c.createRoots(ctx, s); err != nil {
		return err
	}
	if n, err := s.get(ctx, clusterIDPath); err == nil && znode.IsImport(n.data) {
		return fmt.Errorf("%w: below %q", election.ErrUnfinished, s.path("/"))
	}
	for _, path := range persistentPaths() {
		if err := c.createAll(ctx, s, path); err != nil {
			return err
		}
	}
	return nil
}

// createRoots creates the root and what is above it.
func (c *coordination) createRoots(ctx context.Context, s *session) error {
	for i, r := range c.root {
		if r == '/' && i > 0 {
			if err := c.createRoot(ctx, s, c.root[:i]); err != nil {
				return err
			}
		}
	}
	if c.root == "" {
		return nil
	}
	return c.createRoot(ctx, s, c.root)
}

func (c *coordination) createRoot(ctx context.Context, s *session, path string) error {
	exists, err := call(ctx, s, func(conn *zk.Conn) (bool, error) {
		exists, _, err := conn.Exists(path)
		return exists, err
	})
	if exists && err == nil {
		return nil
	}
	_, err = call(ctx, s, func(conn *zk.Conn) (string, error) { return conn.Create(path, nil, 0, c.acl(path)) })
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create the root %s: %w", path, err)
	}
	return nil
}

// createAll creates a node without data, and those above it, where they are missing.
func (c *coordination) createAll(ctx context.Context, s *session, path string) error {
	if exists, err := s.exists(ctx, path); exists && err == nil {
		return nil // for one who may not create it, too
	}
	_, err := s.create(ctx, path, nil, 0, c.acl(path))
	if errors.Is(err, zk.ErrNoNode) && strings.LastIndexByte(path, '/') > 0 {
		if err := c.createAll(ctx, s, path[:strings.LastIndexByte(path, '/')]); err != nil {
			return err
		}
		_, err = s.create(ctx, path, nil, 0, c.acl(path))
	}
	if err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return nil
}

// invalid is the contract's error for what can't be written.
func invalid(format string, args ...any) error {
	return fmt.Errorf("zookeeper: %w: "+format, append([]any{election.ErrInvalid}, args...)...)
}
