// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/kube"
)

// informer is the state of a recorded informer, and the watches that follow it. The lock of
// informers guards it.
type informer struct {
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	metadata bool
	objects  map[kube.Key]*unstructured.Unstructured
	version  kube.Version
	history  []change
	watches  []*watch
}

// change is an event of the recording.
type change struct {
	kind    string
	version kube.Version
	object  *unstructured.Unstructured
}

// informers answer the lists and watches of the replayed program's informers. Safe for concurrent
// use.
type informers struct {
	begun bool // a reconcile has; used only by one goroutine
	mu    struct {
		sync.Mutex
		all map[int]*informer
	}
}

// take applies an entry of an informer.
func (s *informers) take(e recording.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.What == recording.Informer {
		if s.mu.all == nil {
			s.mu.all = make(map[int]*informer)
		}
		if known := s.mu.all[e.Informer]; known != nil {
			known.resource = e.Kind.GroupVersion().WithResource(e.Resource)
			return nil
		}
		s.mu.all[e.Informer] = &informer{
			resource: e.Kind.GroupVersion().WithResource(e.Resource), kind: e.Kind, metadata: e.Metadata,
			objects: map[kube.Key]*unstructured.Unstructured{}, version: max(kube.ParseVersion(e.Version), 1),
		}
		return nil
	}
	of := s.mu.all[e.Informer]
	if of == nil {
		return fmt.Errorf("its entries have an event of informer %d before its state", e.Informer)
	}
	c := change{kind: e.Type, version: kube.ParseVersion(e.Version)}
	if e.Object != nil {
		c.object = &unstructured.Unstructured{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(e.Object, &c.object.Object); err != nil {
			return fmt.Errorf("an object of informer %d: %w", e.Informer, err)
		}
		c.version = max(c.version, kube.ParseVersion(c.object.GetResourceVersion()))
	}
	if c.object == nil && c.kind != "BOOKMARK" {
		return fmt.Errorf("an entry of informer %d has no object", e.Informer)
	}
	if e.What == recording.Object {
		of.objects[kube.KeyOf(c.object)] = c.object
		of.version = max(of.version, c.version)
		return nil
	}
	of.applyLocked(c)
	return nil
}

func (i *informer) applyLocked(c change) {
	if c.object != nil {
		key := kube.KeyOf(c.object)
		if c.kind == "DELETED" {
			delete(i.objects, key)
		} else {
			i.objects[key] = c.object
		}
	}
	i.version = max(i.version, c.version)
	i.history = append(i.history, c)
	i.watches = slices.DeleteFunc(i.watches, func(w *watch) bool { return w.ctx.Err() != nil })
	for _, w := range i.watches {
		w.sendLocked(c)
	}
}

// of returns the informer that a request belongs to; nil: none of the recording.
func (s *informers) ofLocked(r schema.GroupVersionResource, metadata bool) (found *informer) {
	for _, i := range s.mu.all {
		if i.resource == r && (found == nil || i.metadata == metadata) {
			found = i
		}
	}
	return found
}

// answer answers a list, a watch or a get. nil: the recording has no such informer.
func (s *informers) answer(req *http.Request) *http.Response {
	to, ok := effects.Parse(req.URL.Path, "")
	if req.Method != http.MethodGet || !ok || to.Subresource != "" {
		return nil
	}
	metadata := strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.ofLocked(to.Resource, metadata)
	if i == nil {
		return nil
	}
	sel, err := selectionOf(to.Key, req.URL.Query())
	if err != nil {
		return refusal(http.StatusBadRequest, err.Error())
	}
	v := view{i, sel, metadata}
	query := req.URL.Query()
	switch {
	case to.Key.Name != "":
		if obj := i.objects[to.Key]; obj != nil {
			return answer(http.StatusOK, v.shown(obj))
		}
		return refusal(http.StatusNotFound, "not found in the recording")
	case query.Get("watch") == "true" || query.Get("watch") == "1":
		return v.watchLocked(req.Context(), query)
	}
	return v.listLocked()
}

// selection is what a list or a watch selects.
type selection struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func selectionOf(key kube.Key, query url.Values) (s selection, err error) {
	s.namespace = key.Namespace
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return s, err
	}
	s.fields, err = fields.ParseSelector(query.Get("fieldSelector"))
	return s, err
}

// has reports whether obj is selected. What other fields select was decided by the recorded server.
func (s selection) has(obj *unstructured.Unstructured) bool {
	if s.namespace != "" && obj.GetNamespace() != s.namespace || !s.labels.Matches(labels.Set(obj.GetLabels())) {
		return false
	}
	for _, r := range s.fields.Requirements() {
		is, known := map[string]string{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}[r.Field]
		if known && (r.Value == is) != (r.Operator != "!=") {
			return false
		}
	}
	return true
}

// view is an informer as one request sees it.
type view struct {
	*informer
	selection
	metadata bool
}

// shown returns an object as it is sent.
func (v view) shown(obj *unstructured.Unstructured) map[string]any {
	if !v.metadata {
		return obj.Object
	}
	return map[string]any{"apiVersion": metav1.SchemeGroupVersion.String(), "kind": "PartialObjectMetadata", "metadata": obj.Object["metadata"]}
}

func (v view) listLocked() *http.Response {
	items := []any{}
	for _, obj := range v.inOrderLocked() {
		items = append(items, v.shown(obj))
	}
	list := map[string]any{
		"apiVersion": v.kind.GroupVersion().String(), "kind": v.kind.Kind + "List", "items": items,
		"metadata": map[string]any{"resourceVersion": v.version.String()},
	}
	if v.metadata {
		list["apiVersion"], list["kind"] = metav1.SchemeGroupVersion.String(), "PartialObjectMetadataList"
	}
	return answer(http.StatusOK, list)
}

func (v view) inOrderLocked() (out []*unstructured.Unstructured) {
	for _, obj := range v.objects {
		if v.has(obj) {
			out = append(out, obj)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(kube.KeyOf(a).String(), kube.KeyOf(b).String())
	})
	return out
}

func (v view) watchLocked(ctx context.Context, query url.Values) *http.Response {
	w := &watch{view: v, ctx: ctx, news: make(chan struct{}, 1)}
	from := kube.ParseVersion(query.Get("resourceVersion"))
	if query.Get("sendInitialEvents") == "true" || query.Get("resourceVersion") == "" || from == 0 {
		for _, obj := range v.inOrderLocked() {
			w.sendLocked(change{kind: "ADDED", object: obj})
		}
		if query.Get("sendInitialEvents") == "true" {
			w.bookmarkLocked(v.version, map[string]any{metav1.InitialEventsAnnotationKey: "true"})
		}
	} else {
		for _, c := range v.history {
			if c.version > from {
				w.sendLocked(c)
			}
		}
	}
	v.informer.watches = append(v.informer.watches, w)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: w, ContentLength: -1,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

// watch is the body of a watch. Reads block until there is something to read.
type watch struct {
	view
	ctx  context.Context
	news chan struct{}
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *watch) sendLocked(c change) {
	switch {
	case c.object == nil:
		w.bookmarkLocked(c.version, nil)
	case w.has(c.object):
		w.event(c.kind, w.shown(c.object))
	}
}

func (w *watch) bookmarkLocked(version kube.Version, annotations map[string]any) {
	meta := map[string]any{"resourceVersion": version.String()}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	mark := &unstructured.Unstructured{Object: map[string]any{"apiVersion": w.kind.GroupVersion().String(), "kind": w.kind.Kind, "metadata": meta}}
	w.event("BOOKMARK", w.shown(mark))
}

func (w *watch) event(kind string, object map[string]any) {
	text, err := json.Marshal(map[string]any{"type": kind, "object": object})
	if err != nil {
		return // it came from JSON
	}
	w.mu.Lock()
	w.text.Write(append(text, '\n'))
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// Read implements io.Reader.
func (w *watch) Read(p []byte) (int, error) {
	for {
		w.mu.Lock()
		n, _ := w.text.Read(p)
		w.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-w.news:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
}

// Close implements io.Closer.
func (w *watch) Close() error { return nil }

// answer returns a response of JSON.
func answer(code int, body any) *http.Response {
	text, _ := json.Marshal(body) // it came from JSON
	return response(code, "application/json", text)
}

func response(code int, contentType string, text []byte) *http.Response {
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Header: http.Header{"Content-Type": {contentType}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
}

func refusal(code int, message string) *http.Response {
	reason := metav1.StatusReasonBadRequest
	if code == http.StatusNotFound {
		reason = metav1.StatusReasonNotFound
	}
	return answer(code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

// start takes the states with which a recording begins: those of the informers that ran when it was
// begun, and no objects for those that ran later.
func (s *informers) start(entries []recording.Entry) error {
	for _, e := range entries {
		if e.What == recording.Informer || e.What == recording.Object && !s.begun {
			if err := s.take(e); err != nil {
				return err
			}
		}
		s.begun = s.begun || e.What == recording.Begin
	}
	s.begun = false
	return nil
}

// late takes an object again if it is of an informer that ran later.
func (s *informers) late(e recording.Entry) error {
	if !s.begun {
		return nil
	}
	e.What, e.Type = recording.Event, "ADDED"
	return s.take(e)
}
