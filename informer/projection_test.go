// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// shelf serves ConfigMaps, whose every state it remembers.
type shelf struct {
	*fixture.Server
	t  *testing.T
	mu struct {
		sync.Mutex
		version   int
		objects   map[kube.Key]*corev1.ConfigMap
		history   map[string]*corev1.ConfigMap // by version
		watches   map[chan []byte]string       // of a namespace; empty: all
		forbidden map[string]bool              // namespaces
		held      chan struct{}                // lists wait until it is closed; nil: they do not
		lists     int
		text      string // in each object, if it is not empty
	}
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t}
	s.mu.version = 100
	s.mu.objects = map[kube.Key]*corev1.ConfigMap{}
	s.mu.history = map[string]*corev1.ConfigMap{}
	s.mu.watches = map[chan []byte]string{}
	s.mu.forbidden = map[string]bool{}
	s.Server = fixture.Serve(t, s.answer)
	return s
}

func namespaceOf(r *http.Request) string {
	if _, after, ok := strings.Cut(r.URL.Path, "/namespaces/"); ok {
		return strings.Split(after, "/")[0]
	}
	return ""
}

func (s *shelf) answer(w http.ResponseWriter, r *http.Request) {
	ns := namespaceOf(r)
	s.mu.Lock()
	if s.mu.forbidden[ns] {
		s.mu.Unlock()
		fixture.Body(http.StatusForbidden, "application/json", `{"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden","message":"no"}`)(w, r)
		return
	}
	if r.URL.Query().Get("watch") == "true" {
		events := make(chan []byte, 1000)
		since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
		for v := since + 1; v <= s.mu.version; v++ {
			if o := s.mu.history[strconv.Itoa(v)]; o != nil && (ns == "" || ns == o.Namespace) {
				events <- s.frame(o)
			}
		}
		s.mu.watches[events] = ns
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.mu.watches, events)
		}()
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case e := <-events:
				_, _ = w.Write(e)
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}
	s.mu.lists++
	held := s.mu.held
	s.mu.Unlock()
	// The client decides how to decode the list when the answer begins.
	w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	all := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	for _, key := range slices.SortedFunc(maps.Keys(s.mu.objects), func(a, b kube.Key) int { return strings.Compare(a.String(), b.String()) }) {
		if ns == "" || ns == key.Namespace {
			all.Items = append(all.Items, *s.mu.objects[key])
		}
	}
	all.ResourceVersion = strconv.Itoa(s.mu.version)
	s.mu.Unlock()
	_, _ = w.Write(fixture.ProtobufPeer(fixture.TestScheme()).Encode(s.t, all))
}

func (s *shelf) frame(o *corev1.ConfigMap) []byte {
	typ := listwatch.FrameModified
	if o.DeletionTimestamp != nil {
		typ = listwatch.FrameDeleted
	}
	return fixture.Wire(s.t, typ, o)
}

// put writes an object with other content, and returns it.
func (s *shelf) put(key kube.Key) *corev1.ConfigMap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.version++
	v := strconv.Itoa(s.mu.version)
	o := &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Name: key.Name, Namespace: key.Namespace, UID: types.UID("uid-" + key.String()), ResourceVersion: v, Labels: map[string]string{"v": v},
			Annotations: map[string]string{"note": v}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Data: map[string]string{"v": v}, BinaryData: map[string][]byte{"b": []byte(v)},
	}
	if s.mu.text != "" {
		o.Data["text"] = s.mu.text
	}
	s.mu.objects[key], s.mu.history[v] = o, o
	s.send(o)
	return o.DeepCopy()
}

func (s *shelf) remove(key kube.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.mu.objects[key]
	if o == nil {
		return
	}
	delete(s.mu.objects, key)
	s.mu.version++
	gone := o.DeepCopy()
	gone.ResourceVersion, gone.DeletionTimestamp = strconv.Itoa(s.mu.version), &metav1.Time{Time: time.Unix(1, 0)}
	s.mu.history[gone.ResourceVersion] = gone
	s.send(gone)
}

func (s *shelf) send(o *corev1.ConfigMap) {
	for w, ns := range s.mu.watches {
		if ns == "" || ns == o.Namespace {
			w <- s.frame(o)
		}
	}
}

// hold makes lists wait until release is called.
func (s *shelf) hold() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.mu.held = held
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.held = nil
		close(held)
	}
}

func (s *shelf) forbid(ns string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.forbidden[ns] = true
}

func (s *shelf) lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.lists
}

// at returns the object in a version as a handle of set may see it.
func (s *shelf) at(version string, set *fields.Set) *corev1.ConfigMap {
	s.mu.Lock()
	o := s.mu.history[version].DeepCopy()
	s.mu.Unlock()
	o.ManagedFields = nil
	fields.Prune(o, set)
	return o
}

func setOf(t testing.TB, paths ...string) *fields.Set {
	t.Helper()
	if len(paths) == 0 {
		return nil
	}
	s, err := fields.Parse(paths...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shows returns what the object lacks or has wrong of what a handle of set may see; empty:
// nothing.
func (s *shelf) shows(got *corev1.ConfigMap, set *fields.Set) string {
	cut := got.DeepCopy()
	fields.Prune(cut, set)
	if want := s.at(got.ResourceVersion, set); !reflect.DeepEqual(cut, want) {
		return fmt.Sprintf("%s in version %s of the fields %s is %+v, want %+v", kube.KeyOf(got), got.ResourceVersion, set, cut, want)
	}
	return ""
}

var (
	keyA, keyB = kube.Key{Namespace: "prod", Name: "a"}, kube.Key{Namespace: "prod", Name: "b"}
	maps2      = kube.Key{Namespace: "test", Name: "c"}
)

func annotated(scopes ...Scope) Scope {
	s := Scope{}
	if len(scopes) > 0 {
		s = scopes[0]
	}
	s.Fields = []string{"metadata.annotations"}
	return s
}

func TestProjection_KeepsWhatIsNamed_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true, KeepManagedFields: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		stop := runFactory(t, f)
		<-notes.Synced()
		synctest.Wait()
		check := func(when string) {
			t.Helper()
			got, err := notes.Lister().Get(keyA)
			if err != nil || got.Annotations["note"] == "" || got.Labels["v"] == "" || got.UID == "" || got.Data != nil || got.BinaryData != nil || got.ManagedFields != nil {
				t.Errorf("%s: got %+v, error %v, want annotations and what is always kept, and nothing else", when, got, err)
			}
		}
		check("listed")
		s.put(keyA)
		synctest.Wait()
		check("watched")
		answer := s.put(keyA)
		notes.Observe(kube.Written{Kind: notes.Kind(), Key: keyA, UID: answer.UID, Version: kube.ParseVersion(answer.ResourceVersion) + 5, Effect: kube.Stored, Object: func() kube.Object {
			own := answer.DeepCopy()
			own.ResourceVersion = strconv.Itoa(int(kube.ParseVersion(answer.ResourceVersion)) + 5)
			return own
		}()})
		check("written")
		if got := notes.Lister().Fields(); !slices.Equal(got, []string{"metadata.annotations"}) {
			t.Errorf("the Lister says that it keeps %q", got)
		}
		if got := notes.Snapshot().Fields; !slices.Equal(got, []string{"metadata.annotations"}) {
			t.Errorf("the Snapshot says that it keeps %q", got)
		}
		stop()
	})
}

func TestProjection_HandlesShareAWatchOfTheUnion_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		data := For[*corev1.ConfigMap](f, Scope{Fields: []string{"data"}})
		stop := runFactory(t, f)
		<-notes.Synced()
		<-data.Synced()
		synctest.Wait()
		for _, h := range []*SharedInformer[*corev1.ConfigMap]{notes, data} {
			got, err := h.Lister().Get(keyA)
			if err != nil || got.Annotations == nil || got.Data == nil || got.BinaryData != nil {
				t.Errorf("got %+v, error %v, want the union of both handles' fields", got, err)
			}
		}
		if got, want := s.Requests(), []string{"list", "watch 101"}; !slices.Equal(got, want) {
			t.Errorf("requests %q, want %q", got, want)
		}
		if got := data.Lister().Fields(); !slices.Equal(got, []string{"data"}) {
			t.Errorf("the second handle's Lister says that it keeps %q", got)
		}
		third := For[*corev1.ConfigMap](f, Scope{Fields: []string{"metadata.annotations", "data"}})
		synctest.Wait()
		select {
		case <-third.Synced():
		default:
			t.Errorf("a handle for what is kept already is not synced at once")
		}
		if got := s.lists(); got != 1 {
			t.Errorf("%d lists, want 1: what is kept already needs none", got)
		}
		stop()
	})
}

func TestProjection_WiderHandleWaitsForItsList_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		stop := runFactory(t, f)
		<-notes.Synced()
		synctest.Wait()

		release := s.hold()
		whole := For[*corev1.ConfigMap](f)
		var events []string
		if _, err := whole.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
			events = append(events, fmt.Sprintf("%s %s %s", e.Type, e.Key.Name, e.New.Data["v"]))
		}, HandlerOptions{}); err != nil {
			t.Fatal(err)
		}
		s.put(keyB) // while nothing watches
		synctest.Wait()
		select {
		case <-whole.Synced():
			t.Errorf("the wider handle is synced before its list")
		default:
		}
		if _, err := whole.Lister().Get(keyA); !isNotSynced(err) {
			t.Errorf("before its list the wider handle's Get returns %v, want a *NotSyncedError", err)
		}
		if n := len(slices.Collect(whole.Lister().All())); n != 0 || len(events) > 0 {
			t.Errorf("before its list the wider handle sees %d objects and the events %q", n, events)
		}
		if got, err := notes.Lister().Get(keyA); err != nil || got.Annotations == nil {
			t.Errorf("the narrower handle sees %+v, error %v meanwhile", got, err)
		}
		release()
		<-whole.Synced()
		synctest.Wait()
		for _, key := range []kube.Key{keyA, keyB} {
			got, err := whole.Lister().Get(key)
			if err != nil || s.shows(got, nil) != "" {
				t.Errorf("after its list the wider handle sees %+v, error %v", got, err)
			}
		}
		slices.Sort(events)
		if want := []string{"added a 101", "added b 102"}; !slices.Equal(events, want) {
			t.Errorf("the wider handle's events are %q, want %q", events, want)
		}
		if n := whole.Snapshot().Scopes[0].Relists["more fields"]; n != 1 {
			t.Errorf("%d relists for more fields, want 1", n)
		}
		whole.Release()
		s.put(keyA)
		synctest.Wait()
		if got, err := notes.Lister().Get(keyA); err != nil || s.shows(got, nil) != "" {
			t.Errorf("after the wider handle's release: %+v, error %v; the union only grows", got, err)
		}
		stop()
	})
}

// A list that began with fewer fields does not end the wait.
func TestProjection_ListThatBeganBeforeIsNotEnough_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		release := s.hold()
		stop := runFactory(t, f)
		synctest.Wait()
		whole := For[*corev1.ConfigMap](f)
		release()
		<-whole.Synced()
		<-notes.Synced()
		if got, err := whole.Lister().Get(keyA); err != nil || s.shows(got, nil) != "" {
			t.Errorf("synced, the wider handle sees %+v, error %v", got, err)
		}
		stop()
	})
}

// A scope that cannot be listed blocks the handles of others for no more fields.
func TestProjection_ForbiddenScopeBlocksNobody_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		For[*corev1.ConfigMap](f, annotated())
		prod := For[*corev1.ConfigMap](f, annotated(Scope{Namespaces: []string{"prod"}}))
		s.forbid("")
		stop := runFactory(t, f)
		<-prod.Synced()
		whole := For[*corev1.ConfigMap](f, Scope{Namespaces: []string{"prod"}})
		<-whole.Synced()
		if got, err := whole.Lister().Get(keyA); err != nil || s.shows(got, nil) != "" {
			t.Errorf("the wider handle sees %+v, error %v", got, err)
		}
		stop()
	})
}

func TestProjection_ReleasedScopeBlocksNobody_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		all := For[*corev1.ConfigMap](f, annotated())
		prod := For[*corev1.ConfigMap](f, annotated(Scope{Namespaces: []string{"prod"}}))
		s.forbid("")
		stop := runFactory(t, f)
		<-prod.Synced()
		synctest.Wait()
		whole := For[*corev1.ConfigMap](f, Scope{Namespaces: []string{"prod"}})
		synctest.Wait()
		select {
		case <-whole.Synced():
			t.Errorf("the wider handle does not wait for a scope that may still deliver objects with fewer fields")
		default:
		}
		all.Release()
		synctest.Wait()
		select {
		case <-whole.Synced():
		default:
			t.Errorf("the wider handle waits for a scope that has ended")
		}
		stop()
	})
}

func TestProjection_MetadataNeedsAllOfIt_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		data := For[*corev1.ConfigMap](f, Scope{Fields: []string{"data"}})
		stop := runFactory(t, f)
		<-data.Synced()
		metadata := ForMetadata(f, fixture.ConfigMapKind)
		<-metadata.Synced()
		if got, err := metadata.Lister().Get(keyA); err != nil || got.Annotations == nil {
			t.Errorf("the metadata informer sees %+v, error %v, want the annotations", got, err)
		}
		if of := metadata.Snapshot().Scopes[0].SharedWith; of != "" {
			t.Errorf("the metadata informer shares the watch of %s, which lacks the annotations", of)
		}
		stop()
	})
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		all := For[*corev1.ConfigMap](f, Scope{Fields: []string{"metadata"}})
		stop := runFactory(t, f)
		<-all.Synced()
		metadata := ForMetadata(f, fixture.ConfigMapKind)
		<-metadata.Synced()
		if got, err := metadata.Lister().Get(keyA); err != nil || got.Annotations == nil || metadata.Snapshot().Scopes[0].SharedWith == "" {
			t.Errorf("the metadata informer sees %+v, error %v, want the annotations, from the watch that keeps all metadata", got, err)
		}
		stop()
	})
}

// An adapter that is given a handle with Fields has whole objects.
func TestProjection_HandleIsMadeWhole_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		stop := runFactory(t, f)
		<-notes.Synced()
		synctest.Wait()
		if err := notes.KeepAllFields(); err != nil {
			t.Fatal(err)
		}
		if got, err := notes.Lister().Get(keyA); !isNotSynced(err) && (err != nil || s.shows(got, nil) != "") {
			t.Errorf("Get returns %+v and %v, want a *NotSyncedError until it is listed again, then all fields", got, err)
		}
		<-notes.Synced()
		if got, err := notes.Lister().Get(keyA); err != nil || s.shows(got, nil) != "" || notes.Lister().Fields() != nil {
			t.Errorf("it sees %+v with the fields %q, error %v, want all fields", got, notes.Lister().Fields(), err)
		}
		notes.Release()
		if err := notes.KeepAllFields(); err == nil {
			t.Errorf("no error after the release")
		}
		stop()
	})
}

func TestProjection_MisuseSaysWhatToDo_D4(t *testing.T) {
	pods := func(f *SharedInformerFactory, paths ...string) *SharedInformer[*corev1.Pod] {
		return For[*corev1.Pod](f, Scope{Fields: paths})
	}
	for name, c := range map[string]struct {
		err  func(f *SharedInformerFactory) error
		want string
	}{
		"unknown path":    {func(f *SharedInformerFactory) error { return pods(f, "spec.nodename").Err() }, "did you mean nodeName?"},
		"empty path":      {func(f *SharedInformerFactory) error { return pods(f, "").Err() }, "a field path is empty; name a field"},
		"index":           {func(f *SharedInformerFactory) error { return pods(f, "spec.containers[0].image").Err() }, "without an index"},
		"managedFields":   {func(f *SharedInformerFactory) error { return pods(f, "metadata.managedFields").Err() }, "call KeepManagedFields"},
		"keep the latter": {func(f *SharedInformerFactory) error { return pods(f, "spec").KeepManagedFields() }, "leave the Fields out"},
		"metadata": {func(f *SharedInformerFactory) error {
			return ForMetadata(f, fixture.PodKind, Scope{Fields: []string{"metadata.labels"}}).Err()
		}, "keeps only metadata anyway"},
		"transform after": {func(f *SharedInformerFactory) error {
			return pods(f, "spec").SetTransform(func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil })
		}, "drop fields with one of both"},
		"transform before": {func(f *SharedInformerFactory) error {
			if err := For[*corev1.Pod](f).SetTransform(func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil }); err != nil {
				return err
			}
			return pods(f, "spec").Err()
		}, "drop fields with one of both"},
		"other fields": {func(f *SharedInformerFactory) error {
			return pods(f, "spec.nodeName").SetScopes(Scope{Fields: []string{"status"}})
		}, "make another handle"},
		"all fields": {func(f *SharedInformerFactory) error { return pods(f, "spec.nodeName").SetScopes(Scope{}) }, "make another handle"},
		"fewer fields": {func(f *SharedInformerFactory) error {
			return pods(f, "spec").SetScopes(Scope{Fields: []string{"spec.nodeName"}})
		}, ""},
		"no type": {func(f *SharedInformerFactory) error {
			return ForKind(f, fixture.PodKind, Scope{Fields: []string{"spec.any"}}).Err()
		}, ""},
		"one without": {func(f *SharedInformerFactory) error {
			return For[*corev1.Pod](f, annotated(), Scope{Namespaces: []string{"a"}}).Err()
		}, ""},
	} {
		f, _ := factoryOn(t, nil, Options{})
		err := c.err(f)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
	f, _ := factoryOn(t, nil, Options{})
	pods(f, "spec.nodename")
	if err := f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "spec.nodename") {
		t.Errorf("Run returns %v, want the wrong path", err)
	}
}

func TestProjected_WholeObjectsAreTold_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		stop := runFactory(t, f)
		<-notes.Synced()
		told := func(when string, obj kube.Object, want bool) {
			t.Helper()
			kept, got := f.Projected(fixture.ConfigMapKind, obj)
			if got != want || got && !slices.Equal(kept, []string{"metadata.annotations"}) {
				t.Errorf("%s: projected %t with %q, want %t", when, got, kept, want)
			}
		}
		narrow, _ := notes.Lister().Get(keyA)
		other := narrow.DeepCopy()
		other.Data, other.ResourceVersion = map[string]string{"a": "b"}, ""
		loose := looselyOf(t, narrow, fixture.ConfigMapKind)
		told("cached", narrow, true)
		told("a copy", kube.Copy(narrow), true)
		told("a changed copy without version", other, true)
		told("a copy as another type", loose, true)
		told("read from the server", s.at(narrow.ResourceVersion, nil), true) // without managedFields it may be a copy
		live := s.at(narrow.ResourceVersion, nil)
		live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		told("read from the server, with managedFields", live, false)
		told("new", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "a"}}, false)
		if _, got := f.Projected(fixture.PodKind, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u"}}); got {
			t.Errorf("an object of another kind is projected")
		}

		whole := For[*corev1.ConfigMap](f)
		<-whole.Synced()
		synctest.Wait()
		all, _ := whole.Lister().Get(keyA)
		told("whole, by now", kube.Copy(all), false)
		told("narrow, from before", kube.Copy(narrow), true)

		// An apply and a merge patch do not carry the version: the server accepts them of an
		// old one.
		s.put(keyA)
		synctest.Wait()
		told("narrow, of a version that has left the cache", kube.Copy(narrow), true)
		newer, _ := whole.Lister().Get(keyA)
		told("whole, newer than all narrow ones", kube.Copy(newer), false)
		s.put(keyA)
		synctest.Wait()
		told("whole, newer than all narrow ones and no longer in the cache", kube.Copy(newer), false)
		s.remove(keyA)
		synctest.Wait()
		told("narrow, of an object that is gone", kube.Copy(narrow), true)
		told("whole, of an object that is gone", kube.Copy(newer), false)
		stop()
	})
}

// Two informers of one Go type have two versions of a kind: each may have given
// the object.
func TestProjected_EachVersionOfTheKindCounts_D4(t *testing.T) {
	f, _ := factoryOn(t, nil, Options{})
	beta, kind := fixture.ConfigMapKind, fixture.ConfigMapKind
	beta.Version = "v1beta1"
	ForKind(f, beta, annotated())
	ForKind(f, kind, annotated())
	ForKind(f, kind)
	for _, c := range f.cores() {
		c.projection.whole = c.gvk() == kind // as after its list
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "prod", "resourceVersion": "7"}}}
	for range 50 { // the informers are in no order
		if _, projected := f.Projected(kind, u); !projected {
			t.Fatal("an object is told to be whole, although an informer of another version may have given a part of it")
		}
	}
}

// A read that settles a write begins before a handle asks for all fields, and is answered
// after that handle has synced, with a version that the watch does not have yet.
func TestProjection_WhatSettlesAWriteIsWhole_D4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		notes := For[*corev1.ConfigMap](f, annotated())
		stop := runFactory(t, f)
		<-notes.Synced()
		release := s.hold()
		f.Observe(kube.Written{Kind: fixture.ConfigMapKind, Key: keyA, Effect: kube.Touched})
		synctest.Wait()
		s.mu.Lock()
		s.mu.held = nil // for later lists
		s.mu.Unlock()
		whole := For[*corev1.ConfigMap](f)
		<-whole.Synced()
		s.mu.Lock()
		watches := s.mu.watches
		s.mu.watches = nil
		s.mu.Unlock()
		newer := s.put(keyA)
		s.mu.Lock()
		s.mu.watches = watches
		s.mu.Unlock()
		release()
		synctest.Wait()
		got, err := whole.Lister().Get(keyA)
		if err != nil || got.ResourceVersion != newer.ResourceVersion {
			t.Fatalf("read %v, %v; want version %s", got, err, newer.ResourceVersion)
		}
		if wrong := s.shows(got, nil); wrong != "" {
			t.Errorf("the handle of all fields: %s", wrong)
		}
		stop()
	})
}

// plainCodec compresses nothing.
type plainCodec struct{}

func (plainCodec) Compressor([]byte) (compact.Compressor, error) { return plainCodec{}, nil }
func (plainCodec) Expander([]byte) (compact.Expander, error)     { return plainCodec{}, nil }
func (plainCodec) Compress(dst, src []byte) []byte               { return append(dst, src...) }
func (plainCodec) Expand(dst, src []byte) ([]byte, error)        { return append(dst, src...), nil }

// Random handles come and go while objects change. No handle ever sees less than it asked
// for, and in the end all see the server's state.
func TestProjection_NoHandleSeesLess_D4(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 4))
			s := newShelf(t)
			keys := []kube.Key{keyA, keyB, maps2}
			for _, key := range keys {
				s.put(key)
			}
			opts := Options{PagedLists: random.IntN(2) == 0}
			if random.IntN(2) == 0 {
				opts.Compact = Compact{Codec: plainCodec{}, HotObjects: 1}
			}
			f, _ := factoryOn(t, s.Server, opts)
			type user struct {
				*SharedInformer[*corev1.ConfigMap]
				set *fields.Set
				ns  string
			}
			var users []user
			join := func() {
				u := user{ns: []string{"", "prod"}[random.IntN(2)]}
				var paths []string
				for _, path := range []string{"data", "metadata.annotations", "binaryData"} {
					if random.IntN(3) == 0 {
						paths = append(paths, path)
					}
				}
				u.set = setOf(t, paths...)
				scope := Scope{Fields: paths}
				if u.ns != "" {
					scope.Namespaces = []string{u.ns}
				}
				u.SharedInformer = For[*corev1.ConfigMap](f, scope)
				if err := u.Err(); err != nil {
					t.Fatal(err)
				}
				_, err := u.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
					if e.New != nil && e.Type != kube.Deleted {
						if wrong := s.shows(e.New, u.set); wrong != "" {
							t.Errorf("seed %d: event %s: %s", seed, e.Type, wrong)
						}
					}
				}, HandlerOptions{})
				if err != nil {
					t.Fatal(err)
				}
				users = append(users, u)
			}
			join()
			stop := runFactory(t, f)
			for range 30 {
				switch random.IntN(6) {
				case 0:
					if len(users) < 6 {
						join()
					}
				case 1:
					if len(users) > 1 {
						at := random.IntN(len(users))
						users[at].Release()
						users = slices.Delete(users, at, at+1)
					}
				case 2:
					s.remove(keys[random.IntN(len(keys))])
				case 3:
					synctest.Wait()
				case 4:
					o := s.put(keys[random.IntN(len(keys))])
					f.Observe(kube.Written{Kind: fixture.ConfigMapKind, Key: kube.KeyOf(o), UID: o.UID, Version: kube.ParseVersion(o.ResourceVersion), Effect: kube.Stored, Object: o})
				default:
					s.put(keys[random.IntN(len(keys))])
				}
				for _, u := range users {
					for o := range u.Lister().All() {
						if wrong := s.shows(o, u.set); wrong != "" {
							t.Fatalf("seed %d: read: %s", seed, wrong)
						}
					}
				}
			}
			time.Sleep(time.Hour) // of the bubble: every retry is over
			synctest.Wait()
			for _, u := range users {
				select {
				case <-u.Synced():
				default:
					t.Errorf("seed %d: the handle of %q in %q is not synced: %v", seed, u.set, u.ns, u.Snapshot().Scopes)
				}
				seen := map[kube.Key]string{}
				for o := range u.Lister().All() {
					seen[kube.KeyOf(o)] = o.ResourceVersion
				}
				want := map[kube.Key]string{}
				for key, o := range s.mu.objects {
					if u.ns == "" || u.ns == key.Namespace {
						want[key] = o.ResourceVersion
					}
				}
				if !maps.Equal(seen, want) {
					t.Errorf("seed %d: the handle of %q in %q sees %v, want %v", seed, u.set, u.ns, seen, want)
				}
			}
			stop()
		})
	}
}

// Objects have the kind or not as the informer was told, whoever writes them.
func TestInformer_OmitsTheKind_R4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true})
		maps := For[*corev1.ConfigMap](f)
		if err := maps.OmitKind(); err != nil {
			t.Fatal(err)
		}
		stop := runFactory(t, f)
		<-maps.Synced()
		got, err := maps.Lister().Get(keyA)
		if err != nil || got.Kind != "" || got.APIVersion != "" {
			t.Errorf("got %+v, %v; want no kind", got.TypeMeta, err)
		}
		own := kube.Copy(got)
		own.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		own.ResourceVersion = fmt.Sprint(kube.ParseVersion(got.ResourceVersion) + 1)
		maps.Observe(kube.Written{Kind: fixture.ConfigMapKind, Effect: kube.Stored, Key: keyA, UID: own.UID, Version: kube.ParseVersion(own.ResourceVersion), Object: own})
		if got, err = maps.Lister().Get(keyA); err != nil || got.ResourceVersion != own.ResourceVersion || got.Kind != "" {
			t.Errorf("after an own write got %+v at %s, %v; want no kind at %s", got.TypeMeta, got.ResourceVersion, err, own.ResourceVersion)
		}
		if err := For[*corev1.Secret](f).OmitKind(); err == nil {
			t.Error("a kind that is watched already omits its kind from now on")
		}
		stop()
	})
}
