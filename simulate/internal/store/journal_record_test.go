// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// written returns a journal that began with two objects and has five changes since, and the
// offsets at which its records end.
func written(t *testing.T) (text []byte, ends []int) {
	t.Helper()
	l := revisions.NewLog()
	maps, widgets := schema.GroupResource{Resource: "configmaps"}, schema.GroupResource{Group: "example.com", Resource: "widgets"}
	put := func(r schema.GroupResource, name, value string) {
		l.Put(r, types.NamespacedName{Namespace: "ns", Name: name}, &object.Object{Fields: map[string]any{
			"metadata": map[string]any{"namespace": "ns", "name": name},
			"data":     map[string]any{"v": value}, "n": int64(1) << 62, "f": 1.5,
		}, Corrupt: value == "bad"})
	}
	put(maps, "a", "1")
	put(widgets, "b", "bad")
	var out bytes.Buffer
	now := JournalSnapshotOf(l, Counters{UIDs: 2})
	if err := now.write(&out); err != nil {
		t.Fatal(err)
	}
	from := l.Revision
	put(maps, "a", "2")
	put(maps, "line\nbreak", "<>&\u2028")
	l.Remove(widgets, types.NamespacedName{Namespace: "ns", Name: "b"})
	put(maps, "c", "")
	put(widgets, "b", "again")
	changes, _ := l.Since(from, l.Revision)
	text = out.Bytes()
	for i, c := range changes {
		var err error
		if text, err = appendRecord(text, JournalRecordOf(c, Counters{UIDs: 3 + i, Ports: 1})); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range text {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) != 1+2+5 {
		t.Fatalf("%d records, want one a line:\n%s", len(ends), text)
	}
	return text, ends
}

// look returns all that a journal holds, for comparison.
func look(c JournalContent) string {
	var b strings.Builder
	fmt.Fprintln(&b, c.Log.Revision, c.Log.Compacted, c.Given)
	for _, o := range JournalSnapshotOf(c.Log, c.Given).objects {
		fmt.Fprintf(&b, "%+v\n", o)
	}
	return b.String()
}

func readAll(t *testing.T, text []byte) JournalContent {
	t.Helper()
	c, err := ReadJournal(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestJournal_SaysWhatWasWritten_S23(t *testing.T) {
	text, _ := written(t)
	c := readAll(t, text)
	if c.Log.Revision != 8 || c.Log.Compacted != 8 || c.changes != 5 || c.torn || c.whole != int64(len(text)) || c.Given != (Counters{UIDs: 7, Ports: 1}) {
		t.Errorf("got %+v at revision %d, want all five changes", c, c.Log.Revision)
	}
	got := c.Log.Get(schema.GroupResource{Resource: "configmaps"}, types.NamespacedName{Namespace: "ns", Name: "line\nbreak"})
	want := map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "line\nbreak", "resourceVersion": "5"},
		"data":     map[string]any{"v": "<>&\u2028"}, "n": int64(1) << 62, "f": 1.5,
	}
	if got == nil || !reflect.DeepEqual(got.Fields, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var again bytes.Buffer
	if err := JournalSnapshotOf(c.Log, c.Given).write(&again); err != nil {
		t.Fatal(err)
	}
	if shorter := readAll(t, again.Bytes()); look(shorter) != look(c) || shorter.changes != 0 {
		t.Errorf("rewritten it holds %s, want %s", look(shorter), look(c))
	}
}

// However a crash truncates the file, all complete records count, and no other.
func TestJournal_TornAtEachByte_S23(t *testing.T) {
	text, ends := written(t)
	whole := 0
	for n := range text {
		for whole < len(ends) && ends[whole] <= n {
			whole++
		}
		c, err := ReadJournal(bytes.NewReader(text[:n]))
		if whole < 3 {
			if at := (*damage)(nil); !errors.As(err, &at) {
				t.Fatalf("cut after %d bytes, within its snapshot: %v, want damage", n, err)
			}
			continue
		}
		if err != nil || c.changes != whole-3 || c.torn != (n > ends[whole-1]) || c.whole != int64(ends[whole-1]) {
			t.Fatalf("cut after %d bytes: %d changes, torn: %v, whole up to %d, %v; want %d changes", n, c.changes, c.torn, c.whole, err, whole-3)
		}
		if want := readAll(t, text[:ends[whole-1]]); look(c) != look(want) {
			t.Fatalf("cut after %d bytes it holds %s, want %s", n, look(c), look(want))
		}
	}
}

// Each flipped bit is found, and the error names its record. Only without its newline the last
// record looks like one that was not written whole.
func TestJournal_FlippedBits_S23(t *testing.T) {
	text, ends := written(t)
	record := 0
	for i := range text {
		if i == ends[record] {
			record++
		}
		begin := 0
		if record > 0 {
			begin = ends[record-1]
		}
		for bit := range 8 {
			text[i] ^= 1 << bit
			c, err := ReadJournal(bytes.NewReader(text))
			text[i] ^= 1 << bit
			at := (*damage)(nil)
			switch {
			case i == len(text)-1 && err == nil && c.torn && c.changes == 4:
			case !errors.As(err, &at):
				t.Fatalf("bit %d of byte %d is flipped: %v and %d changes, want damage", bit, i, err, c.changes)
			case at.offset != int64(begin):
				t.Fatalf("bit %d of byte %d is flipped: %v, want the record at %d named", bit, i, err, begin)
			}
		}
	}
}

func TestJournal_OfAnotherVersion(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "another format": lineOf(`{"format":"etcd","revision":1,"objects":0}`), "no object": lineOf(`[]`)} {
		if c, err := ReadJournal(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %+v", name, c)
		}
	}
}

func lineOf(text string) string {
	body := fmt.Appendf(nil, "%d %s", len(text), text)
	return fmt.Sprintf("%08x %s\n", checksum(body), body)
}

// No file makes the reader panic, and what it reads can be written and read again.
func FuzzJournal_S23(f *testing.F) {
	f.Add([]byte(lineOf(`{"format":"flyball-simulate-1","revision":3,"objects":1,"uids":2}`) + lineOf(`{"revision":2,"resource":"pods","namespace":"a","name":"b","object":{"metadata":{"name":"b","namespace":"a","resourceVersion":"2"}}}`)))
	f.Add([]byte(lineOf(`{"format":"flyball-simulate-1","revision":-3,"objects":-1}`) + lineOf(`{"revision":0,"resource":"","name":"","object":{"metadata":5}}`) + "torn"))
	f.Add([]byte("00000000 0 \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ReadJournal(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := JournalSnapshotOf(c.Log, c.Given).write(&again); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		if second, err := ReadJournal(&again); err != nil || second.torn {
			t.Errorf("rewritten it cannot be read: %v", err)
		}
	})
}
