// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// lines are logged or received lines, in order.
type lines struct {
	sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.Lock()
	defer l.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) with(text string) (n int) {
	l.Lock()
	defer l.Unlock()
	for _, line := range l.all {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (l *lines) String() string {
	l.Lock()
	defer l.Unlock()
	slices.Sort(l.all)
	return strings.Join(l.all, ", ")
}

// logTo returns opts with a logger that writes into l.
func logTo(l *lines, opts Options) Options {
	opts.Logger = funcr.New(func(_, args string) { l.add(args) }, funcr.Options{})
	return opts
}

// toldTo records what a handler of i receives.
func toldTo[T kube.Object](t *testing.T, i *SharedInformer[T]) *lines {
	t.Helper()
	l := &lines{}
	_, err := i.AddHandler(func(e kube.Event[T]) { l.add(fmt.Sprintf("%s %s", e.Type, e.Key)) }, HandlerOptions{Undecodable: true, EveryEvent: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// keysOf returns what a Lister yields, with versions.
func keysOf[T kube.Object](i *SharedInformer[T]) string {
	var out []string
	for obj := range i.Lister().All() {
		out = append(out, kube.KeyOf(obj).String()+"@"+obj.GetResourceVersion())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// jsonWatch answers with a watch of JSON texts, and stays open.
func jsonWatch(texts ...string) fixture.Answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", restclient.ContentJSON)
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, strings.Join(texts, "\n")+"\n")
		w.(http.Flusher).Flush()
		fixture.Hang(w, r)
	}
}

const jsonEnd = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}}`

func jsonEvent(typ, apiVersion, kind, name, version, rest string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"prod","name":%q,"uid":%q,"resourceVersion":%q}%s}}`, typ, apiVersion, kind, name, "u-"+name, version, rest)
}

// An object of another kind or apiVersion does not affect the object of its
// name.
func TestInformer_EventOfAnotherKindHarmsNoObject_B7(t *testing.T) {
	healthy, other := fixture.ConfigMap("a", "5"), fixture.ConfigMap("b", "8")
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: *healthy.ObjectMeta.DeepCopy()}
	secret.ResourceVersion = "7"
	run := func(t *testing.T, answer fixture.Answer, make func(f *SharedInformerFactory) *SharedInformer[kube.Object]) {
		synctest.Test(t, func(t *testing.T) {
			log := &lines{}
			f, _ := factoryOn(t, fixture.Serve(t, answer), logTo(log, Options{}))
			i := make(f)
			told := toldTo(t, i)
			defer runFactory(t, f)()
			<-i.Synced()
			synctest.Wait()
			if got, want := keysOf(i), "prod/a@5 prod/b@8"; got != want {
				t.Errorf("the Lister has %q, want %q: what is of another kind must not be taken, nor hide an object", got, want)
			}
			if got, want := told.String(), "added prod/a, added prod/b"; got != want {
				t.Errorf("the handler was told %q, want %q", got, want)
			}
			s := i.Snapshot()
			if s.Scopes[0].State != state.Live || s.Undecodable != 0 || s.Scopes[0].Anomalies.OtherKind != 3 || s.Scopes[0].Anomalies.Total() != 3 {
				t.Errorf("state %v with %d undecodable and anomalies %+v, want Live with 3 of another kind", s.Scopes[0].State, s.Undecodable, s.Scopes[0].Anomalies)
			}
			if n := log.with("of another kind"); n != 1 {
				t.Errorf("%d lines in the log, want one for all of them: %v", n, log)
			}
		})
	}
	t.Run("protobuf", func(t *testing.T) {
		run(t, fixture.Watch(fixture.Hang,
			fixture.Wire(t, listwatch.FrameAdded, healthy), fixture.WireBookmark(t, "6", true),
			fixture.Wire(t, listwatch.FrameAdded, secret), fixture.Wire(t, listwatch.FrameModified, secret), fixture.Wire(t, listwatch.FrameDeleted, secret), fixture.Wire(t, listwatch.FrameAdded, other),
		), func(f *SharedInformerFactory) *SharedInformer[kube.Object] { return ForObject(f, &corev1.ConfigMap{}) })
	})
	json := jsonWatch(
		jsonEvent("ADDED", "v1", "ConfigMap", "a", "5", ""), jsonEnd,
		jsonEvent("MODIFIED", "v1", "Secret", "a", "7", `,"data":["no","map"]`),
		jsonEvent("MODIFIED", "v2", "ConfigMap", "a", "7", ""),
		jsonEvent("DELETED", "v1", "Secret", "a", "7", ""),
		jsonEvent("ADDED", "v1", "ConfigMap", "b", "8", ""),
	)
	t.Run("JSON", func(t *testing.T) {
		run(t, json, func(f *SharedInformerFactory) *SharedInformer[kube.Object] { return ForObject(f, &corev1.ConfigMap{}) })
	})
	t.Run("unstructured", func(t *testing.T) {
		run(t, json, func(f *SharedInformerFactory) *SharedInformer[kube.Object] {
			return ForObject(f, looselyOf(t, &corev1.ConfigMap{}, fixture.ConfigMapKind))
		})
	})
	t.Run("metadata", func(t *testing.T) {
		run(t, json, func(f *SharedInformerFactory) *SharedInformer[kube.Object] {
			return ForObject(f, base.MetadataOf(&corev1.ConfigMap{}, fixture.ConfigMapKind))
		})
	})
}

func jsonItemOf(apiVersion, kind, name, version string) string {
	event := jsonEvent("ADDED", apiVersion, kind, name, version, "")
	return strings.TrimSuffix(event[strings.Index(event, `"object":`)+len(`"object":`):], "}")
}

func listText(apiVersion, kind, version string, items ...string) fixture.Answer {
	return fixture.Body(http.StatusOK, restclient.ContentJSON, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":%q},"items":[%s]}`, apiVersion, kind, version, strings.Join(items, ",")))
}

// An item of another kind in a list does not delete the object of its name.
func TestInformer_ListItemOfAnotherKindHarmsNoObject_B7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, fixture.Serve(t,
			listText("v1", "ConfigMapList", "6", jsonItemOf("v1", "ConfigMap", "a", "5"), jsonItemOf("v1", "ConfigMap", "b", "5"), jsonItemOf("v1", "ConfigMap", "c", "5")),
			jsonWatch(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`),
			listText("v1", "ConfigMapList", "9", jsonItemOf("v1", "Secret", "a", "8"), jsonItemOf("v1", "ConfigMap", "b", "8")),
			jsonWatch(),
		), Options{PagedLists: true})
		i := For[*corev1.ConfigMap](f)
		told := toldTo(t, i)
		defer runFactory(t, f)()
		for i.Snapshot().Scopes[0].Watches < 2 {
			fixture.Pause(t.Context(), time.Minute)
		}
		synctest.Wait()
		if got, want := keysOf(i), "prod/a@5 prod/b@8"; got != want {
			t.Errorf("the Lister has %q, want %q: of a nothing sound was said, c is gone", got, want)
		}
		if got, want := told.String(), "added prod/a, added prod/b, added prod/c, deleted prod/c, updated prod/b"; got != want {
			t.Errorf("the handler was told %q, want %q", got, want)
		}
		if got := i.Snapshot().Scopes[0].Anomalies.OtherKind; got != 1 {
			t.Errorf("%d objects of another kind were counted, want 1", got)
		}
	})
}

// An object outside the scope is dropped, whatever the transform makes of it,
// and one that no longer matches leaves.
func TestInformer_ObjectOutOfScopeIsNotTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(namespace, name, version, app string) *corev1.ConfigMap {
			cm := fixture.ConfigMap(name, version)
			cm.Namespace, cm.UID = namespace, types.UID("u-"+name)
			cm.Labels = map[string]string{"app": app}
			return cm
		}
		gone := object("a", "leaves", "9", "y")
		log := &lines{}
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang,
			fixture.Wire(t, listwatch.FrameAdded, object("a", "stays", "3", "x")), fixture.Wire(t, listwatch.FrameAdded, object("a", "leaves", "4", "x")),
			fixture.Wire(t, listwatch.FrameAdded, object("b", "foreign", "5", "x")), fixture.Wire(t, listwatch.FrameAdded, object("a", "unselected", "5", "y")),
			fixture.Wire(t, listwatch.FrameAdded, object("", "nowhere", "5", "x")),
			fixture.WireBookmark(t, "6", true),
			fixture.Wire(t, listwatch.FrameAdded, object("b", "stays", "7", "x")), fixture.Wire(t, listwatch.FrameModified, object("a", "other", "8", "y")),
			fixture.Wire(t, listwatch.FrameModified, gone), fixture.Wire(t, listwatch.FrameDeleted, object("a", "other", "10", "y")),
		)), logTo(log, Options{}))
		i := For[*corev1.ConfigMap](f, Scope{Namespaces: []string{"a"}, LabelSelector: "app=x"})
		err := i.SetTransform(func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			cm.Labels = nil
			return cm, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		told := toldTo(t, i)
		defer runFactory(t, f)()
		<-i.Synced()
		synctest.Wait()
		if got, want := keysOf(i), "a/stays@3"; got != want {
			t.Errorf("the Lister has %q, want %q", got, want)
		}
		if got, want := told.String(), "added a/leaves, added a/stays, deleted a/leaves"; got != want {
			t.Errorf("the handler was told %q, want %q", got, want)
		}
		if s := i.Snapshot().Scopes[0]; s.State != state.Live || s.Anomalies.OutOfScope != 6 || s.Anomalies.Total() != 6 {
			t.Errorf("state %v, anomalies %+v, want Live and 6 out of scope", s.State, s.Anomalies)
		}
		if n := log.with("should not have sent"); n != 1 {
			t.Errorf("%d lines in the log, want one for all of them: %v", n, log)
		}
	})
}

// Without selectors, only the namespace decides.
func TestInformer_ObjectOfAnotherNamespaceIsNotTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(namespace, version string) *corev1.ConfigMap {
			cm := fixture.ConfigMap("x", version)
			cm.Namespace = namespace
			return cm
		}
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang,
			fixture.Wire(t, listwatch.FrameAdded, in("a", "4")), fixture.Wire(t, listwatch.FrameAdded, in("b", "5")), fixture.WireBookmark(t, "6", true),
			fixture.Wire(t, listwatch.FrameAdded, in("c", "7")), fixture.Wire(t, listwatch.FrameModified, in("a", "8")),
		)), Options{})
		i := For[*corev1.ConfigMap](f, Scope{Namespaces: []string{"a"}})
		told := toldTo(t, i)
		defer runFactory(t, f)()
		<-i.Synced()
		synctest.Wait()
		if got, want := keysOf(i), "a/x@8"; got != want {
			t.Errorf("the Lister has %q, want %q", got, want)
		}
		if got := told.with("b/x") + told.with("c/x"); got != 0 {
			t.Errorf("the handler was told %v, want nothing of other namespaces", told)
		}
		if got := i.Snapshot().Scopes[0].Anomalies.OutOfScope; got != 2 {
			t.Errorf("%d objects out of scope were counted, want 2", got)
		}
	})
}

func TestInformer_ObjectWithANamespaceOfAClusterScopedKindIsNotTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := func(namespace string) *corev1.Node {
			return &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "n", UID: "u", ResourceVersion: "5"}}
		}
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, node("")), fixture.Wire(t, listwatch.FrameAdded, node("a")), fixture.WireBookmark(t, "6", true))), Options{})
		i := For[*corev1.Node](f)
		defer runFactory(t, f)()
		<-i.Synced()
		if got, want := keysOf(i), "/n@5"; got != want {
			t.Errorf("the Lister has %q, want %q", got, want)
		}
		if got := i.Snapshot().Scopes[0].Anomalies.OutOfScope; got != 1 {
			t.Errorf("%d objects out of scope were counted, want 1", got)
		}
	})
}

// Some aggregated APIs give their objects no UID. They are accepted.
func TestInformer_ObjectWithoutUIDIsTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, fixture.Serve(t, fixture.Watch(fixture.Hang, fixture.Wire(t, listwatch.FrameAdded, fixture.ConfigMap("a", "5")), fixture.WireBookmark(t, "6", true), fixture.Wire(t, listwatch.FrameModified, fixture.ConfigMap("a", "7")))), Options{})
		i := For[*corev1.ConfigMap](f)
		told := toldTo(t, i)
		defer runFactory(t, f)()
		<-i.Synced()
		synctest.Wait()
		if got, want := keysOf(i), "prod/a@7"; got != want {
			t.Errorf("the Lister has %q, want %q", got, want)
		}
		if told.with("deleted") != 0 || i.Snapshot().Scopes[0].Anomalies.Total() != 0 {
			t.Errorf("told %v, anomalies %+v; want no deletion and none", told, i.Snapshot().Scopes[0].Anomalies)
		}
	})
}
