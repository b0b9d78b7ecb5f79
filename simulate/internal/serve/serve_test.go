// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/read"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/store"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

type writeStore struct{ *store.Store }

func (s writeStore) Begin() write.Tx { return s.Store.Begin() }

// served returns a Handler over an empty store with the namespace default.
func served(t *testing.T) (*Handler, *store.Store) {
	t.Helper()
	objects, registry := store.New(store.Options{}), kinds.NewRegistry()
	tx := objects.Begin()
	tx.Put(object.Namespaces, &object.Object{Fields: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "default"}}})
	tx.End()
	control := &access.Control{Objects: objects, User: "simulated"}
	h := &Handler{
		Writes: &write.Path{
			Store: writeStore{objects}, Kinds: registry, Rights: control, Admission: &webhooks.Admission{Objects: objects}, Allotter: write.NewAllotter(1),
		},
		Reads: &read.Reader{
			Store: objects, Kinds: registry, ExpiresContinue: func() bool { return false },
			Seen: func(_ *kinds.Kind, obj *object.Object) *object.Object { return obj },
		},
		Access: control, IgnoresShards: func(*Call) bool { return false }, RefusesStreams: func(*Call) bool { return false },
		Damage:  func(*Call) faults.Damage { return "" },
		Sending: func(*Call, revisions.Event) faults.Damage { return "" },
		Kept:    func(context.Context) error { return nil },
		Lost:    func(*Call) bool { return false },
	}
	return h, objects
}

var configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func creation(t *testing.T, gvk schema.GroupVersionKind, body string) *Call {
	t.Helper()
	kind, namespace := kinds.NewRegistry().Kind(gvk), ""
	if kind.Namespaced {
		namespace = metav1.NamespaceDefault
	}
	return &Call{Encoder: encode.For(kind, ""), Target: &Target{
		Request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)),
		Verb:    "create", Kind: kind, Namespace: namespace,
	}}
}

func TestHandler_AnswersOnceTheWriteIsKept_S23(t *testing.T) {
	h, objects := served(t)
	key := types.NamespacedName{Namespace: "default", Name: "a"}
	answer := httptest.NewRecorder()
	h.Kept = func(context.Context) error {
		if objects.Get(object.ConfigMaps, key) == nil || answer.Body.Len() > 0 {
			t.Error("the journal is waited for before the write, or after its answer")
		}
		return nil
	}
	if err := h.Serve(answer, creation(t, configMaps, `{"metadata":{"name":"a"}}`)); err != nil || answer.Code != http.StatusCreated {
		t.Errorf("got %d, %v", answer.Code, err)
	}
	full := errors.New("disk full")
	h.Kept = func(context.Context) error { return full }
	answer = httptest.NewRecorder()
	if err := h.Serve(answer, creation(t, configMaps, `{"metadata":{"name":"b"}}`)); !errors.Is(err, full) || answer.Body.Len() > 0 {
		t.Errorf("a write that is not kept: got %v, and the answer %s", err, answer.Body)
	}
}

func TestHandler_LostAnswerIsOfAWriteThatWasCarriedOut(t *testing.T) {
	h, objects := served(t)
	h.Lost = func(*Call) bool { return true }
	answer := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("the connection does not break: %v", v)
			}
		}()
		_ = h.Serve(answer, creation(t, configMaps, `{"metadata":{"name":"a"}}`))
	}()
	if objects.Get(object.ConfigMaps, types.NamespacedName{Namespace: "default", Name: "a"}) == nil || answer.Body.Len() > 0 {
		t.Errorf("nothing is stored, or %s is answered", answer.Body)
	}
}

func TestHandler_RefusesBodies_S7(t *testing.T) {
	h, objects := served(t)
	before := objects.Revision()
	if err := h.Serve(httptest.NewRecorder(), creation(t, configMaps, strings.Repeat(" ", maxBody+1))); !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("a body over the limit: got %v", err)
	}
	c := creation(t, configMaps, `{}`)
	c.Header.Set("Content-Type", "text/html")
	if err := h.Serve(httptest.NewRecorder(), c); apierrors.ReasonForError(err) != "UnsupportedMediaType" {
		t.Errorf("a body of HTML: got %v", err)
	}
	review := creation(t, schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}, `{"kind":"Scale","apiVersion":"autoscaling/v1"}`)
	if err := h.Serve(httptest.NewRecorder(), review); !apierrors.IsBadRequest(err) {
		t.Errorf("a review that is a Scale: got %v", err)
	}
	if objects.Revision() != before {
		t.Error("a refused body has made a revision")
	}
}

func TestHandler_ReviewsAreSpecial(t *testing.T) {
	h, _ := served(t)
	c := creation(t, schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"}, `{}`)
	c.User = access.User{Name: "anna"}
	answer := httptest.NewRecorder()
	if err := h.Serve(answer, c); err != nil || handlerOf(c) == nil || !strings.Contains(answer.Body.String(), `"username":"anna"`) {
		t.Errorf("got %s, %v", answer.Body, err)
	}
	if plain := creation(t, configMaps, ""); handlerOf(plain) != nil {
		t.Error("the creation of a ConfigMap is special")
	}
}

// reading returns a read of ConfigMaps.
func reading(t *testing.T, h *Handler, verb, query string) *Call {
	t.Helper()
	kind := h.Reads.Kinds.Kind(configMaps)
	return &Call{Encoder: encode.For(kind, ""), Target: &Target{
		Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+query, nil),
		Verb:    verb, Kind: kind, Namespace: metav1.NamespaceDefault,
	}}
}

// What a list shows may be newer than the journal; it is sent once it is kept.
func TestHandler_ListsOnceKept_S23(t *testing.T) {
	h, _ := served(t)
	if err := h.Serve(httptest.NewRecorder(), creation(t, configMaps, `{"metadata":{"name":"a"}}`)); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	h.Kept = func(context.Context) error {
		if answer.Body.Len() > 0 {
			t.Error("the journal is waited for after the answer")
		}
		return nil
	}
	if err := h.Serve(answer, reading(t, h, "list", "")); err != nil || !strings.Contains(answer.Body.String(), `"name":"a"`) {
		t.Errorf("got %s, %v", answer.Body, err)
	}
	full := errors.New("disk full")
	h.Kept = func(context.Context) error { return full }
	answer = httptest.NewRecorder()
	if err := h.Serve(answer, reading(t, h, "list", "")); !errors.Is(err, full) || answer.Body.Len() > 0 {
		t.Errorf("a list of what is not kept: got %v, and the answer %s", err, answer.Body)
	}
}

// A watch sends each event in order, announces each, and goes on after a damaged one.
func TestHandler_WatchSendsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, objects := served(t)
		var announced []string
		h.Sending = func(_ *Call, e revisions.Event) faults.Damage {
			announced = append(announced, e.Type+" "+e.Object.Meta().GetName())
			if e.Object.Meta().GetName() == "b" {
				return faults.Garbage
			}
			return ""
		}
		time.AfterFunc(time.Second, func() {
			tx := objects.Begin()
			defer tx.End()
			for _, name := range []string{"a", "b", "c"} {
				tx.Put(object.ConfigMaps, &object.Object{Fields: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": name},
				}})
			}
		})
		answer := httptest.NewRecorder()
		if err := h.Serve(answer, reading(t, h, "watch", "watch=1&resourceVersion=2&timeoutSeconds=5")); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(announced, ", "); got != "ADDED a, ADDED b, ADDED c" {
			t.Errorf("announced %s", got)
		}
		lines := strings.Split(strings.TrimSpace(answer.Body.String()), "\n")
		if len(lines) != 3 || !strings.Contains(lines[0], `"name":"a"`) || strings.Contains(lines[1], "{") || !strings.Contains(lines[2], `"name":"c"`) {
			t.Errorf("sent %q, want a, garbage and c", lines)
		}
	})
}
