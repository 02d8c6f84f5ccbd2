package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/barnabas-mq/barnabas/core/broker/internal/api"
	"github.com/barnabas-mq/barnabas/core/broker/internal/partition"
	"github.com/barnabas-mq/barnabas/core/log"
)

// openDirs opens and locks the log directories. On an error none stays locked.
func openDirs(paths []string, logger *slog.Logger) ([]*log.Dir, error) {
	var dirs []*log.Dir
	for _, path := range paths {
		d, err := log.OpenDir(path, logger)
		if err != nil {
			return nil, errors.Join(err, closeDirs(dirs))
		}
		dirs = append(dirs, d)
	}
	return dirs, nil
}

func closeDirs(dirs []*log.Dir) error {
	var errs error
	for _, d := range dirs {
		errs = errors.Join(errs, d.Close())
	}
	return errs
}

// known is what the directories say about whose they are. They must agree.
func known(dirs []*log.Dir) (log.Meta, error) {
	all := log.Meta{BrokerID: -1}
	for _, d := range dirs {
		m, ok := d.Meta()
		if !ok {
			continue
		}
		if all.BrokerID >= 0 && m.BrokerID >= 0 && m.BrokerID != all.BrokerID {
			return all, fmt.Errorf("%w: %s is broker %d's, another of log.dirs is broker %d's; give each broker its own directories", log.ErrDirForeign, d.Path(), m.BrokerID, all.BrokerID)
		}
		if all.ClusterID != "" && m.ClusterID != "" && m.ClusterID != all.ClusterID {
			return all, fmt.Errorf("%w: %s is of cluster %s, another of log.dirs of cluster %s; give each cluster its own directories", log.ErrDirForeign, d.Path(), m.ClusterID, all.ClusterID)
		}
		all.BrokerID = max(all.BrokerID, m.BrokerID)
		if m.ClusterID != "" {
			all.ClusterID = m.ClusterID
		}
	}
	return all, nil
}

// logs gives the partitions their logs.
type logs struct{ b *Broker }

var _ partition.Logs = logs{}

// Open gives the log of a partition, a new one when there is none.
func (l logs) Open(topic string, number int32, isNew bool) (*log.Log, error) {
	tp := log.TopicPartition{Topic: topic, Partition: number}
	if found, err := l.b.logs.Get(tp); err == nil {
		// It was opened some time ago, and nobody told it since how its topic is configured: it had no replica.
		found.Configure(l.b.logConfig(topic, l.b.configs.TopicConfig(topic)))
		return found, found.Err()
	}
	if !isNew {
		for _, d := range l.b.dirs {
			if err := d.Err(); err != nil {
				return nil, fmt.Errorf("the log may be in %s, which is offline: %w", d.Path(), err)
			}
		}
	}
	l.b.configs.FetchTopicConfig(context.Background(), topic) // the topic may be new, and its configuration not seen yet
	return l.b.logs.GetOrCreate(context.Background(), tp)
}

// Delete gives the log up.
func (l logs) Delete(topic string, number int32) error {
	err := l.b.logs.Delete(log.TopicPartition{Topic: topic, Partition: number})
	if errors.Is(err, log.ErrNoLog) {
		return nil
	}
	return err
}

// logDirs tells clients about the log directories.
type logDirs struct{ *log.Manager }

var _ api.LogDirs = logDirs{}

// LogDirs lists the directories with what is in them.
func (l logDirs) LogDirs() []api.LogDir {
	at := map[*log.Dir]int{}
	var out []api.LogDir
	for i, d := range l.Dirs() {
		at[d] = i
		dir := api.LogDir{Path: d.Path(), Err: d.Err()}
		if dir.Err == nil {
			dir.Total, dir.Usable, dir.Err = d.Space()
		}
		out = append(out, dir)
	}
	for one := range l.All() {
		d := l.DirOf(one)
		if d == nil { // deleted in the meantime
			continue
		}
		dir := &out[at[d]]
		dir.Replicas = append(dir.Replicas, api.LogDirReplica{
			Topic:     one.Topic(),
			Partition: one.Partition(),
			Size:      one.Size(),
			Lag:       max(0, one.HighWatermark()-one.EndOffset()),
		})
	}
	return out
}
