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

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// lines are what is logged or told, in order.
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

// logTo is opts with a logger that writes into l.
func logTo(l *lines, opts Options) Options {
	opts.Logger = funcr.New(func(_, args string) { l.add(args) }, funcr.Options{})
	return opts
}

// toldTo has a handler of i write down what it is told.
func toldTo[T Object](t *testing.T, i *SharedInformer[T]) *lines {
	t.Helper()
	l := &lines{}
	_, err := i.AddHandler(func(e Event[T]) { l.add(fmt.Sprintf("%s %s", e.Type, e.Key)) }, HandlerOptions{Undecodable: true, EveryEvent: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// keysOf are what a Lister yields, with versions.
func keysOf[T Object](i *SharedInformer[T]) string {
	var out []string
	for obj := range i.Lister().All() {
		out = append(out, KeyOf(obj).String()+"@"+obj.GetResourceVersion())
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// jsonWatch answers with a watch of JSON texts, and stays open.
func jsonWatch(texts ...string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentJSON)
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, strings.Join(texts, "\n")+"\n")
		w.(http.Flusher).Flush()
		hang(w, r)
	}
}

const jsonEnd = `{"type":"BOOKMARK","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"6","annotations":{"k8s.io/initial-events-end":"true"}}}}`

func jsonEvent(typ, apiVersion, kind, name, version, rest string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"prod","name":%q,"uid":%q,"resourceVersion":%q}%s}}`, typ, apiVersion, kind, name, "u-"+name, version, rest)
}

// What is of another kind or apiVersion says nothing of the object of its name.
func TestInformer_EventOfAnotherKindHarmsNoObject_B7(t *testing.T) {
	healthy, other := configMap("a", "5"), configMap("b", "8")
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: *healthy.ObjectMeta.DeepCopy()}
	secret.ResourceVersion = "7"
	run := func(t *testing.T, answer answer, make func(f *SharedInformerFactory) *SharedInformer[Object]) {
		synctest.Test(t, func(t *testing.T) {
			log := &lines{}
			f, _ := factoryOn(t, serve(t, answer), logTo(log, Options{}))
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
			if s.Scopes[0].State != StateLive || s.Undecodable != 0 || s.Scopes[0].Anomalies.OtherKind != 3 || s.Scopes[0].Anomalies.Total() != 3 {
				t.Errorf("state %v with %d undecodable and anomalies %+v, want Live with 3 of another kind", s.Scopes[0].State, s.Undecodable, s.Scopes[0].Anomalies)
			}
			if n := log.with("of another kind"); n != 1 {
				t.Errorf("%d lines in the log, want one for all of them: %v", n, log)
			}
		})
	}
	t.Run("protobuf", func(t *testing.T) {
		run(t, watch(hang,
			wire(t, FrameAdded, healthy), wireBookmark(t, "6", true),
			wire(t, FrameAdded, secret), wire(t, FrameModified, secret), wire(t, FrameDeleted, secret), wire(t, FrameAdded, other),
		), func(f *SharedInformerFactory) *SharedInformer[Object] { return ForObject(f, &corev1.ConfigMap{}) })
	})
	json := jsonWatch(
		jsonEvent("ADDED", "v1", "ConfigMap", "a", "5", ""), jsonEnd,
		jsonEvent("MODIFIED", "v1", "Secret", "a", "7", `,"data":["no","map"]`),
		jsonEvent("MODIFIED", "v2", "ConfigMap", "a", "7", ""),
		jsonEvent("DELETED", "v1", "Secret", "a", "7", ""),
		jsonEvent("ADDED", "v1", "ConfigMap", "b", "8", ""),
	)
	t.Run("JSON", func(t *testing.T) {
		run(t, json, func(f *SharedInformerFactory) *SharedInformer[Object] { return ForObject(f, &corev1.ConfigMap{}) })
	})
	t.Run("unstructured", func(t *testing.T) {
		run(t, json, func(f *SharedInformerFactory) *SharedInformer[Object] {
			like, _ := convertTo(unstructuredType, configMapKind, &corev1.ConfigMap{})
			return ForObject(f, like)
		})
	})
	t.Run("metadata", func(t *testing.T) {
		run(t, json, func(f *SharedInformerFactory) *SharedInformer[Object] {
			return ForObject(f, metadataOf(&corev1.ConfigMap{}, configMapKind))
		})
	})
}

func jsonItemOf(apiVersion, kind, name, version string) string {
	event := jsonEvent("ADDED", apiVersion, kind, name, version, "")
	return strings.TrimSuffix(event[strings.Index(event, `"object":`)+len(`"object":`):], "}")
}

func listText(apiVersion, kind, version string, items ...string) answer {
	return body(http.StatusOK, contentJSON, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":%q},"items":[%s]}`, apiVersion, kind, version, strings.Join(items, ",")))
}

// An item of another kind in a list does not delete the object of its name.
func TestInformer_ListItemOfAnotherKindHarmsNoObject_B7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, serve(t,
			listText("v1", "ConfigMapList", "6", jsonItemOf("v1", "ConfigMap", "a", "5"), jsonItemOf("v1", "ConfigMap", "b", "5"), jsonItemOf("v1", "ConfigMap", "c", "5")),
			jsonWatch(`{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`),
			listText("v1", "ConfigMapList", "9", jsonItemOf("v1", "Secret", "a", "8"), jsonItemOf("v1", "ConfigMap", "b", "8")),
			jsonWatch(),
		), Options{PagedLists: true})
		i := For[*corev1.ConfigMap](f)
		told := toldTo(t, i)
		defer runFactory(t, f)()
		for i.Snapshot().Scopes[0].Watches < 2 {
			pause(t.Context(), retryBackoff.most)
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

// A list of another kind is no list, even an empty one: it would delete all.
func TestDecode_ListOfAnotherKindIsRefused_B7(t *testing.T) {
	builtIn, custom, metadata := decoderOf[*corev1.ConfigMap](t, configMapKind), decoderOf[*Site](t, siteKind), decoderOf[partial](t, siteKind)
	const empty = `"metadata":{"resourceVersion":"9"},"items":[]}`
	ours := `"metadata":{"resourceVersion":"9"},"items":[` + jsonSite("a", "{}") + `]}`
	theirs := `"metadata":{"resourceVersion":"9"},"items":[` + jsonSite("a", "{}") + `,{"apiVersion":"example.com/v1","kind":"Page","metadata":{"name":"b"}}]}`
	for _, c := range []struct {
		name string
		d    interface {
			count(text string) (int, error)
		}
		text string
		want int // -1: refused
	}{
		{"its own", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v1","kind":"ConfigMapList",` + empty, 0},
		{"another kind of the group", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v1","kind":"PodList",` + empty, -1},
		{"a list of anything", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v1","kind":"List",` + empty, 0},
		{"another version", counts[*corev1.ConfigMap]{builtIn}, `{"apiVersion":"v2","kind":"ConfigMapList",` + empty, -1},
		{"a custom kind's own name for it", counts[*Site]{custom}, `{"apiVersion":"example.com/v1","kind":"Sites",` + ours, 1},
		{"the same, with others in it", counts[*Site]{custom}, `{"apiVersion":"example.com/v1","kind":"Sites",` + theirs, -1},
		{"its own, with others in it", counts[*Site]{custom}, `{"apiVersion":"example.com/v1","kind":"SiteList",` + theirs, 2},
		{"of another group", counts[*Site]{custom}, `{"apiVersion":"example.org/v1","kind":"Sites",` + empty, -1},
		{"metadata alone", counts[partial]{metadata}, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList",` + empty, 0},
		{"metadata alone, of an older API", counts[partial]{metadata}, `{"apiVersion":"meta.k8s.io/v1beta1","kind":"PartialObjectMetadataList",` + empty, 0},
		{"metadata of another group", counts[partial]{metadata}, `{"apiVersion":"example.org/v1","kind":"SiteList",` + empty, -1},
	} {
		n, err := c.d.count(c.text)
		if refused := err != nil; refused != (c.want < 0) || !refused && n != c.want {
			t.Errorf("%s: %d items and %v, want %d (-1: refused)", c.name, n, err, c.want)
		}
	}
}

// counts is a decoder whose pages are counted.
type counts[T Object] struct{ d *decoder[T] }

func (c counts[T]) count(text string) (int, error) {
	p, err := c.d.page(contentJSON, []byte(text))
	return len(p.Items), err
}

// What is outside of the scope is not taken, whatever the transform makes of it,
// and what no longer matches leaves.
func TestInformer_ObjectOutOfScopeIsNotTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(namespace, name, version, app string) *corev1.ConfigMap {
			cm := configMap(name, version)
			cm.Namespace, cm.UID = namespace, types.UID("u-"+name)
			cm.Labels = map[string]string{"app": app}
			return cm
		}
		gone := object("a", "leaves", "9", "y")
		log := &lines{}
		f, _ := factoryOn(t, serve(t, watch(hang,
			wire(t, FrameAdded, object("a", "stays", "3", "x")), wire(t, FrameAdded, object("a", "leaves", "4", "x")),
			wire(t, FrameAdded, object("b", "foreign", "5", "x")), wire(t, FrameAdded, object("a", "unselected", "5", "y")),
			wire(t, FrameAdded, object("", "nowhere", "5", "x")),
			wireBookmark(t, "6", true),
			wire(t, FrameAdded, object("b", "stays", "7", "x")), wire(t, FrameModified, object("a", "other", "8", "y")),
			wire(t, FrameModified, gone), wire(t, FrameDeleted, object("a", "other", "10", "y")),
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
		if s := i.Snapshot().Scopes[0]; s.State != StateLive || s.Anomalies.OutOfScope != 6 || s.Anomalies.Total() != 6 {
			t.Errorf("state %v, anomalies %+v, want Live and 6 out of scope", s.State, s.Anomalies)
		}
		if n := log.with("which was not asked for"); n != 1 {
			t.Errorf("%d lines in the log, want one for all of them: %v", n, log)
		}
	})
}

// Without selectors, the namespace alone decides.
func TestInformer_ObjectOfAnotherNamespaceIsNotTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := func(namespace, version string) *corev1.ConfigMap {
			cm := configMap("x", version)
			cm.Namespace = namespace
			return cm
		}
		f, _ := factoryOn(t, serve(t, watch(hang,
			wire(t, FrameAdded, in("a", "4")), wire(t, FrameAdded, in("b", "5")), wireBookmark(t, "6", true),
			wire(t, FrameAdded, in("c", "7")), wire(t, FrameModified, in("a", "8")),
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
		f, _ := factoryOn(t, serve(t, watch(hang, wire(t, FrameAdded, node("")), wire(t, FrameAdded, node("a")), wireBookmark(t, "6", true))), Options{})
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

// Some aggregated APIs give their objects no UID. They are objects all the same.
func TestInformer_ObjectWithoutUIDIsTaken_B8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := factoryOn(t, serve(t, watch(hang, wire(t, FrameAdded, configMap("a", "5")), wireBookmark(t, "6", true), wire(t, FrameModified, configMap("a", "7")))), Options{})
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
