// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

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

// journalFormat is what the first record of a journal says it is.
const journalFormat = "flyball-simulate-1"

// journalHead is the first record: the store as it was when the file was made.
type journalHead struct {
	Format   string `json:"format"`
	Revision int64  `json:"revision"`
	// Objects that there were: one record each follows.
	Objects int `json:"objects"`
	counters
}

// counters are what the server has given out, and must not give out again.
type counters struct {
	UIDs      int `json:"uids,omitempty"`
	Addresses int `json:"addresses,omitempty"`
	Ports     int `json:"ports,omitempty"`
}

// journalChange is any other record: what is under a key from a revision on.
type journalChange struct {
	Revision  int64          `json:"revision"`
	Group     string         `json:"group,omitempty"`
	Resource  string         `json:"resource"`
	Namespace string         `json:"namespace,omitempty"`
	Name      string         `json:"name"`
	Object    map[string]any `json:"object,omitempty"` // none: it was deleted
	Poison    bool           `json:"poison,omitempty"`
	counters
}

func journalChangeOf(revision int64, r schema.GroupResource, key types.NamespacedName, obj *object.Object, given counters) journalChange {
	c := journalChange{Revision: revision, Group: r.Group, Resource: r.Resource, Namespace: key.Namespace, Name: key.Name, counters: given}
	if obj != nil {
		c.Object, c.Poison = obj.Fields, obj.Poison
	}
	return c
}

// applyTo does to a store what the record says.
func (c journalChange) applyTo(l *revisions.Log) {
	var obj *object.Object
	if c.Object != nil {
		obj = &object.Object{Fields: c.Object, Poison: c.Poison}
	}
	l.Set(schema.GroupResource{Group: c.Group, Resource: c.Resource}, types.NamespacedName{Namespace: c.Namespace, Name: c.Name}, obj)
}

// appendRecord appends a record to a journal: a line of checksum, length and
// JSON. The checksum is the CRC-32C of what follows it.
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

// errTorn is the end of a journal whose last record was not written whole.
var errTorn = errors.New("the last record is not whole")

// journalReader reads a journal record by record.
type journalReader struct {
	from   *bufio.Reader
	offset int64 // of the next record
}

// next is the next record's JSON: io.EOF after the last, errTorn where a record
// begins that does not end, else what is wrong with the one at the offset.
func (r *journalReader) next() ([]byte, error) {
	line, err := r.from.ReadBytes('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	case err == io.EOF:
		return nil, errTorn
	case err != nil:
		return nil, err
	}
	text, err := recordOf(line[:len(line)-1])
	if err != nil {
		return nil, err
	}
	r.offset += int64(len(line))
	return text, nil
}

// recordOf is the JSON in a line.
func recordOf(line []byte) ([]byte, error) {
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

// snapshot is a store without its history, as a journal begins.
type snapshot struct {
	journalHead
	objects []journalChange
}

func snapshotOf(l *revisions.Log, given counters) snapshot {
	s := snapshot{journalHead: journalHead{Format: journalFormat, Revision: l.Revision, counters: given}}
	byName := func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }
	for _, r := range slices.SortedFunc(maps.Keys(l.Objects), byName) {
		objects, _ := l.List(r, l.Revision)
		for _, obj := range objects {
			s.objects = append(s.objects, journalChangeOf(obj.Revision(), r, obj.Key(), obj, counters{}))
		}
	}
	s.Objects = len(s.objects)
	return s
}

func (s snapshot) write(to io.Writer) error {
	out := bufio.NewWriterSize(to, 1<<16)
	line, err := appendRecord(nil, s.journalHead)
	for i := 0; err == nil; i++ {
		if _, err = out.Write(line); err != nil || i == len(s.objects) {
			break
		}
		line, err = appendRecord(line[:0], s.objects[i])
	}
	return errors.Join(err, out.Flush())
}

// journalContent is what a journal says.
type journalContent struct {
	log     *revisions.Log
	given   counters
	changes int   // records that a shorter journal would do without, or some of them
	whole   int64 // where the last whole record ends
	torn    bool  // there is the beginning of another
}

// damage is a journal that cannot be trusted from an offset on.
type damage struct {
	offset int64
	err    error
}

func (d *damage) Error() string { return fmt.Sprintf("the record at offset %d: %v", d.offset, d.err) }
func (d *damage) Unwrap() error { return d.err }

// readJournal reads a whole journal. The error is a *damage, unless from's.
func readJournal(from io.Reader) (journalContent, error) {
	r := &journalReader{from: bufio.NewReaderSize(from, 1<<16)}
	c := journalContent{log: revisions.NewLog()}
	var head journalHead
	if err := r.decode(&head); err != nil {
		return c, r.damaged(err)
	}
	if head.Format != journalFormat {
		return c, r.damaged(fmt.Errorf("the format is %q, and this program knows %q", head.Format, journalFormat))
	}
	c.log.Revision, c.given = head.Revision, head.counters
	for n := 0; ; n++ {
		began := n < head.Objects // as the file did
		var change journalChange
		switch err := r.decode(&change); {
		case !began && (err == io.EOF || err == errTorn):
			c.log.Compacted = c.log.Revision
			c.changes, c.whole, c.torn = n-head.Objects, r.offset, err == errTorn
			return c, nil
		case err != nil:
			return c, r.damaged(err)
		}
		change.applyTo(c.log)
		if !began {
			c.log.Revision, c.given = change.Revision, change.counters
		}
	}
}

// decode reads the next record. Whole numbers stay whole.
func (r *journalReader) decode(into any) error {
	text, err := r.next()
	if err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, into); err != nil {
		return fmt.Errorf("it is none of this version: %w", err)
	}
	return nil
}

func (r *journalReader) damaged(err error) error {
	if err == io.EOF || err == errTorn {
		err = errors.New("the file ends within what it began with")
	}
	return &damage{r.offset, err}
}
