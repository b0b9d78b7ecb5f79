// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// formatName is the format that the first record of a journal names.
const formatName = "flyball-simulate-1"

// head is the first record: the store at the time when the file was made.
type head struct {
	Format   string `json:"format"`
	Revision int64  `json:"revision"`
	// Objects is how many there were. One record for each follows.
	Objects int `json:"objects"`
	Counters
}

// Counters count what the server has handed out and must not hand out again.
type Counters struct {
	UIDs      int `json:"uids,omitempty"`
	Addresses int `json:"addresses,omitempty"`
	Ports     int `json:"ports,omitempty"`
}

// JournalRecord is any other record: what a key holds from a revision on.
type JournalRecord struct {
	Revision  int64          `json:"revision"`
	Group     string         `json:"group,omitempty"`
	Resource  string         `json:"resource"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Object    map[string]any `json:"object,omitempty"` // nil: it was deleted
	Corrupt   bool           `json:"corrupt,omitempty"`
	Counters
}

// JournalRecordOf returns the record of a change. given is what was handed out by then.
func JournalRecordOf(c revisions.Change, given Counters) JournalRecord {
	return recordOf(c.Revision, c.Resource, c.Key, c.After, given)
}

func recordOf(revision int64, r schema.GroupResource, key types.NamespacedName, obj *object.Object, given Counters) JournalRecord {
	c := JournalRecord{Revision: revision, Group: r.Group, Resource: r.Resource, Namespace: key.Namespace, Name: key.Name, Counters: given}
	if obj != nil {
		c.Object, c.Corrupt = obj.Fields, obj.Corrupt
	}
	return c
}

// applyTo applies the record to a log.
func (c JournalRecord) applyTo(l *revisions.Log) {
	var obj *object.Object
	if c.Object != nil {
		obj = &object.Object{Fields: c.Object, Corrupt: c.Corrupt}
	}
	l.Set(schema.GroupResource{Group: c.Group, Resource: c.Resource}, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, obj)
}

// appendRecord appends a record: a line of checksum, length and JSON. The checksum is the
// CRC-32C of the rest of the line.
//
//	5b0f2c1a 58 {"revision":7,"resource":"configmaps", … }
func appendRecord(to []byte, record any) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return to, err
	}
	body := strconv.AppendInt(nil, int64(len(text)), 10)
	body = append(append(body, ' '), text...)
	to = fmt.Appendf(to, "%08x ", checksum(body))
	return append(append(to, body...), '\n'), nil
}

func checksum(body []byte) uint32 { return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) }

// errTorn reports a journal whose last record is incomplete.
var errTorn = errors.New("the last record is not whole")

// reader reads a journal record by record.
type reader struct {
	from   *bufio.Reader
	offset int64 // of the next record
}

// next returns the JSON of the next record. It returns io.EOF after the last one, errTorn for
// one without an end, and any other error for a damaged one.
func (r *reader) next() ([]byte, error) {
	line, err := r.from.ReadBytes('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	case err == io.EOF:
		return nil, errTorn
	case err != nil:
		return nil, err
	}
	text, err := textOf(line[:len(line)-1])
	if err != nil {
		return nil, err
	}
	r.offset += int64(len(line))
	return text, nil
}

// textOf returns the JSON of a line.
func textOf(line []byte) ([]byte, error) {
	sum, body, _ := bytes.Cut(line, []byte(" "))
	if string(sum) != fmt.Sprintf("%08x", checksum(body)) {
		return nil, errors.New("its checksum is wrong")
	}
	length, text, _ := bytes.Cut(body, []byte(" "))
	if n, err := strconv.Atoi(string(length)); err != nil || n != len(text) {
		return nil, errors.New("its length is wrong")
	}
	return text, nil
}

// JournalSnapshot is a store without its history. A journal begins with one.
type JournalSnapshot struct {
	head
	objects []JournalRecord
}

// JournalSnapshotOf returns a snapshot of a log. It stays valid when the log changes.
func JournalSnapshotOf(l *revisions.Log, given Counters) JournalSnapshot {
	s := JournalSnapshot{head: head{Format: formatName, Revision: l.Revision, Counters: given}}
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, r := range slices.SortedFunc(maps.Keys(l.Objects), byName) {
		objects, _ := l.List(r, l.Revision)
		for _, obj := range objects {
			s.objects = append(s.objects, recordOf(obj.Revision(), r, obj.Key(), obj, Counters{}))
		}
	}
	s.Objects = len(s.objects)
	return s
}

func (s JournalSnapshot) write(to io.Writer) error {
	out := bufio.NewWriterSize(to, 1<<16)
	line, err := appendRecord(nil, s.head)
	for i := 0; err == nil; i++ {
		if _, err = out.Write(line); err != nil || i == len(s.objects) {
			break
		}
		line, err = appendRecord(line[:0], s.objects[i])
	}
	return errors.Join(err, out.Flush())
}

// JournalContent is what a journal holds.
type JournalContent struct {
	Log   *revisions.Log
	Given Counters

	changes int   // records after the snapshot
	whole   int64 // end of the last complete record
	torn    bool  // an incomplete record follows it
}

// damage reports a journal that is invalid from an offset on.
type damage struct {
	offset int64
	err    error
}

func (d *damage) Error() string { return fmt.Sprintf("the record at offset %d: %v", d.offset, d.err) }
func (d *damage) Unwrap() error { return d.err }

// ReadJournal reads a whole journal. The error is a *damage, unless it is from's own.
func ReadJournal(from io.Reader) (JournalContent, error) {
	r := &reader{from: bufio.NewReaderSize(from, 1<<16)}
	c := JournalContent{Log: revisions.NewLog()}
	var first head
	if err := r.decode(&first); err != nil {
		return c, r.damaged(err)
	}
	if first.Format != formatName {
		return c, r.damaged(fmt.Errorf("the format is %q, and this program knows %q", first.Format, formatName))
	}
	c.Log.Revision, c.Given = first.Revision, first.Counters
	for n := 0; ; n++ {
		began := n < first.Objects // part of the snapshot
		var change JournalRecord
		switch err := r.decode(&change); {
		case !began && (err == io.EOF || err == errTorn):
			c.Log.Compacted = c.Log.Revision
			c.changes, c.whole, c.torn = n-first.Objects, r.offset, err == errTorn
			return c, nil
		case err != nil:
			return c, r.damaged(err)
		}
		change.applyTo(c.Log)
		if !began {
			c.Log.Revision, c.Given = change.Revision, change.Counters
		}
	}
}

// decode reads the next record. Integers stay integers.
func (r *reader) decode(into any) error {
	text, err := r.next()
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
		return fmt.Errorf("it is none of this version: %w", err)
	}
	return nil
}

func (r *reader) damaged(err error) error {
	if err == io.EOF || err == errTorn {
		err = errors.New("the file ends within what it began with")
	}
	return &damage{r.offset, err}
}
