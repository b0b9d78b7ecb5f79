// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// memory is a Store of what is put into it.
type memory struct {
	mu  sync.Mutex
	log *revisions.Log
}

func (s *memory) Begin() Tx {
	s.mu.Lock()
	return locked{s}
}

func (s *memory) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	tx := s.Begin()
	defer tx.End()
	return tx.Get(r, key)
}

func (s *memory) Lists(of ...schema.GroupResource) (out [][]*object.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range of {
		objects, _ := s.log.List(r, s.log.Revision)
		out = append(out, objects)
	}
	return out
}

type locked struct{ in *memory }

func (tx locked) Get(r schema.GroupResource, key types.NamespacedName) *object.Object {
	return tx.in.log.Get(r, key)
}

func (tx locked) Put(r schema.GroupResource, obj *object.Object) *object.Object {
	return tx.in.log.Put(r, obj.Key(), obj)
}

func (tx locked) Remove(r schema.GroupResource, key types.NamespacedName) *object.Object {
	return tx.in.log.Remove(r, key)
}

func (tx locked) End() { tx.in.mu.Unlock() }

// between is an Admission that allows all, and calls itself before each mutation.
type between func(*webhooks.Call)

func (f between) Mutate(_ context.Context, call *webhooks.Call) error {
	if f != nil {
		f(call)
	}
	return nil
}

func (between) Validate(context.Context, *webhooks.Call) error { return nil }

type everyRight struct{}

func (everyRight) Escalates(access.User, *kinds.Kind, *object.Object, *object.Object) error {
	return nil
}

// newPath returns a Path whose store has the namespace default.
func newPath(t *testing.T, admission between) (*Path, *memory) {
	t.Helper()
	store := &memory{log: revisions.NewLog()}
	path := &Path{Store: store, Kinds: kinds.NewRegistry(), Rights: everyRight{}, Admission: admission, Allotter: NewAllotter(1)}
	store.log.Put(object.Namespaces, types.NamespacedName{Name: "default"}, &object.Object{Fields: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"},
	}})
	return path, store
}

// about returns a write of the ConfigMap default/a.
func about(verb, media, body string) *Request {
	q := &Request{
		Verb: verb, Kind: kinds.NewRegistry().Kind(corev1.SchemeGroupVersion.WithKind("ConfigMap")), Namespace: "default", Name: "a",
		Media: media, Body: []byte(body), Manager: "m", Validation: metav1.FieldValidationWarn,
	}
	if verb == "create" {
		q.Name = ""
	}
	return q
}

const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"n":"0"}}`

func TestPath_PatchThatLosesARaceIsRetried_S8(t *testing.T) {
	var path *Path
	races := 2
	path, store := newPath(t, func(call *webhooks.Call) {
		if call.Operation != "UPDATE" || races == 0 {
			return
		}
		races--
		tx := path.Store.Begin()
		defer tx.End()
		other := tx.Get(object.ConfigMaps, call.Old.Key()).Copy()
		jsontree.SetIn(other.Fields, "1", "data", fmt.Sprintf("other%d", races))
		tx.Put(object.ConfigMaps, other)
	})
	if _, _, err := path.Do(t.Context(), about("create", runtime.ContentTypeJSON, configMap)); err != nil {
		t.Fatal(err)
	}
	obj, created, err := path.Do(t.Context(), about("patch", string(types.MergePatchType), `{"data":{"n":"1"}}`))
	if err != nil || created {
		t.Fatalf("patch: created %t, %v", created, err)
	}
	if got := fmt.Sprint(obj.Fields["data"]); got != "map[n:1 other0:1 other1:1]" || races != 0 {
		t.Errorf("after %d races more the data is %s, want that of all three writers", races, got)
	}
	if held := store.Get(object.ConfigMaps, obj.Key()); held.Meta().GetResourceVersion() != obj.Meta().GetResourceVersion() {
		t.Errorf("answered with version %s, stored %s", obj.Meta().GetResourceVersion(), held.Meta().GetResourceVersion())
	}
}

func TestPath_DryRunsStoreNothing_S12(t *testing.T) {
	path, store := newPath(t, nil)
	write := func(q *Request) error {
		q.DryRun = true
		before := store.log.Revision
		_, _, err := path.Do(t.Context(), q)
		if store.log.Revision != before {
			t.Errorf("a dry run of %s %s has made a revision", q.Verb, q.Media)
		}
		return err
	}
	if err := write(about("create", runtime.ContentTypeJSON, configMap)); err != nil {
		t.Error(err)
	}
	if _, _, err := path.Do(t.Context(), about("create", runtime.ContentTypeJSON, configMap)); err != nil {
		t.Fatal(err)
	}
	for _, q := range []*Request{
		about("update", runtime.ContentTypeJSON, `{"metadata":{"name":"a"},"data":{"n":"1"}}`),
		about("patch", string(types.MergePatchType), `{"data":{"n":"1"}}`),
		about("patch", string(types.ApplyYAMLPatchType), `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"m":"1"}}`),
	} {
		if err := write(q); err != nil {
			t.Errorf("%s %s: %v", q.Verb, q.Media, err)
		}
	}
	q := about("delete", "", "")
	q.DryRun = true
	before := store.log.Revision
	if _, removed, err := path.Delete(t.Context(), q, &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || !removed || store.log.Revision != before {
		t.Errorf("dry run of a delete: removed %t, %v, at revision %d of %d", removed, err, store.log.Revision, before)
	}
}

func TestPath_EndedRequestWritesNothing(t *testing.T) {
	path, store := newPath(t, nil)
	if _, _, err := path.Do(t.Context(), about("create", runtime.ContentTypeJSON, configMap)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := store.log.Revision
	if _, _, err := path.Do(ctx, about("patch", string(types.MergePatchType), `{"data":{"n":"1"}}`)); !apierrors.IsTimeout(err) {
		t.Errorf("patch: got %v, want a timeout", err)
	}
	if _, _, err := path.Delete(ctx, about("delete", "", ""), &metav1.DeleteOptions{}); !apierrors.IsTimeout(err) {
		t.Errorf("delete: got %v, want a timeout", err)
	}
	if store.log.Revision != before {
		t.Error("a request that has ended was carried out")
	}
}

func TestPath_NewObjectsNeedTheirNamespace(t *testing.T) {
	path, store := newPath(t, nil)
	create := func() error {
		_, _, err := path.Do(t.Context(), about("create", runtime.ContentTypeJSON, configMap))
		return err
	}
	key := types.NamespacedName{Name: "default"}
	home := store.Get(object.Namespaces, key).Copy()
	home.Meta().SetDeletionTimestamp(new(metav1.Now()))
	store.log.Put(object.Namespaces, key, home)
	if err := create(); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("in a namespace that is being deleted: got %v", err)
	}
	store.log.Remove(object.Namespaces, key)
	if err := create(); !apierrors.IsNotFound(err) {
		t.Errorf("in no namespace: got %v", err)
	}
	if objects := store.Lists(object.ConfigMaps)[0]; len(objects) > 0 {
		t.Errorf("%d objects are stored", len(objects))
	}
}

func TestPath_GeneratedNamesAvoidTakenOnes(t *testing.T) {
	path, _ := newPath(t, nil)
	var names []string
	for range 3 {
		path.Allotter = NewAllotter(1) // draws the same names again
		q := about("create", runtime.ContentTypeJSON, `{"metadata":{"generateName":"a-"}}`)
		obj, _, err := path.Do(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if name := obj.Meta().GetName(); slices.Contains(names, name) {
			t.Errorf("%s was created twice", name)
		} else {
			names = append(names, name)
		}
	}
}
