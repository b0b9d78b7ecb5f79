// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/webhook"
)

// conversionAnswer is the part of a ConversionReview that the server reads.
type conversionAnswer struct {
	metav1.TypeMeta
	Response struct {
		UID              string
		ConvertedObjects []json.RawMessage
		Result           metav1.Status
	}
}

func convert(t *testing.T, s *webhook.Server, want string, objects ...string) conversionAnswer {
	t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"7","desiredAPIVersion":%q,"objects":[%s]}}`,
		want, strings.Join(objects, ","))
	code, text := post(t, s, "/convert", body)
	var got conversionAnswer
	if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 || got.Kind != "ConversionReview" || got.APIVersion != "apiextensions.k8s.io/v1" {
		t.Fatalf("convert = %d %s, want a review", code, text)
	}
	if got.Response.UID != "7" {
		t.Errorf("uid = %q, want that of the request", got.Response.UID)
	}
	return got
}

func TestConvert_AllInTheirOrderWithTheirMetadata_H3(t *testing.T) {
	s := newServer(t, webhook.Options{})
	webhook.Convert(s, siteSpoke())
	must(t, s.Err())
	const metadata = `"name":"%s","namespace":"n","uid":"u%[1]s","resourceVersion":"5","finalizers":["f"],"future":{"a":1},"managedFields":[{"manager":"m"}]`
	one := fmt.Sprintf(`{"apiVersion":"example.dev/v1","kind":"Site","metadata":{`+metadata+`,"labels":{"l":"1"}},"spec":{"replicas":3,"host":"h"}}`, "one")
	two := fmt.Sprintf(`{"apiVersion":"example.dev/v1","kind":"Site","metadata":{`+metadata+`,"annotations":{"`+leastAnnotation+`":"2","b":"c"}},"spec":{"replicas":9}}`, "two")
	three := fmt.Sprintf(`{"apiVersion":"example.dev/v2","kind":"Site","metadata":{`+metadata+`},"spec":{"scale":{"replicas":1},"future":7}}`, "three")

	up := convert(t, s, "example.dev/v2", one, two, three)
	want := []string{
		fmt.Sprintf(`{"apiVersion":"example.dev/v2","kind":"Site","metadata":{`+metadata+`,"labels":{"l":"1"}},"spec":{"scale":{"replicas":3},"host":"h"}}`, "one"),
		fmt.Sprintf(`{"apiVersion":"example.dev/v2","kind":"Site","metadata":{`+metadata+`,"annotations":{"b":"c"}},"spec":{"scale":{"replicas":9,"least":2}}}`, "two"),
		three, // already of the version; nothing is lost
	}
	same := func(got conversionAnswer, want []string) {
		t.Helper()
		if got.Response.Result.Status != metav1.StatusSuccess || len(got.Response.ConvertedObjects) != len(want) {
			t.Fatalf("got %+v, want %d objects", got.Response, len(want))
		}
		for i := range want {
			if !jsonpatch.Equal(got.Response.ConvertedObjects[i], []byte(want[i])) {
				t.Errorf("object %d = %s, want %s", i, got.Response.ConvertedObjects[i], want[i])
			}
		}
	}
	same(up, want)
	back := convert(t, s, "example.dev/v1", want[0], want[1])
	same(back, []string{one, two})
	same(convert(t, s, "example.dev/v1"), nil)
}

func TestConvert_AllOrNone_H3(t *testing.T) {
	s := newServer(t, webhook.Options{})
	webhook.Convert(s, siteSpoke())
	site := func(version, spec string) string {
		return `{"apiVersion":"example.dev/` + version + `","kind":"Site","metadata":{"name":"x","namespace":"n"},"spec":` + spec + `}`
	}
	good := site("v1", `{"replicas":1}`)
	for _, c := range []struct {
		name, want, text string
		object           string
	}{
		{"a function says no", "example.dev/v2", "convert object 1 of 2 (Site n/x) to example.dev/v2: no such host", site("v1", `{"host":"broken"}`)},
		{"a function panics", "example.dev/v2", "panic in the webhook: host is panic", site("v1", `{"host":"panic"}`)},
		{"another shape", "example.dev/v2", "decode as *webhook_test.siteV1", site("v1", `{"replicas":"three"}`)},
		{"no object", "example.dev/v2", "decode", "[]"},
		{"null", "example.dev/v2", "convert object 1", "null"},
		{"unknown version of the object", "example.dev/v2", `does not know version "v0" of Site.example.dev`, site("v0", "{}")},
		{"another kind", "example.dev/v2", "does not convert kind Page.example.dev", `{"apiVersion":"example.dev/v1","kind":"Page"}`},
		{"another group", "example.dev/v2", `cannot become one of group "example.dev"`, `{"apiVersion":"other.dev/v1","kind":"Site"}`},
		{"unknown version that is wanted", "example.dev/v3", `does not know version "v3" of Site.example.dev`, good},
		{"no version that is wanted", "a/b/c", "desiredAPIVersion", good},
	} {
		got := convert(t, s, c.want, good, c.object)
		if got.Response.Result.Status != metav1.StatusFailure || !strings.Contains(got.Response.Result.Message, c.text) {
			t.Errorf("%s: result %+v, want a failure with %q", c.name, got.Response.Result, c.text)
		}
		if len(got.Response.ConvertedObjects) != 0 {
			t.Errorf("%s: %d objects, want none: one that is missing must not be noticed by the others' order", c.name, len(got.Response.ConvertedObjects))
		}
	}
	code, text := post(t, s, "/convert", `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{"uid":"7"}}`)
	if code != 400 || !strings.Contains(text, "set conversionReviewVersions: [v1]") {
		t.Errorf("another version = %d %s, want 400 and what to do", code, text)
	}
}
