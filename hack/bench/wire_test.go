// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/flyball-dev/flyball/informer"
)

const (
	jsonMedia     = "application/json"
	protobufMedia = "application/vnd.kubernetes.protobuf"
	// wirePods is the number of encoded Pods.
	wirePods = 20_000
)

// wire is an in-memory server of bytes: an HTTP transport that answers a streaming list of
// Pods, and the requests that clients send before it. There is no network, TLS or
// compression: the benchmark measures reading, decoding and storing.
type wire struct {
	media string
	watch []byte
}

// newWire returns the wire of n whole Pods.
func newWire(b *testing.B, media string, n int) *wire {
	info, ok := k8sruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
	if !ok {
		b.Fatalf("there is no serializer of %s", media)
	}
	codec := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	w := &wire{media: media}
	add := func(typ string, pod *corev1.Pod) {
		object, err := k8sruntime.Encode(codec, pod)
		if err != nil {
			b.Fatal(err)
		}
		if media == jsonMedia {
			w.watch = append(w.watch, `{"type":"`+typ+`","object":`...)
			w.watch = append(append(w.watch, bytes.TrimSpace(object)...), "}\n"...)
			return
		}
		event, err := (&metav1.WatchEvent{Type: typ, Object: k8sruntime.RawExtension{Raw: object}}).Marshal()
		if err != nil {
			b.Fatal(err)
		}
		w.watch = append(binary.BigEndian.AppendUint32(w.watch, uint32(len(event))), event...)
	}
	for i := range n {
		add("ADDED", wholePod(i))
	}
	add("BOOKMARK", &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(n), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	})
	return w
}

const podDiscovery = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list","watch"]}]}`

// RoundTrip answers one request.
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, ContentLength: -1,
		Header: http.Header{"Content-Type": {jsonMedia}},
	}
	query := r.URL.Query()
	switch {
	case r.URL.Path == "/api/v1":
		answer.Body = io.NopCloser(strings.NewReader(podDiscovery))
	case query.Get("sendInitialEvents") == "true":
		answer.Header.Set("Content-Type", w.media)
		if w.media == protobufMedia {
			answer.Header.Set("Content-Type", protobufMedia+";stream=watch")
		}
		answer.Body = &wireBody{left: bytes.NewReader(w.watch), done: r.Context().Done()}
	default:
		answer.StatusCode, answer.Status = http.StatusNotFound, "404 Not Found"
		answer.Body = io.NopCloser(strings.NewReader("not found"))
	}
	return answer, nil
}

// wireBody is an answer that ends when its request does.
type wireBody struct {
	left *bytes.Reader
	done <-chan struct{}
}

func (w *wireBody) Read(p []byte) (int, error) {
	if w.left.Len() > 0 {
		return w.left.Read(p)
	}
	<-w.done
	return 0, io.EOF
}

func (w *wireBody) Close() error { return nil }

func (w *wire) config() *rest.Config {
	return &rest.Config{
		Host: "http://server.invalid", Transport: w, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: w.media, AcceptContentTypes: w.media},
	}
}

// wired returns a contestant over w, with the client that its users have. Each has its
// defaults: the peers keep managedFields, flyball strips them.
func wired(b testing.TB, w *wire, name string) contestant {
	cfg := w.config()
	switch name {
	case "flyball":
		lw, err := informer.NewListerWatcher[*corev1.Pod](cfg, scheme.Scheme, informer.WatchScope{})
		if err != nil {
			b.Fatal(err)
		}
		return newFlyballInformer(b, lw, &feed{}, false)
	case "client-go":
		clients, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			b.Fatal(err)
		}
		return newClientGo(b, informers.NewSharedInformerFactory(clients, 0).Core().V1().Pods().Informer())
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(podKind, meta.RESTScopeNamespace)
	return newControllerRuntimeOn(b, cfg, ctrlcache.Options{Mapper: mapper, HTTPClient: &http.Client{Transport: w}})
}

var wireForms = []struct{ name, media string }{{"protobuf", protobufMedia}, {"JSON", jsonMedia}}

// BenchmarkInformer_SyncBytes stores 20,000 Pods from a streaming list of bytes: the cost
// of a start without the network.
func BenchmarkInformer_SyncBytes(b *testing.B) {
	for _, form := range wireForms {
		b.Run(form.name, func(b *testing.B) {
			w := newWire(b, form.media, wirePods)
			for _, name := range []string{"flyball", "client-go", "controller-runtime"} {
				b.Run(name, func(b *testing.B) { syncs(b, wirePods, func() contestant { return wired(b, w, name) }) })
			}
		})
	}
}

// BenchmarkInformer_Heap reports the live heap per Pod of an informer that has stored
// 20,000 Pods from bytes, each with its defaults.
func BenchmarkInformer_Heap(b *testing.B) {
	for _, form := range wireForms {
		b.Run(form.name, func(b *testing.B) {
			w := newWire(b, form.media, wirePods)
			for _, name := range []string{"flyball", "client-go", "controller-runtime"} {
				b.Run(name, func(b *testing.B) {
					var heap float64
					for b.Loop() {
						before := liveHeap()
						i := wired(b, w, name)
						done := i.handle(func(*corev1.Pod) {})
						stop := started(i)
						<-done
						heap += float64(liveHeap()) - float64(before)
						stop()
						runtime.KeepAlive(i)
					}
					b.ReportMetric(heap/float64(b.N*wirePods), "B/object")
					b.ReportMetric(0, "ns/op")
				})
			}
			runtime.KeepAlive(w)
		})
	}
}

func TestWholePod_IsOfTheSizeThatIsStated(t *testing.T) {
	proto, err := wholePod(12_345).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := k8sruntime.Encode(scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), wholePod(12_345))
	if err != nil {
		t.Fatal(err)
	}
	if len(proto) < 7_000 || len(proto) > 8_000 || len(text) < 10_000 || len(text) > 11_500 {
		t.Errorf("a Pod has %d bytes as protobuf and %d as JSON, want about 7.4 and 10.7 kB", len(proto), len(text))
	}
}
