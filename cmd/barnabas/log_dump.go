package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/barnabas-mq/barnabas/core/log/inspect"
	"github.com/barnabas-mq/barnabas/core/record"
)

func newLogDump(a *app) *cobra.Command {
	var f inspecting
	var format string
	cmd := &cobra.Command{
		Use:   "dump FILE|DIR...",
		Short: "Show what is in the files of a log",
		Long: `Shows segments batch by batch, and entry by entry the offset, time and transaction indexes, producer snapshots, leader epochs,
partition.metadata and checkpoints. Of a directory, all such files. --deep shows the records, too.

Damage is shown where it is. The exit code is 1 when there is any, or something couldn't be read.`,
		Example: `  barnabas log dump data/clicks-0/00000000000000000000.log
  barnabas log dump --deep -o json data/clicks-0 | jq 'select(.kind == "record")'`,
		Args: someOf("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "plain" && format != "json" {
				return wrong(fmt.Errorf("--format: want plain or json, not %q", format))
			}
			var files []string
			for _, arg := range args {
				found, err := dumpable(arg)
				if err != nil {
					return err
				}
				files = append(files, found...)
			}
			return f.run(cmd.Context(), a, func(codecs record.Codecs) error {
				d := dump{out: a.out, codecs: codecs, limit: f.recordLimit()}
				if format == "json" {
					d.json = json.NewEncoder(a.out)
					d.json.SetEscapeHTML(false)
				}
				return d.files(files)
			})
		},
	}
	f.flags(cmd, "show the records, too")
	cmd.Flags().StringVarP(&format, "format", "o", "plain", "how to print: plain or json (one object a line)")
	return cmd
}

// dumpable lists the files that are meant by an argument: itself, or what a directory has of them.
func dumpable(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	if err != nil {
		return nil, wrong(err)
	}
	if !info.IsDir() {
		if t, _ := inspect.TypeOf(arg); t == inspect.Unknown {
			return nil, wrong(fmt.Errorf("%s: the name is of no file of a log, such as 00000000000000000000.log", arg))
		}
		return []string{arg}, nil
	}
	place, err := inspect.PlaceOf(arg)
	if err != nil {
		return nil, err
	}
	if place == inspect.Elsewhere {
		return nil, wrong(fmt.Errorf("%s is neither a log directory nor a partition's", arg))
	}
	list, err := os.ReadDir(arg)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range list {
		path := filepath.Join(arg, e.Name())
		t, _ := inspect.TypeOf(path)
		switch {
		case !e.IsDir() && t != inspect.Unknown:
			files = append(files, path)
		case e.IsDir() && place == inspect.LogDirectory && inspect.IsPartition(e.Name()):
			within, err := dumpable(path)
			if err != nil && !errors.As(err, new(wrongError)) {
				return nil, err
			} // one that is empty, or gone meanwhile, has nothing to show
			files = append(files, within...)
		}
	}
	return files, nil
}

// dump prints files.
type dump struct {
	out    io.Writer
	json   *json.Encoder // nil for plain text
	codecs record.Codecs // nil when records aren't shown
	limit  int

	file    string
	damaged int
	failed  error // of printing
}

// item is one line: of a segment, an index, or another file.
type item interface {
	text() string
	is(kind, file string)
}

// head is what each item has.
type head struct {
	Kind string `json:"kind"`
	File string `json:"file"`
}

func (h *head) is(kind, file string) { h.Kind, h.File = kind, file }

// show prints an item; false when that isn't possible any more.
func (d *dump) show(kind string, i item) bool {
	if d.failed != nil {
		return false
	}
	i.is(kind, d.file)
	if d.json != nil {
		d.failed = d.json.Encode(i)
	} else {
		_, d.failed = fmt.Fprintln(d.out, i.text())
	}
	return d.failed == nil
}

// damage prints what is wrong, at a position or -1.
func (d *dump) damage(position int64, kind inspect.Kind, reason string) {
	if kind != inspect.Preallocated {
		d.damaged++
	}
	d.show("damage", &shownDamage{Position: position, Reason: reason, Preallocated: kind == inspect.Preallocated})
}

func (d *dump) files(files []string) error {
	var unread []error
	for _, file := range files {
		err := d.one(file)
		if d.failed != nil {
			return d.failed
		}
		if err != nil && !(len(files) > 1 && errors.Is(err, fs.ErrNotExist)) { // of several, one may go meanwhile
			unread = append(unread, err)
		}
	}
	if err := errors.Join(unread...); err != nil {
		return err
	}
	if d.damaged > 0 {
		return fmt.Errorf("damage in %s", counted(d.damaged, "place"))
	}
	return nil
}

func (d *dump) one(file string) error {
	d.file = file
	t, base := inspect.TypeOf(file)
	if t == inspect.Log {
		return d.segment()
	}
	b, err := inspect.ReadFile(file)
	if err != nil {
		return err
	}
	d.show("file", &shownFile{Bytes: int64(len(b))})
	zeros := 0
	switch t {
	case inspect.OffsetIndex:
		var list []inspect.OffsetEntry
		list, zeros, err = inspect.ReadOffsetIndex(b, base)
		for _, e := range list {
			d.show("offset", &shownOffset{OffsetEntry: e})
		}
	case inspect.TimeIndex:
		var list []inspect.TimeEntry
		list, zeros, err = inspect.ReadTimeIndex(b, base)
		for _, e := range list {
			d.show("time", &shownTime{TimeEntry: e})
		}
	case inspect.TxnIndex:
		var list []inspect.TxnEntry
		list, err = inspect.ReadTxnIndex(b)
		for _, e := range list {
			d.show("aborted", &shownTxn{TxnEntry: e})
		}
	case inspect.Snapshot:
		var list []inspect.Producer
		list, err = inspect.ReadSnapshot(b)
		for _, p := range list {
			d.show("producer", &shownProducer{Producer: p})
		}
	case inspect.Epochs:
		var list []inspect.Epoch
		list, err = inspect.ReadEpochs(b)
		for _, e := range list {
			d.show("epoch", &shownEpoch{Epoch: e})
		}
	case inspect.Metadata:
		var id string
		if id, err = inspect.ReadMetadata(b); err == nil {
			d.show("metadata", &shownMetadata{TopicID: id})
		}
	case inspect.Offsets:
		var list []inspect.Offset
		list, err = inspect.ReadOffsets(b)
		for _, o := range list {
			d.show("checkpoint", &shownCheckpoint{Offset: o})
		}
	}
	if zeros > 0 {
		d.damage(-1, inspect.Preallocated, counted(zeros, "preallocated slot"))
	}
	if err != nil {
		d.damage(-1, inspect.Corrupt, err.Error())
	}
	return nil
}

func (d *dump) segment() error {
	s, err := inspect.OpenSegment(d.file)
	if err != nil {
		return err
	}
	defer s.Close()
	s.Patience = appendPatience
	d.show("file", &shownFile{Bytes: s.Size()})
	for b, err := range s.Batches() {
		var damage *inspect.Damage
		if errors.As(err, &damage) {
			if b.Length > 0 {
				d.show("batch", newShownBatch(b))
			}
			d.damage(damage.Position, damage.Kind, damage.Reason)
			continue
		}
		if err != nil {
			return err
		}
		if !d.show("batch", newShownBatch(b)) {
			return nil
		}
		if d.codecs == nil {
			continue
		}
		for r, err := range b.Each(d.codecs, d.limit) {
			if err != nil {
				d.damage(b.Position, inspect.Corrupt, "records: "+err.Error())
				break
			}
			if !d.show("record", newShownLogRecord(r, b.Attributes.Control())) {
				return nil
			}
		}
	}
	return nil
}
