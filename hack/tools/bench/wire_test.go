// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/hack/tools/bench/internal/cluster"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
)

// wire is a server of one kind, of bytes: a streaming list, and the requests that clients
// send before it. As an HTTP transport it has no network, TLS or compression: benchmarks
// measure reading, decoding and storing. As a handler it serves another process.
type wire struct {
	form    cluster.Form
	kind    schema.GroupVersionKind
	plural  string
	list    [][]byte      // frames of the streaming list, in chunks
	bytes   int           // of the list
	changes chan [][]byte // what the watch sends after the list
}

// newWire returns a wire that sends frames.
func newWire(b testing.TB, form cluster.Form, kind schema.GroupVersionKind, frames iter.Seq2[[]byte, error]) *wire {
	w := &wire{form: form, kind: kind, plural: strings.ToLower(kind.Kind) + "s", changes: make(chan [][]byte)}
	var chunk []byte
	for frame, err := range frames {
		if err != nil {
			b.Fatal(err)
		}
		if len(chunk)+len(frame) > cap(chunk) {
			w.list, chunk = append(w.list, chunk), make([]byte, 0, max(1<<20, len(frame)))
		}
		chunk = append(chunk, frame...)
		w.bytes += len(frame)
	}
	w.list = append(w.list, chunk)
	return w
}

// podWire returns a wire of pods.
func podWire(b testing.TB, form cluster.Form, pods *cluster.Pods) *wire {
	return newWire(b, form, podKind, cluster.Events(encoder(b, form), pods.Collection()))
}

func encoder(b testing.TB, form cluster.Form) *cluster.Encoder {
	e, err := cluster.NewEncoder(form)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

func (w *wire) path() string {
	if w.kind.Group == "" {
		return "/api/" + w.kind.Version
	}
	return "/apis/" + w.kind.Group + "/" + w.kind.Version
}

// answer returns the type and the body of the answer to a request, or a nil body.
func (w *wire) answer(r *http.Request) (media string, body io.ReadCloser) {
	switch {
	case r.URL.Path == w.path():
		return string(cluster.JSON), io.NopCloser(strings.NewReader(fmt.Sprintf(
			`{"kind":"APIResourceList","groupVersion":%q,"resources":[{"name":%q,"namespaced":true,"kind":%q,"verbs":["list","watch"]}]}`,
			w.kind.GroupVersion(), w.plural, w.kind.Kind)))
	case r.URL.Query().Get("sendInitialEvents") == "true":
		media = string(w.form)
		if w.form == cluster.Protobuf {
			media += ";stream=watch"
		}
		return media, &wireBody{left: w.list, changes: w.changes, done: r.Context().Done()}
	}
	return "", nil
}

// RoundTrip answers one request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
	}
	media, body := w.answer(r)
	if body == nil {
		answer.StatusCode, answer.Status = http.StatusNotFound, "404 Not Found"
		body = io.NopCloser(strings.NewReader("not found"))
	}
	answer.Header, answer.Body = http.Header{"Content-Type": {media}}, body
	return answer, nil
}

// CloseIdleConnections does nothing: there are none.
func (w *wire) CloseIdleConnections() {}

// ServeHTTP answers one request of another process.
func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	media, body := w.answer(r)
	if body == nil {
		http.NotFound(out, r)
		return
	}
	out.Header().Set("Content-Type", media)
	_, _ = io.Copy(flushed{out}, body) // until the client ends the request
}

// flushed sends what is written at once.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

// wireBody is an answer that ends when its request does.
type wireBody struct {
	left    [][]byte
	at      int // in the first of left
	changes <-chan [][]byte
	done    <-chan struct{}
}

func (w *wireBody) Read(p []byte) (int, error) {
	for {
		for len(w.left) > 0 {
			if n := copy(p, w.left[0][w.at:]); n > 0 {
				w.at += n
				return n, nil
			}
			w.left, w.at = w.left[1:], 0
		}
		select {
		case w.left = <-w.changes:
		case <-w.done:
			return 0, io.EOF
		}
	}
}

func (w *wireBody) Close() error { return nil }

// config returns the configuration of a client of w.
func (w *wire) config() *rest.Config { return wireConfig("http://server.invalid", w.form, w) }

func wireConfig(host string, form cluster.Form, transport http.RoundTripper) *rest.Config {
	return &rest.Config{
		Host: host, Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: string(form), AcceptContentTypes: string(form)},
	}
}

// managed says which contestants keep managedFields.
type managed string

const (
	byDefault managed = "defaults" // the peers keep them, flyball drops them
	dropped   managed = "dropped"  // all drop them
	kept      managed = "kept"     // all keep them
)

// transform is what a peer's user sets.
func (f managed) transform() cache.TransformFunc {
	if f == dropped {
		return ctrlcache.TransformStripManagedFields()
	}
	return nil
}

// wired returns a contestant of Pods on the server of cfg, with the client that its users
// have.
func wired(b testing.TB, cfg *rest.Config, name string, f managed) contestant {
	switch name {
	case transformed:
		factory := newFactory(b, cfg, scheme.Scheme, kept)
		pods := informer.For[*corev1.Pod](factory)
		if err := pods.SetTransform(withoutManagedFields); err != nil {
			b.Fatal(err)
		}
		return newFlyballOf(b, pods, informer.HandlerOptions{}, factory.Run)
	case "flyball", "flyball-compact", "flyball-projected", "flyball-projected-compact":
		factory, scope := newFactory(b, cfg, scheme.Scheme, f), informer.Scope{}
		if strings.Contains(name, "compact") {
			factory = newCompactFactory(b, cfg, scheme.Scheme)
		}
		if strings.Contains(name, "projected") {
			scope.Fields = sixFields
		}
		return newFlyballOf(b, informer.For[*corev1.Pod](factory, scope), informer.HandlerOptions{}, factory.Run)
	case "client-go":
		clients, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			b.Fatal(err)
		}
		pods := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithTransform(f.transform())).Core().V1().Pods().Informer()
		return newClientGo(b, pods)
	}
	return newControllerRuntimeOn(b, cfg, cacheOptions(b, cfg, podKind, scheme.Scheme, f))
}

// transformed drops managedFields by a transform, as users of the peers do.
const transformed = "flyball-transform"

func withoutManagedFields(p *corev1.Pod) (*corev1.Pod, error) {
	p.ManagedFields = nil
	return p, nil
}

// sixFields are what a controller of network endpoints reads of Pods.
var sixFields = []string{"metadata.labels", "spec.nodeName", "spec.serviceAccountName", "spec.hostNetwork", "status.phase", "status.podIP"}

// levers are ways to hold Pods in less memory. They drop managedFields.
var levers = []string{"flyball-compact", "flyball-projected", "flyball-projected-compact"}

func newFactory(b testing.TB, cfg *rest.Config, types *k8sruntime.Scheme, f managed) *informer.SharedInformerFactory {
	factory, err := informer.NewSharedInformerFactory(cfg, types, informer.Options{KeepManagedFields: f == kept})
	if err != nil {
		b.Fatal(err)
	}
	return factory
}

func newCompactFactory(b testing.TB, cfg *rest.Config, types *k8sruntime.Scheme) *informer.SharedInformerFactory {
	factory, err := informer.NewSharedInformerFactory(cfg, types, informer.Options{Compact: compact.New(compact.Options{})})
	if err != nil {
		b.Fatal(err)
	}
	return factory
}

// cacheOptions returns those of a cache of controller-runtime that knows kind without
// discovery.
func cacheOptions(b testing.TB, cfg *rest.Config, kind schema.GroupVersionKind, types *k8sruntime.Scheme, f managed) ctrlcache.Options {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{kind.GroupVersion()})
	mapper.Add(kind, meta.RESTScopeNamespace)
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		b.Fatal(err)
	}
	return ctrlcache.Options{Scheme: types, Mapper: mapper, HTTPClient: client, DefaultTransform: f.transform()}
}
