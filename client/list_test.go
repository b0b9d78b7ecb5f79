// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

func listOf(token string, names ...string) reply {
	items := make([]string, len(names))
	for i, name := range names {
		items[i] = fmt.Sprintf(`{"metadata":{"namespace":"prod","name":%q}}`, name)
	}
	return reply{body: fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`, token, strings.Join(items, ","))}
}

// read reads the whole list and returns the names, with errors in their places.
func read(t *testing.T, c *client.Client, opts ...client.Option) (names []string, last error) {
	t.Helper()
	for name, err := range named[*corev1.ConfigMap](t.Context(), c, opts...) {
		if err != nil {
			name, last = "!", err
		}
		names = append(names, name)
	}
	return names, last
}

func TestList_FollowsThePages_C1(t *testing.T) {
	c, s := scripted(t, client.Options{}, listOf("next", "a", "b"), listOf("", "c"))
	names, err := read(t, c, client.InNamespace("prod"), client.MatchingLabels{"x": "y"}, client.MatchingFields{"metadata.name": "z"}, client.Limit(2))
	if got := strings.Join(names, " "); got != "a b c" || err != nil {
		t.Errorf("listed %q, %v; want a b c", got, err)
	}
	for i, want := range []url.Values{
		{"limit": {"2"}, "labelSelector": {"x=y"}, "fieldSelector": {"metadata.name=z"}},
		{"limit": {"2"}, "labelSelector": {"x=y"}, "fieldSelector": {"metadata.name=z"}, "continue": {"next"}},
	} {
		if got := s.requests()[i]; got.query != want.Encode() || got.path != "/api/v1/namespaces/prod/configmaps" {
			t.Errorf("request %d asked %s?%s, want ?%s", i, got.path, got.query, want.Encode())
		}
	}
}

func TestList_ReadsAPageWhenTheLoopAsks_C1(t *testing.T) {
	c, s := scripted(t, client.Options{}, listOf("next", "a", "b"), listOf("", "c"))
	for range client.List[*corev1.ConfigMap](t.Context(), c) {
		break
	}
	if got := s.requests(); len(got) != 1 || got[0].query != "limit=500" {
		t.Errorf("requests %v, want one page of 500: nobody asked for more", got)
	}
}

func TestList_ExpiredToken_C6(t *testing.T) {
	gone := status(410, "Expired", "The provided continue parameter is too old", "")
	c, _ := scripted(t, client.Options{}, listOf("next", "a"), gone)
	names, err := read(t, c)
	if strings.Join(names, " ") != "a !" || !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "start it again") {
		t.Errorf("listed %v, %v; want a, then an error that says to start again", names, err)
	}

	c, _ = scripted(t, client.Options{}, listOf("next"), gone, listOf("next"), listOf("", "a"))
	if names, err := read(t, c); strings.Join(names, " ") != "a" || err != nil {
		t.Errorf("listed %v, %v; want a: nothing had been given, so the list began anew", names, err)
	}

	var answers []reply
	for range 20 {
		answers = append(answers, listOf("next"), gone)
	}
	c, s := scripted(t, client.Options{}, answers...)
	if _, err := read(t, c); !apierrors.IsResourceExpired(err) || len(s.requests()) > 10 {
		t.Errorf("%v after %d requests, want it to give up soon", err, len(s.requests()))
	}
}

func TestList_UndecodableObjectHarmsOnlyItself_C6(t *testing.T) {
	bad := `{"kind":"ConfigMapList","apiVersion":"v1","items":[
		{"metadata":{"namespace":"prod","name":"a"}},
		{"metadata":{"namespace":"prod","name":"bad"},"data":7},
		{"metadata":{"namespace":"prod","name":"c"}}]}`
	c, _ := scripted(t, client.Options{}, reply{body: bad})
	names, err := read(t, c)
	var undecodable *kube.UndecodableError
	if strings.Join(names, " ") != "a ! c" || !errors.As(err, &undecodable) || undecodable.Key.Name != "bad" {
		t.Errorf("listed %v, %v; want a, an error that names prod/bad, c", names, err)
	}
}

func TestList_Protobuf_C3(t *testing.T) {
	list := corev1.ConfigMapList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "9"},
		Items:    []corev1.ConfigMap{*configMap("prod", "a", map[string]string{"k": "v"}), *configMap("prod", "b", nil)},
	}
	c, s := scripted(t, client.Options{}, protobuf(t, "ConfigMapList", &list))
	var got []*corev1.ConfigMap
	for cm, err := range client.List[*corev1.ConfigMap](t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, cm)
	}
	if len(got) != 2 || got[0].Data["k"] != "v" || got[1].Name != "b" || got[0].Kind != "ConfigMap" {
		t.Errorf("listed %v, want a and b of kind ConfigMap", got)
	}
	if accept := s.requests()[0].header.Get("Accept"); !strings.HasPrefix(accept, runtime.ContentTypeProtobuf) {
		t.Errorf("asked for %q, want protobuf first: it is a built-in kind", accept)
	}
}

func protobuf(t testing.TB, kind string, message interface{ Marshal() ([]byte, error) }) reply {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	data, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return reply{body: "k8s\x00" + string(data), header: map[string][]string{"Content-Type": {runtime.ContentTypeProtobuf}}}
}

// FuzzClient_NoAnswerPanics: whatever a server or proxy sends, the result is an answer
// or an error.
func FuzzClient_NoAnswerPanics_C6(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", "[]", `{"kind":"Status","details":7}`, `{"kind":7}`, `{"items":[null,7,{}]}`,
		`{"metadata":7}`, `{"metadata":{"finalizers":7,"ownerReferences":[7]}}`, thing("v1", "ConfigMap", dying, `"data":{"k":7}`)} {
		f.Add([]byte(seed), 200, false)
		f.Add([]byte("k8s\x00"+seed), 200, true)
		f.Add([]byte(seed), 409, false)
	}
	list := protobuf(f, "ConfigMapList", &corev1.ConfigMapList{Items: []corev1.ConfigMap{*configMap("prod", "a", nil)}})
	f.Add([]byte(list.body), 200, true)
	f.Fuzz(func(t *testing.T, body []byte, code int, asProtobuf bool) {
		if code < 200 || code > 499 || code == 429 || (code > 300 && code < 309) {
			return
		}
		answer := reply{code: code, body: string(body)}
		if asProtobuf {
			answer.header = map[string][]string{"Content-Type": {runtime.ContentTypeProtobuf}}
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(configMapKind)
		u.SetNamespace("prod")
		u.SetName("web")
		for _, call := range []func(c *client.Client) error{
			func(c *client.Client) error { return c.Update(t.Context(), asRead(configMap("prod", "web", nil))) },
			func(c *client.Client) error { return c.Update(t.Context(), asRead(u.DeepCopy())) },
			func(c *client.Client) error { return c.Delete(t.Context(), u) },
			func(c *client.Client) error { return c.Delete(t.Context(), configMap("prod", "web", nil)) },
			func(c *client.Client) error { return firstError[*corev1.ConfigMap](t.Context(), c) },
			func(c *client.Client) error {
				return client.DeleteAllOf[*corev1.ConfigMap](t.Context(), c, client.InNamespace("prod"))
			},
		} {
			c, _ := scripted(t, client.Options{Observer: &recorder{}}, answer)
			if err := call(c); err == nil && code > 299 {
				t.Errorf("code %d is no error", code)
			}
		}
	})
}
