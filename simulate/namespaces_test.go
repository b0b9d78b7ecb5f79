// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// The first namespaces belong to the store as it begins: nobody is told of them,
// and the first write is the second revision.
func TestServer_NamespacesThatAreThereFirst(t *testing.T) {
	s := New(Options{Namespaces: []string{"mine", "default"}})
	var names []string
	for _, obj := range s.Objects(object.Namespaces) {
		names = append(names, obj.GetName())
		if obj.GetUID() == "" || obj.GetResourceVersion() != "1" || obj.GetLabels()[corev1.LabelMetadataName] != obj.GetName() {
			t.Errorf("%s: got UID %q, version %s, labels %v", obj.GetName(), obj.GetUID(), obj.GetResourceVersion(), obj.GetLabels())
		}
	}
	if got, want := strings.Join(names, " "), "default kube-node-lease kube-public kube-system mine"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := s.Revision(); got != 1 {
		t.Errorf("got revision %d, want 1: nothing has been written", got)
	}
	for _, c := range []struct {
		namespace string
		code      int
	}{{"mine", http.StatusCreated}, {"kube-public", http.StatusCreated}, {"theirs", http.StatusNotFound}} {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/"+c.namespace+"/configmaps", strings.NewReader(`{"metadata":{"name":"a"}}`)))
		if answer.Code != c.code {
			t.Errorf("create in %s: got %d %s, want %d", c.namespace, answer.Code, answer.Body, c.code)
		}
	}
	_, err := s.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "a"}})
	if want := `namespaces "theirs" not found; name it in Options.Namespaces, or put it first`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("put: got %v, want %s", err, want)
	}
}

// What is kept of an earlier start may lack them, or have them otherwise.
func TestKeep_HasTheFirstNamespaces(t *testing.T) {
	earlier := New(Options{})
	if _, err := earlier.Put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{"mine": "yes"}}}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kept *store.JournalContent
		want string
	}{"none": {&store.JournalContent{Log: revisions.NewLog()}, ""}, "another": {keptOf(earlier), "yes"}} {
		s := New(Options{})
		if err := s.keepIn(store.NewJournal("journal", &slowFile{}), c.kept); err != nil {
			t.Fatal(err)
		}
		objects := s.Objects(object.Namespaces)
		if len(objects) != len(firstNamespaces) || objects[0].GetLabels()["mine"] != c.want {
			t.Errorf("%s: got %s, want %d namespaces and %q", name, fmt.Sprint(objects), len(firstNamespaces), c.want)
		}
	}
}
