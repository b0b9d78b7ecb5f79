// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// newReader returns a Reader of an empty store, and a Request for the ConfigMaps of a namespace.
func newReader() (*Reader, Request) {
	served := kinds.NewRegistry()
	r := &Reader{
		Store: store.New(store.Options{}), Kinds: served,
		Seen:            func(_ *kinds.Kind, obj *object.Object) *object.Object { return obj },
		ExpiresContinue: func() bool { return false },
	}
	return r, Request{Kind: served.Kind(configMaps), Namespace: "ns"}
}

func (r *Reader) put(names ...string) {
	tx := r.Store.Begin()
	defer tx.End()
	for _, name := range names {
		tx.Put(object.ConfigMaps, &object.Object{Fields: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"namespace": "ns", "name": name, "labels": map[string]any{"first": name[:1]}},
		}})
	}
}

func query(t *testing.T, q Request, text string) *Query {
	t.Helper()
	values, err := url.ParseQuery(text)
	if err != nil {
		t.Fatal(err)
	}
	out, err := Parse(Target{Kind: q.Kind, Namespace: q.Namespace, Name: q.Name}, values, strings.Contains(text, "watch"))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// list returns the names of a page with its revision, and the token of the next one.
func (r *Reader) list(t *testing.T, q Request, text string) (page, token string, err error) {
	t.Helper()
	asked := query(t, q, text)
	p, err := asked.Page()
	if err != nil {
		t.Fatal(err)
	}
	objects, meta, err := r.List(t.Context(), q, p, asked.Selection())
	for _, obj := range objects {
		page += obj.Meta().GetName() + " "
	}
	return page + "@" + meta.ResourceVersion, meta.Continue, err
}

// Pages of one list show one revision; a token whose revision is compacted is refused, and
// includes one that continues with the present.
func TestReader_PagesShowOneRevision_S2(t *testing.T) {
	r, q := newReader()
	r.put("a1", "a2", "b1", "b2", "b3")
	page, token, err := r.list(t, q, "limit=2")
	if page != "a1 a2 @6" || err != nil {
		t.Fatalf("the first page is %s, %v", page, err)
	}
	r.put("a3", "b4")
	next := "limit=2&continue=" + token
	if page, _, err := r.list(t, q, next); page != "b1 b2 @6" || err != nil {
		t.Errorf("the second page is %s, %v; want b1 and b2 at revision 6", page, err)
	}
	if page, token, err := r.list(t, q, "limit=1&labelSelector=first%3Db"); page != "b1 @8" || token == "" || err != nil {
		t.Errorf("a page of what is selected is %s with the token %q, %v", page, token, err)
	}
	r.Store.Compact()
	_, _, err = r.list(t, q, next)
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != 410 || status.Status().ListMeta.Continue == "" {
		t.Fatalf("a page of a compacted revision: %v, want 410 with a token", err)
	}
	if page, _, err := r.list(t, q, "continue="+status.Status().ListMeta.Continue); page != "a3 b1 b2 b3 b4 @8" || err != nil {
		t.Errorf("continued with the present: %s, %v", page, err)
	}
	r.ExpiresContinue = func() bool { return true }
	_, token, _ = r.list(t, q, "limit=2")
	if _, _, err := r.list(t, q, "limit=2&continue="+token); !apierrors.IsResourceExpired(err) {
		t.Errorf("an expired token: %v, want 410", err)
	}
	q.Sound = true
	if page, _, err := r.list(t, q, "limit=2&continue="+token); page != "a3 b1 @8" || err != nil {
		t.Errorf("an expired token of a sound request: %s, %v", page, err)
	}
}

// A version in the future is waited for, for three seconds.
func TestReader_WaitsForTheFuture_S4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, q := newReader()
		q.Name = "a"
		time.AfterFunc(2*time.Second, func() { r.put("a") })
		if obj, err := r.Get(t.Context(), q, 2); err != nil || obj.Meta().GetName() != "a" {
			t.Errorf("got %v, %v; want what comes within the time", obj, err)
		}
		began := time.Now()
		if _, err := r.Get(t.Context(), q, 3); !apierrors.IsTimeout(err) || time.Since(began) != store.FreshWithin {
			t.Errorf("a revision that does not come: %v after %s", err, time.Since(began))
		}
		if page, _, err := r.list(t, q, "resourceVersion=3"); !apierrors.IsTimeout(err) {
			t.Errorf("a list of a revision that does not come: %s, %v", page, err)
		}
		q.Name = "b"
		if _, err := r.Get(t.Context(), q, 0); !apierrors.IsNotFound(err) {
			t.Errorf("what there is not: %v", err)
		}
	})
}

// A watch sends a bookmark after its initial events, each minute without other events, and two
// seconds before its end.
func TestReader_WatchSendsBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, q := newReader()
		asked := query(t, q, "watch=1&allowWatchBookmarks=true&timeoutSeconds=150")
		of, err := asked.Watch()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		w := r.Watch(t.Context(), q, of, asked.Selection())
		defer w.Close()
		time.AfterFunc(90*time.Second, func() { r.put("a") })
		var got []string
		for over := false; !over; {
			events, last := w.Next(t.Context())
			over = last
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s@%s after %s", e.Type, e.Object.Meta().GetResourceVersion(), time.Since(began)))
			}
		}
		want := "[BOOKMARK@1 after 0s BOOKMARK@1 after 1m0s ADDED@2 after 1m30s BOOKMARK@2 after 2m0s BOOKMARK@2 after 2m28s]"
		if fmt.Sprint(got) != want || time.Since(began) != 150*time.Second {
			t.Errorf("got %s within %s, want %s", got, time.Since(began), want)
		}
		of.Timeout = -time.Second
		if events, over := r.Watch(t.Context(), q, of, asked.Selection()).Next(t.Context()); len(events) > 0 || !over {
			t.Errorf("a watch without time has %d events, over: %v", len(events), over)
		}
	})
}
