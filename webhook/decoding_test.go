// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/testing/hostile"
	"github.com/flyball-dev/flyball/webhook"
)

func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func ofPod(op admissionv1.Operation, old, obj []byte) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"42","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"operation":%q,"namespace":"default","name":"one","object":%s,"oldObject":%s}}`, op, obj, old)
}

const podHead = `"apiVersion":"v1","kind":"Pod","metadata":{"name":"one","namespace":"default"}`

func bombed(t *testing.T, opts webhook.Options) *webhook.Server {
	s := newServer(t, opts)
	webhook.Validate(s, "/validate", nothing[*corev1.Pod])
	webhook.Validate(s, "/validate-all", nothing[*unstructured.Unstructured])
	webhook.Mutate(s, "/mutate", func(_ context.Context, _ *webhook.Request, pod *corev1.Pod) error {
		pod.Labels = map[string]string{"a": "b"}
		return nil
	})
	webhook.Convert(s, siteSpoke())
	must(t, s.Err())
	return s
}

// A review allocates little memory, or is refused before it is decoded.
func TestReview_BombsAllocateNoMoreThanTheLimit_H7(t *testing.T) {
	const limit, size = 16 << 20, 512 << 10
	s := bombed(t, webhook.Options{MaxBody: size + 4<<10, MaxDecoded: limit})
	ask := func(name, path, body string) {
		t.Helper()
		var code int
		var answer string
		took := allocated(func() { code, answer = post(t, s, path, body) })
		// The body and its envelope are read in addition to the decoded object.
		if took > limit+8*size {
			t.Errorf("%s: %s allocates %d bytes for %d, and is answered with %d %.100s", path, name, took, len(body), code, answer)
		}
		if code != http.StatusOK && code != http.StatusBadRequest && code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s is answered with %d %.100s", path, name, code, answer)
		}
		if code == http.StatusRequestEntityTooLarge && !strings.Contains(answer, fmt.Sprintf("and %d are allowed; webhook.Options.MaxDecoded", limit)) {
			t.Errorf("%s: %s is refused with %s, which names no size", path, name, answer)
		}
	}
	for _, path := range []string{"/validate", "/validate-all", "/mutate"} {
		ask("warm-up", path, ofPod(admissionv1.Create, []byte("null"), []byte("{"+podHead+"}")))
		for _, bomb := range hostile.Objects(size/2, podHead, "spec.containers", "metadata.annotations") {
			ask(bomb.Name, path, ofPod(admissionv1.Update, []byte("null"), bomb.Text))
		}
	}
	for _, bomb := range hostile.Values(size / 2) {
		ask(bomb.Name+" as groups", "/validate", strings.Replace(ofPod(admissionv1.Create, []byte("null"), []byte("null")),
			`"operation"`, `"userInfo":{"groups":`+string(bomb.Text)+`},"operation"`, 1))
		conversion := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"42","desiredAPIVersion":"example.dev/v2","objects":`
		ask(bomb.Name+" as objects", "/convert", conversion+string(bomb.Text)+"}}")
		ask(bomb.Name+" as an object", "/convert", conversion+`[{"apiVersion":"example.dev/v1","kind":"Site","metadata":{"name":"a"},"spec":`+string(bomb.Text)+"}]}}")
	}
	got := 0
	for _, h := range s.Snapshot().Webhooks {
		got += int(h.Codes[http.StatusRequestEntityTooLarge])
	}
	if got < 20 {
		t.Errorf("%d reviews were refused for their size; the corpus has many more, so it is not what it was", got)
	}
}

// A review with a quantity whose parsing takes far more than its text is refused before
// that is parsed: the parser would accept it.
func TestReview_CostlyQuantityIsRefusedAndNotParsed_H7(t *testing.T) {
	s := bombed(t, webhook.Options{})
	costly := []byte(`{` + podHead + `,"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-200"}}}]}}`)
	plain := []byte(`{` + podHead + `,"spec":{"containers":[{"resources":{"limits":{"cpu":"1e-9"}}}]}}`)
	for _, c := range []struct {
		path     string
		old, obj []byte
		code     int
	}{
		{"/validate", plain, plain, http.StatusOK},
		{"/validate", plain, costly, http.StatusBadRequest},
		{"/validate", costly, plain, http.StatusBadRequest},
		{"/mutate", plain, costly, http.StatusBadRequest},
		{"/validate-all", costly, costly, http.StatusOK}, // an Unstructured parses no quantity
	} {
		code, answer := post(t, s, c.path, ofPod(admissionv1.Update, c.old, c.obj))
		if code != c.code {
			t.Errorf("%s of %s: %d %s, want %d", c.path, c.obj, code, answer, c.code)
		}
		if code != http.StatusOK && !strings.Contains(answer, `1e-200`) {
			t.Errorf("%s: %s, want an answer that names the quantity", c.path, answer)
		}
	}
}

// Reviews of the largest objects that a server accepts are answered.
func TestReview_LargestOrdinaryObjectsAreTaken_H7(t *testing.T) {
	s := bombed(t, webhook.Options{})
	const size = 3 << 19 // what etcd accepts
	container := corev1.Container{
		Name: "container", Image: "registry.example.com/team/program:v1.2.3", Args: []string{"--a=b", "--c=d"},
		Env: []corev1.EnvVar{{Name: "A", Value: "b"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
	}
	pod := corev1.Pod{}
	pod.Kind, pod.APIVersion, pod.Name = "Pod", "v1", "one"
	one, err := json.Marshal(container)
	must(t, err)
	for range (size - 1000) / (len(one) + 1) {
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	text, err := json.Marshal(pod)
	must(t, err)
	crd := crdOf(size)
	for _, c := range []struct {
		name string
		text []byte
	}{{"Pod", text}, {"CustomResourceDefinition", crd}} {
		for _, path := range []string{"/validate", "/validate-all", "/mutate"} {
			if code, answer := post(t, s, path, ofPod(admissionv1.Update, c.text, c.text)); code != http.StatusOK || !strings.Contains(answer, `"allowed":true`) {
				t.Errorf("%s of %d bytes, updated: %s answers %d %.200s", c.name, len(c.text), path, code, answer)
			}
		}
	}
}

// crdOf returns a CustomResourceDefinition of size bytes, without descriptions and
// therefore dense.
func crdOf(size int) []byte {
	var text strings.Builder
	text.WriteString(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string"}`)
	for i := 0; text.Len() < size-100; i++ {
		fmt.Fprintf(&text, `,"field%d":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"value":{"type":"integer","minimum":1}}}}`, i)
	}
	text.WriteString(`}}}}]}}`)
	return []byte(text.String())
}

// One large review is decoded at a time; small ones do not wait for it.
func TestReview_LargeOnesGoOneAtATime_H7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, webhook.Options{MaxDecoded: 4 << 20})
		var mu sync.Mutex
		now, most := map[bool]int{}, map[bool]int{}
		webhook.Validate(s, "", func(_ context.Context, _ *webhook.Request, _, obj *corev1.ConfigMap) error {
			large := len(obj.Data["a"]) > 1000
			mu.Lock()
			now[large]++
			most[large] = max(most[large], now[large])
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now[large]--
			mu.Unlock()
			return nil
		})
		large := review(t, ofConfigMap(admissionv1.Create, "null", `{"data":{"a":"`+strings.Repeat("x", 600<<10)+`"}}`))
		small := review(t, ofConfigMap(admissionv1.Create, "null", `{"data":{"a":"b"}}`))
		codes := map[bool]map[int]int{true: {}, false: {}}
		var flood sync.WaitGroup
		for i := range 40 {
			flood.Go(func() {
				body, isLarge := small, i%2 == 0
				if isLarge {
					body = large
				}
				code, _ := post(t, s, configMapPath+"?timeout=5500ms", body)
				mu.Lock()
				codes[isLarge][code]++
				mu.Unlock()
			})
		}
		flood.Wait()
		if most[true] != 1 || codes[true][200] < 5 || codes[true][200] > 6 || codes[true][200]+codes[true][429] != 20 {
			t.Errorf("large: %d at once, answers %v; want one at a time, and 429 for those whose time is over", most[true], codes[true])
		}
		if most[false] != 20 || codes[false][200] != 20 {
			t.Errorf("small: %d at once, answers %v; want all 20 beside the large ones", most[false], codes[false])
		}
	})
}
