package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/barnabas-mq/barnabas/core/offsets"
)

// format is the version of the tables. It stands in the database, so that a later version can change them, and this one
// refuses what it doesn't know.
const format = 1

// tables has what is committed in committed_offsets and consumer_groups, for people too, and what belongs to transactions
// that are open in pending. Names are as clients gave them, any bytes, so they are BLOBs; the view offsets shows them as text.
const tables = `
CREATE TABLE committed_offsets (
	consumer_group   BLOB    NOT NULL,
	topic            BLOB    NOT NULL,
	partition        INTEGER NOT NULL,
	offset           INTEGER NOT NULL,
	leader_epoch     INTEGER NOT NULL, -- -1: unknown
	metadata         BLOB    NOT NULL,
	commit_timestamp INTEGER NOT NULL, -- milliseconds since 1970
	expire_timestamp INTEGER NOT NULL, -- the same; -1: as the broker's settings say
	PRIMARY KEY (consumer_group, topic, partition)
) STRICT, WITHOUT ROWID;

CREATE VIEW offsets AS SELECT
	CAST(consumer_group AS TEXT) AS consumer_group, CAST(topic AS TEXT) AS topic, partition, offset,
	CAST(metadata AS TEXT) AS metadata, datetime(commit_timestamp / 1000, 'unixepoch') AS committed_at
FROM committed_offsets;

CREATE TABLE consumer_groups (
	consumer_group BLOB NOT NULL PRIMARY KEY,
	record         BLOB NOT NULL -- the value of the group's record in Kafka's __consumer_offsets
) STRICT, WITHOUT ROWID;

CREATE TABLE pending (
	producer     INTEGER NOT NULL,
	record_key   BLOB    NOT NULL, -- key and value as in Kafka's __consumer_offsets
	record_value BLOB,             -- NULL removes what is stored under the key
	PRIMARY KEY (producer, record_key)
) STRICT, WITHOUT ROWID;
`

// migrate makes the tables, or checks that they are those of this version.
func migrate(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	var found int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	switch found {
	case format:
		return nil
	case 0:
		if _, err := tx.ExecContext(ctx, tables+fmt.Sprintf(`PRAGMA user_version = %d`, format)); err != nil {
			return err
		}
		return tx.Commit()
	}
	return fmt.Errorf("%w: the tables are of version %d, not %d", offsets.ErrUnsupported, found, format)
}

// row is an entry in the formats of Kafka's __consumer_offsets.
type row struct{ key, value []byte }

// encode encodes the entries of a batch. It refuses what doesn't fit, before anything is written.
func encode(b offsets.Batch) ([]row, error) {
	rows := make([]row, len(b.Entries))
	for i, e := range b.Entries {
		var err error
		if rows[i].key, err = offsets.AppendKey(nil, e.Key); err != nil {
			return nil, err
		}
		if rows[i].value, err = offsets.AppendValue(nil, e); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// store writes a batch.
func store(ctx context.Context, tx *sql.Tx, b offsets.Batch, rows []row) error {
	switch {
	case b.Producer == nil:
		for i, e := range b.Entries {
			if err := put(ctx, tx, e, rows[i].value); err != nil {
				return err
			}
		}
		return nil
	case b.Ended != offsets.NotEnded:
		return end(ctx, tx, b.Producer.ID, b.Ended)
	}
	for _, r := range rows {
		var value any // a nil []byte would be stored as an empty BLOB
		if r.value != nil {
			value = r.value
		}
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO pending VALUES (?, ?, ?)`, b.Producer.ID, r.key, value); err != nil {
			return err
		}
	}
	return nil
}

// put stores or removes what counts.
func put(ctx context.Context, tx *sql.Tx, e offsets.Entry, value []byte) (err error) {
	group := []byte(e.Group)
	switch o := e.Offset; {
	case o != nil:
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO committed_offsets VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			group, []byte(e.Topic), e.Partition, o.Offset, o.LeaderEpoch, []byte(o.Metadata), o.CommitTimestamp, o.ExpireTimestamp)
	case e.Meta != nil:
		_, err = tx.ExecContext(ctx, `INSERT OR REPLACE INTO consumer_groups VALUES (?, ?)`, group, value)
	case e.Kind == offsets.KindGroup:
		_, err = tx.ExecContext(ctx, `DELETE FROM consumer_groups WHERE consumer_group = ?`, group)
	default:
		_, err = tx.ExecContext(ctx, `DELETE FROM committed_offsets WHERE consumer_group = ? AND topic = ? AND partition = ?`,
			group, []byte(e.Topic), e.Partition)
	}
	return err
}

// end makes what a producer's transaction wrote count, or forgets it.
func end(ctx context.Context, tx *sql.Tx, producer int64, how offsets.End) error {
	if how == offsets.Committed {
		var events []offsets.Event
		err := readPending(ctx, tx, `WHERE producer = ?`, []any{producer}, func(e offsets.Event) error {
			events = append(events, e)
			return nil
		})
		if err != nil {
			return err
		}
		for _, e := range events {
			value, err := offsets.AppendValue(nil, e.Entry)
			if err != nil {
				return err
			}
			if err := put(ctx, tx, e.Entry, value); err != nil {
				return err
			}
		}
	}
	_, err := tx.ExecContext(ctx, `DELETE FROM pending WHERE producer = ?`, producer)
	return err
}

// read gives everything to visit, as of one moment.
func read(ctx context.Context, db *sql.DB, visit func(offsets.Event) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := readOffsets(ctx, tx, visit); err != nil {
		return err
	}
	if err := readGroups(ctx, tx, visit); err != nil {
		return err
	}
	if err := readPending(ctx, tx, "", nil, visit); err != nil {
		return err
	}
	return ctx.Err()
}

func readOffsets(ctx context.Context, tx *sql.Tx, visit func(offsets.Event) error) error {
	return each(ctx, tx, `SELECT consumer_group, topic, partition, offset, leader_epoch, metadata, commit_timestamp, expire_timestamp FROM committed_offsets`,
		nil, func(rows *sql.Rows) error {
			var group, topic, metadata []byte
			var partition int32
			o := &offsets.Offset{}
			err := rows.Scan(&group, &topic, &partition, &o.Offset, &o.LeaderEpoch, &metadata, &o.CommitTimestamp, &o.ExpireTimestamp)
			if err != nil {
				return err
			}
			o.Metadata = string(metadata)
			key := offsets.OffsetKey(string(group), string(topic), partition)
			return visit(offsets.Event{Entry: offsets.Entry{Key: key, Offset: o}, Producer: offsets.None})
		})
}

func readGroups(ctx context.Context, tx *sql.Tx, visit func(offsets.Event) error) error {
	return each(ctx, tx, `SELECT consumer_group, record FROM consumer_groups`, nil, func(rows *sql.Rows) error {
		var group, value []byte
		if err := rows.Scan(&group, &value); err != nil {
			return err
		}
		key, err := offsets.AppendKey(nil, offsets.GroupKey(string(group)))
		if err != nil {
			return err
		}
		return decoded(key, value, offsets.None, visit)
	})
}

func readPending(ctx context.Context, tx *sql.Tx, where string, args []any, visit func(offsets.Event) error) error {
	return each(ctx, tx, `SELECT producer, record_key, record_value FROM pending `+where, args, func(rows *sql.Rows) error {
		var producer int64
		var key, value []byte // value stays nil for NULL
		if err := rows.Scan(&producer, &key, &value); err != nil {
			return err
		}
		return decoded(key, value, producer, visit)
	})
}

// decoded gives a record to visit. This store writes only kinds that it knows, so another one means that the table was
// written by something else.
func decoded(key, value []byte, producer int64, visit func(offsets.Event) error) error {
	entry, known, err := offsets.Decode(key, value)
	switch {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("%w: a key of an unknown kind", offsets.ErrCorrupt)
	}
	return visit(offsets.Event{Entry: entry, Producer: producer})
}

// each calls visit for each row of a query, until an error.
func each(ctx context.Context, tx *sql.Tx, query string, args []any, visit func(*sql.Rows) error) error {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := visit(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
