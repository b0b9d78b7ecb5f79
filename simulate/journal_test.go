// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// clientsOf are typed clients that send as fast as they can.
func clientsOf(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	cfg.QPS = -1
	clients, err := kubernetes.NewForConfigAndClient(cfg, clientOf(t, cfg))
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func TestJournal_OutlivesTheServer_S23(t *testing.T) {
	data := filepath.Join(t.TempDir(), "not", "there")
	opts := simulate.ListenOptions{Data: data, Options: simulate.Options{Kinds: []simulate.Kind{fixture.WidgetKind}, Namespaces: []string{"ns"}}}
	l, stop := listening(t, opts)
	maps := clientsOf(t, l.Config()).CoreV1().ConfigMaps("ns")
	create := func(obj *corev1.ConfigMap) *corev1.ConfigMap {
		t.Helper()
		obj, err := maps.Create(t.Context(), obj, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj
	}
	create(fixture.ConfigMap("gone", "1"))
	kept := create(fixture.ConfigMap("kept", "1"))
	kept.Data["v"] = "2"
	kept, err := maps.Update(t.Context(), kept, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	drawn := fixture.ConfigMap("", "1")
	drawn.GenerateName = "drawn-"
	drawn = create(drawn)
	if err := maps.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Server().Put(fixture.NewWidget("w", "1")); err != nil { // an observer's, which nobody waits for
		t.Fatal(err)
	}
	revision := l.Server().Revision()
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	l, _ = listening(t, opts)
	maps = clientsOf(t, l.Config()).CoreV1().ConfigMaps("ns")
	if got := l.Server().Revision(); got != revision {
		t.Errorf("started again at revision %d, want %d", got, revision)
	}
	if got, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || got.String() != kept.String() {
		t.Errorf("got %v, %v, want what was acknowledged: %v", got, err, kept)
	}
	if _, err := maps.Get(t.Context(), "gone", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("what was deleted: %v, want NotFound", err)
	}
	if objects := l.Server().Objects(fixture.Widgets); len(objects) != 1 || objects[0].GetName() != "w" {
		t.Errorf("widgets are %v, want w", objects)
	}
	uids := map[any]bool{kept.UID: true, drawn.UID: true}
	for range 20 {
		again := fixture.ConfigMap("", "1")
		again.GenerateName = "drawn-"
		if again = create(again); uids[again.UID] {
			t.Errorf("uid %s was given out before", again.UID)
		}
		uids[again.UID] = true
	}
	kept.Data["v"] = "3"
	if _, err := maps.Update(t.Context(), kept, metav1.UpdateOptions{}); err != nil {
		t.Errorf("an update of the version from before: %v", err)
	}
	opts1 := metav1.ListOptions{ResourceVersion: "2"}
	if w, err := maps.Watch(t.Context(), opts1); err != nil {
		t.Error(err)
	} else if e := <-w.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("a watch from before the start: %v, want 410: that history is gone", e)
	}
}

// At whatever moment the process is killed, what was acknowledged is there.
func TestJournal_AcknowledgedIsInTheFile_S23(t *testing.T) {
	data, copied := t.TempDir(), t.TempDir()
	l, _ := listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data})
	maps := clientsOf(t, l.Config()).CoreV1().ConfigMaps("ns")
	var acknowledged sync.Map
	var writers sync.WaitGroup
	enough := make(chan struct{})
	for n := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-enough:
					return
				default:
				}
				obj, err := maps.Create(t.Context(), fixture.ConfigMap(fmt.Sprintf("m-%d-%d", n, i), "1"), metav1.CreateOptions{})
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				acknowledged.Store(obj.Name, obj.ResourceVersion)
			}
		})
	}
	for n := range 10 {
		want := map[string]string{}
		acknowledged.Range(func(name, version any) bool {
			want[name.(string)] = version.(string)
			return true
		})
		text, err := os.ReadFile(filepath.Join(data, "journal"))
		if err != nil {
			t.Fatal(err)
		}
		there := filepath.Join(copied, fmt.Sprint(n))
		if err := os.MkdirAll(there, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(there, "journal"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		second, stop := listening(t, simulate.ListenOptions{Data: there, Logger: funcr.New(func(string, string) {}, funcr.Options{})})
		for _, obj := range second.Server().Objects(fixture.ConfigMaps) {
			if version, ok := want[obj.GetName()]; ok && version == obj.GetResourceVersion() {
				delete(want, obj.GetName())
			}
		}
		if len(want) > 0 {
			t.Errorf("killed, and started again without %v, which were acknowledged", want)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	close(enough)
	writers.Wait()
}

func TestJournal_OneProcessHasIt(t *testing.T) {
	data := t.TempDir()
	_, stop := listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data})
	if _, err := simulate.Listen(simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data}); err == nil || !strings.Contains(err.Error(), "another process has it; stop that, or name another directory") {
		t.Errorf("a second server in one directory: %v, want a refusal that says what to do", err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data})
}

// A crash costs the record that was being written, which is said, and nothing
// else; damage costs nothing by itself.
func TestJournal_StartsAfterACrash_S23(t *testing.T) {
	data := t.TempDir()
	path := filepath.Join(data, "journal")
	l, stop := listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data})
	put := func(names ...string) {
		for _, name := range names {
			if _, err := l.Server().Put(fixture.ConfigMap(name, "1")); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("a", "b")
	stop()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(whole[:len(whole)-7])
	var said []string
	log := funcr.New(func(prefix, args string) { said = append(said, prefix+args) }, funcr.Options{})
	l, stop = listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data, Logger: log})
	if len(said) != 1 || !strings.Contains(said[0], "was not written whole and is dropped") {
		t.Errorf("said %q, want one line about what is lost", said)
	}
	put("c")
	stop()
	l, stop = listening(t, simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data, Logger: log})
	var names []string
	for _, obj := range l.Server().Objects(fixture.ConfigMaps) {
		names = append(names, obj.GetName())
	}
	stop()
	if fmt.Sprint(names) != "[a c]" || len(said) != 1 {
		t.Errorf("there are %v, and %q was said; want a and c, and nothing more", names, said)
	}

	damaged := bytes.Replace(whole, []byte(`"a"`), []byte(`"x"`), 1)
	write(damaged)
	offset := bytes.LastIndexByte(whole[:bytes.Index(whole, []byte(`"a"`))], '\n') + 1
	_, err = simulate.Listen(simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s is damaged: the record at offset %d: its checksum is wrong; put back a copy", path, offset)) {
		t.Errorf("damage: %v, want the file, the offset and what to do", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, damaged) {
		t.Errorf("the damaged file was changed (%v): a person may yet save it", err)
	}
}

// What is mostly about what is no more is written anew, and says the same.
func TestJournal_WrittenAnew(t *testing.T) {
	data := t.TempDir()
	opts := simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"ns"}}, Data: data}
	l, stop := listening(t, opts)
	for n := range 10_100 {
		if _, err := l.Server().Put(fixture.ConfigMap("a", fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
	}
	revision := l.Server().Revision()
	stop()
	l, stop = listening(t, opts)
	info, err := os.Stat(filepath.Join(data, "journal"))
	if err != nil || info.Size() > 10_000 {
		t.Errorf("%d bytes, %v, for one object", info.Size(), err)
	}
	if objects := l.Server().Objects(fixture.ConfigMaps); l.Server().Revision() != revision || len(objects) != 1 || objects[0].GetResourceVersion() != fmt.Sprint(revision) {
		t.Errorf("%v at revision %d, want a at %d", objects, l.Server().Revision(), revision)
	}
	stop()
	if left, err := os.ReadDir(data); err != nil || len(left) != 2 {
		t.Errorf("there are %v, %v, want journal and lock", left, err)
	}
}

func TestJournal_WhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := simulate.Listen(simulate.ListenOptions{Data: file}); err == nil || !strings.Contains(err.Error(), "name a directory that you can write to") {
		t.Errorf("a file as the directory: %v, want an error that says what to do", err)
	}
}

// A namespace that was there at the start and has been deleted is not there again
// after a restart.
func TestJournal_DeletedNamespaceStaysDeleted_S23(t *testing.T) {
	opts := simulate.ListenOptions{Data: t.TempDir(), Options: simulate.Options{Namespaces: []string{"gone", "kept"}}}
	l, stop := listening(t, opts)
	namespaces := clientsOf(t, l.Config()).CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ending, err := namespaces.Get(t.Context(), "gone", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ending.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(t.Context(), ending, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	l, _ = listening(t, opts)
	namespaces = clientsOf(t, l.Config()).CoreV1().Namespaces()
	if _, err := namespaces.Get(t.Context(), "gone", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the deleted namespace: %v, want NotFound", err)
	}
	for _, name := range []string{"kept", "default"} {
		if _, err := namespaces.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
}
