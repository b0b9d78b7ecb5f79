// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

var _ = Describe("an update without a resourceVersion", func() {
	It("is refused, although the server would overwrite what is stored (C5)", Label("C5"), func(ctx context.Context) {
		ns := newNamespace(ctx)
		stored := configMap(ns, "a", map[string]string{"by": "others"})
		Expect(outside.Create(ctx, stored)).To(Succeed())
		blind := configMap(ns, "a", map[string]string{"by": "me"})
		for _, obj := range []kube.Object{blind, asUnstructured(blind)} {
			Expect(outside.Update(ctx, obj)).To(MatchError(ContainSubstring("the object has no resourceVersion")))
			is := &corev1.ConfigMap{}
			Expect(outside.Get(ctx, kube.KeyOf(stored), is)).To(Succeed())
			Expect(is.ResourceVersion).To(Equal(stored.ResourceVersion))
		}
		Expect(api.CoreV1().ConfigMaps(ns).Update(ctx, blind, metav1.UpdateOptions{})).
			To(HaveField("Data", HaveKeyWithValue("by", "me")), "the server refuses it by itself")
	})
})

// gauge is a kind with a quantity, of which its definition says nothing but that it is one.
type gauge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Size              resource.Quantity `json:"size"`
}

func (g *gauge) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Size = g.Size.DeepCopy()
	return &out
}

var _ = Describe("an object with a quantity that takes far more to parse than its text", func() {
	It("is undecodable alone, and the operator goes on (B24)", Label("B24"), func(ctx context.Context) {
		Expect(env.InstallCRDObjects(ctx, crdfixture.New(group.WithKind("Gauge"), map[string]any{
			"size": map[string]any{"x-kubernetes-int-or-string": true},
		}, nil))).To(Succeed())
		ns := newNamespace(ctx)
		written := func(name, size string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{"size": size}}
			u.SetGroupVersionKind(group.WithKind("Gauge"))
			u.SetNamespace(ns)
			u.SetName(name)
			return u
		}
		sound, costly := written("sound", "1"), written("costly", "1e-10000000")
		Expect(outside.Create(ctx, costly)).To(Succeed()) // the first list has it

		p := newProcess(env.Config(), ns)
		gauges := watch[*gauge](p, "gauges", reconcile.Options{}, nil)
		plain := informer.ForKind(p.Informers(), group.WithKind("Gauge")).Lister()
		p.start()
		Eventually(gauges.Synced()).WithTimeout(time.Minute).Should(BeClosed())
		Expect(p.Informers().WaitForSync(ctx)).Error().NotTo(HaveOccurred())
		seen := func(u *unstructured.Unstructured) {
			GinkgoHelper()
			Eventually(gauges.saw).WithArguments(kube.KeyOf(u)).Should(Equal(u.GetResourceVersion()))
		}
		undecodable := func() error {
			_, err := gauges.informer.Lister().Get(kube.KeyOf(costly))
			if _, is := errors.AsType[*kube.UndecodableError](err); is {
				return err
			}
			return nil
		}
		Expect(outside.Create(ctx, sound)).To(Succeed())
		seen(sound)
		Expect(undecodable()).To(MatchError(ContainSubstring(`the number "1e-10000000" has more than 128 digits`)))
		Expect(plain.Get(kube.KeyOf(costly))).To(HaveField("Object", HaveKeyWithValue("size", "1e-10000000")), "it parses none")

		By("receiving it by the watch, and healing")
		costly.Object["size"] = "2"
		Expect(outside.Update(ctx, costly)).To(Succeed())
		seen(costly)
		costly.Object["size"] = "1e-10000000"
		Expect(outside.Update(ctx, costly)).To(Succeed())
		Eventually(undecodable).Should(HaveOccurred())
		Expect(outside.Patch(ctx, sound, client.MergePatch(map[string]any{"size": "3"}))).To(Succeed())
		seen(sound)
		Expect(p.ready()).To(HavePrefix("200"))
		p.ends()
	})
})

// spoiling is a connection that delivers no event of Widgets in time, and no streaming lists.
// While it spoils, the item "mine" of the next list has no metadata that can be read, and the answer
// to a write before arrives when that list has been read.
type spoiling struct {
	readers sync.WaitGroup
	written chan struct{} // closed when the server has answered the write
	read    chan struct{} // closed when the first spoiled list has been read
	mu      struct {
		sync.Mutex
		spoils bool
		open   []io.Closer // bodies of watches
	}
}

// spoilingTransport is that of one client.
type spoilingTransport struct {
	*spoiling
	next http.RoundTripper
}

// WrappedRoundTripper lets the end of a run find the remaining connections.
func (s spoilingTransport) WrappedRoundTripper() http.RoundTripper { return s.next }

func (s spoilingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/widgets") {
		return s.next.RoundTrip(r)
	}
	s.mu.Lock()
	spoils := s.mu.spoils
	s.mu.Unlock()
	query := r.URL.Query()
	switch {
	case query.Has("sendInitialEvents"):
		return answer(r, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), nil
	case query.Has("watch") && spoils:
		return answer(r, http.StatusGone, metav1.StatusReasonExpired), nil
	}
	resp, err := s.next.RoundTrip(r)
	switch {
	case err != nil:
	case query.Has("watch"):
		late := newLateBody(resp.Body, time.Hour, &s.readers)
		s.mu.Lock()
		s.mu.open = append(s.mu.open, late)
		s.mu.Unlock()
		resp.Body = late
	case r.Method != http.MethodGet && spoils:
		close(s.written)
		select {
		case <-s.read:
		case <-r.Context().Done():
		}
	case r.Method == http.MethodGet && spoils && resp.StatusCode == http.StatusOK:
		err = s.spoil(resp)
	}
	return resp, err
}

// spoil removes the metadata of an item, and makes the end of the body known.
func (s *spoiling) spoil(resp *http.Response) error {
	defer resp.Body.Close()
	var list map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil {
		return err
	}
	items, _ := list["items"].([]any)
	for _, item := range items {
		if name, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "name"); name == "mine" {
			item.(map[string]any)["metadata"] = "garbage"
		}
	}
	data, err := json.Marshal(list)
	resp.Body, resp.ContentLength = &tellingBody{bytes.NewReader(data), sync.OnceFunc(func() { close(s.read) })}, int64(len(data))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.spoils = false // the watch after it is opened
	return err
}

type tellingBody struct {
	io.Reader
	closed func()
}

func (b *tellingBody) Close() error { b.closed(); return nil }

func answer(r *http.Request, code int32, reason metav1.StatusReason) *http.Response {
	data, _ := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason, Message: string(reason),
	})
	return &http.Response{
		StatusCode: int(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)),
	}
}

// expire makes the open watches end, and begin with a list that is spoiled.
func (s *spoiling) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, body := range s.mu.open {
		_ = body.Close()
	}
}

var _ = Describe("an item of a list that cannot be read", func() {
	It("deletes no object that this process wrote meanwhile (I8)", Label("I8"), func(ctx context.Context) {
		for _, form := range []string{"typed", "unstructured"} {
			ns := newNamespace(ctx)
			s := &spoiling{written: make(chan struct{}), read: make(chan struct{})}
			cfg := rest.CopyConfig(env.Config())
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return spoilingTransport{s, next} })
			p := newProcess(cfg, ns)
			var value func(name string) (string, error)
			var current func() state.Scope
			if form == "typed" {
				i := informer.For[*widget](p.Informers())
				value = func(name string) (string, error) {
					w, err := i.Lister().Get(kube.Key{Namespace: ns, Name: name})
					if err != nil {
						return "", err
					}
					return w.Spec.Value, nil
				}
				current = func() state.Scope { return i.Snapshot().Scopes[0] }
			} else {
				i := informer.ForKind(p.Informers(), group.WithKind("Widget"))
				value = func(name string) (string, error) {
					u, err := i.Lister().Get(kube.Key{Namespace: ns, Name: name})
					if err != nil {
						return "", err
					}
					value, _, err := unstructured.NestedString(u.Object, "spec", "value")
					return value, err
				}
				current = func() state.Scope { return i.Snapshot().Scopes[0] }
			}
			Expect(outside.Create(ctx, newWidget(ns, "theirs", "1"))).To(Succeed())
			p.start()
			Expect(p.Informers().WaitForSync(ctx)).Error().NotTo(HaveOccurred())
			mine := newWidget(ns, "mine", "1")
			Expect(p.Client().Create(ctx, mine)).To(Succeed())
			Expect(value("mine")).To(Equal("1"))

			s.mu.Lock()
			s.mu.spoils = true
			s.mu.Unlock()
			mine.Spec.Value = "2"
			done := make(chan error, 1)
			go func() { done <- p.Client().Update(ctx, mine) }()
			Eventually(s.written).Should(BeClosed())
			s.expire()
			Eventually(done).Should(Receive(BeNil()))
			Eventually(current).Should(HaveField("Unreadable", 1), form)
			Expect(value("mine")).To(Equal("2"), form)
			Expect(value("theirs")).To(Equal("1"), form)
			p.ends()
			s.readers.Wait()
		}
	})
})
