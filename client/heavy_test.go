// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/decodelimit"
	"github.com/flyball-dev/flyball/internal/testing/hostile"
	"github.com/flyball-dev/flyball/kube"
)

// answering returns a client of a server that answers each Get with *answer, and each
// list with the Pods a, *answer and c.
func answering(t *testing.T, answer *[]byte) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api/v1":
			_, _ = io.WriteString(w, coreDiscovery)
		case strings.HasSuffix(r.URL.Path, "/pods"):
			fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"a"}},%s,{"metadata":{"name":"c"}}]}`, *answer)
		default:
			_, _ = w.Write(*answer)
		}
	}))
	t.Cleanup(server.Close)
	c, err := client.New(&rest.Config{Host: server.URL}, testScheme(t), client.Options{RetryWithin: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const podHead = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"prod"}`

func TestClient_HeavyObjectIsNotDecoded_B13(t *testing.T) {
	answer := []byte(`{` + podHead + `,"spec":{"containers":[{}` + strings.Repeat(",{}", 1<<20) + `]}}`)
	c := answering(t, &answer)
	refused := func(what string, err error) {
		t.Helper()
		var heavy *client.TooLargeError
		if !errors.As(err, &heavy) || heavy.Limit != decodelimit.Object || heavy.Decoded <= decodelimit.Object || !strings.Contains(err.Error(), fmt.Sprint(decodelimit.Object)) {
			t.Errorf("%s: %v, want a TooLargeError with the decoded size and the limit", what, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	refused("get", c.Get(t.Context(), kube.Key{Namespace: "prod", Name: "b"}, &corev1.Pod{}))
	sound := ""
	for pod, err := range client.List[*corev1.Pod](t.Context(), c) {
		if err == nil {
			sound += pod.Name
			continue
		}
		refused("list", err)
		var apart *kube.UndecodableError
		if !errors.As(err, &apart) || apart.Key.Name != "b" {
			t.Errorf("list: %v, want an UndecodableError of b", err)
		}
	}
	runtime.ReadMemStats(&after)
	if sound != "ac" {
		t.Errorf("listed %q beside the heavy object, want a and c", sound)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("%d bytes were allocated for answers of %d", took, len(answer))
	}
}

// A quantity whose parsing takes far more than its text is not parsed: the parser would
// accept it.
func TestClient_CostlyQuantityIsNotParsed_B24(t *testing.T) {
	answer := []byte(`{` + podHead + `,"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-200"}}}]}}`)
	c := answering(t, &answer)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), `the number "1e-200" has more than 128 digits`) {
			t.Errorf("%s: %v, want an error that names the quantity", what, err)
		}
	}
	key := kube.Key{Namespace: "prod", Name: "b"}
	refused("get", c.Get(t.Context(), key, &corev1.Pod{}))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "b", ResourceVersion: "1"}}
	refused("the answer to a write", c.Update(t.Context(), pod))
	sound := ""
	for pod, err := range client.List[*corev1.Pod](t.Context(), c) {
		if err == nil {
			sound += pod.Name
			continue
		}
		refused("list", err)
	}
	if sound != "ac" {
		t.Errorf("listed %q beside the costly object, want a and c", sound)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err := c.Get(t.Context(), key, u); err != nil {
		t.Errorf("as an Unstructured: %v, want the object: it parses no quantity", err)
	}
}

// A list of more items than a page may have takes no memory for them.
func TestClient_ItemsOfAHeavyListAreNotHeld_B14(t *testing.T) {
	answer := []byte(`{}` + strings.Repeat(",{}", 4<<20))
	c := answering(t, &answer)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var last error
	for _, err := range client.List[*corev1.Pod](t.Context(), c) {
		last = err
	}
	runtime.ReadMemStats(&after)
	if heavy := (*client.TooLargeError)(nil); !errors.As(last, &heavy) || heavy.Limit != decodelimit.Page {
		t.Errorf("%v, want a TooLargeError with the limit of a page", last)
	}
	// Five pages are asked for, each smaller, and client-go's buffer of a body grows by a quarter.
	if took, most := after.TotalAlloc-before.TotalAlloc, uint64(40*len(answer)); took > most {
		t.Errorf("%d bytes were allocated for answers of %d, want at most %d", took, len(answer), most)
	}
}

// Garbage among the items of a list affects no other item if its end can be found. The
// error has the key if the metadata can be read.
func TestClient_GarbageInAListCostsOneItem_B21(t *testing.T) {
	endless := map[string]bool{ // which take the end of the list along
		"an end": true, "an object that does not end": true, "a string that does not end": true, "bytes of all values": true,
		"a list that ends as an object": true,
	}
	var answer []byte
	c := answering(t, &answer)
	named := hostile.Input{Name: "an object with garbage in it", Text: []byte(`{"metadata":{"name":"b","namespace":"prod"},"spec":{"nodeName":garbage}}`)}
	for _, garbage := range append(hostile.Garbage(), named) {
		answer = garbage.Text
		sound, last := "", error(nil)
		var apart *kube.UndecodableError
		for pod, err := range client.List[*corev1.Pod](t.Context(), c) {
			if last = cmp.Or(err, last); err == nil {
				sound += pod.Name
			}
		}
		switch {
		case endless[garbage.Name] && (last == nil || errors.As(last, &apart)):
			t.Errorf("%s: %v, want an error of the page: the end of the list cannot be found", garbage.Name, last)
		case endless[garbage.Name]:
		case sound != "ac" || !errors.As(last, &apart) || !strings.Contains(last.Error(), " of the list: "):
			t.Errorf("%s: listed %q and %v, want a and c, and an UndecodableError with its place", garbage.Name, sound, last)
		case garbage.Name == named.Name && apart.Key != kube.Key{Namespace: "prod", Name: "b"}:
			t.Errorf("%s: the error is of %q, want prod/b: its metadata can be read", garbage.Name, apart.Key)
		}
	}
}

// An unusual object is an error or an object, and affects no other.
func TestClient_CorpusHarmsNoOtherObject(t *testing.T) {
	var answer []byte
	c := answering(t, &answer)
	for _, input := range hostile.Objects(8<<10, podHead, "spec.containers", "spec.nodeSelector", "metadata.labels", "unknown") {
		answer = input.Text
		key := kube.Key{Namespace: "prod", Name: "b"}
		_ = c.Get(t.Context(), key, &corev1.Pod{})
		tree := &unstructured.Unstructured{}
		tree.SetGroupVersionKind(podKind)
		_ = c.Get(t.Context(), key, tree)
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(podKind)
		_ = c.Get(t.Context(), key, meta)
		listed[*corev1.Pod](t, c, input.Name)
		listed[*unstructured.Unstructured](t, c, input.Name, client.OfKind(podKind))
		listed[*metav1.PartialObjectMetadata](t, c, input.Name, client.OfKind(podKind))
	}
}

func listed[T kube.Object](t *testing.T, c *client.Client, name string, opts ...client.Option) {
	t.Helper()
	sound := ""
	for obj, err := range client.List[T](t.Context(), c, opts...) {
		var apart *kube.UndecodableError
		if err != nil && !errors.As(err, &apart) {
			t.Errorf("%T, %s: the list ends with %v", obj, name, err)
		} else if err == nil && obj.GetName() != "b" {
			sound += obj.GetName()
		}
	}
	if sound != "ac" {
		t.Errorf("%T, %s: of the other objects %q came, want a and c", *new(T), name, sound)
	}
}
