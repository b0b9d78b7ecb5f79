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

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/allot"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
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
			Store: writeStore{objects}, Kinds: registry, Rights: control, Admission: &webhooks.Admission{Objects: objects}, Allotter: allot.New(1),
		},
		Access: control,
		Kept:   func(context.Context) error { return nil },
		Lost:   func(*Call) bool { return false },
	}
	return h, objects
}

var configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")

func creation(t *testing.T, gvk schema.GroupVersionKind, body string) *Call {
	t.Helper()
	kind := kinds.NewRegistry().Kind(gvk)
	return &Call{
		Request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body)),
		Verb:    "create", Kind: kind, Namespace: "default", Encoder: encode.For(kind, ""),
	}
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
	if err := h.Serve(answer, c); err != nil || !c.Special() || !strings.Contains(answer.Body.String(), `"username":"anna"`) {
		t.Errorf("got %s, %v", answer.Body, err)
	}
	if plain := creation(t, configMaps, ""); plain.Special() {
		t.Error("the creation of a ConfigMap is special")
	}
}
