// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
)

// showTo shows o a ConfigMap of a name at a version, whose managedFields have so many bytes, in both
// encodings: as version and version+1.
func showTo(t *testing.T, o *Owners, name string, version, bytes int) {
	t.Helper()
	for i := range 2 {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version + i)}}
		obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fmt.Sprint("editor-", version+i), FieldsV1: metav1.NewFieldsV1(`{"f:` + strings.Repeat("x", bytes) + `":{}}`)}}
		raw, err := json.Marshal(obj)
		if i == 1 {
			raw, err = obj.Marshal()
		}
		if err != nil {
			t.Fatal(err)
		}
		before := string(raw)
		if o.see(raw); string(raw) != before {
			t.Error("the bytes were modified, which are decoded after this")
		}
	}
}

// The managedFields of an object are kept while someone asks for them, in bounded memory.
func TestOwners_KeepWhatIsAskedFor_R30(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o Owners
		of := func(name string, version kube.Version) string {
			for _, e := range o.Of(kube.Key{Namespace: "shop", Name: name}, version) {
				return e.Manager
			}
			return ""
		}
		want := func(name string, version kube.Version, want, when string) {
			t.Helper()
			if got := of(name, version); got != want {
				t.Errorf("%s the owner of %s at %d is %q, want %q", when, name, version, got, want)
			}
		}
		(*Owners)(nil).see([]byte(`{}`))
		showTo(t, &o, "a", 10, 10)
		want("a", 10, "", "before anybody asks")
		showTo(t, &o, "a", 20, 10)
		showTo(t, &o, "b", 22, 10)
		showTo(t, &o, "ab", 24, 10)
		want("a", 20, "editor-20", "in JSON")
		want("a", 21, "editor-21", "in protobuf")
		want("a", 24, "", "of another object")
		showTo(t, &o, "a", 30, largestOwners)
		want("a", 30, "", "that is too large")
		o.see([]byte(`{"metadata":{"name":"a","managedFields":7}}`))
		o.see([]byte("\x0a\xffa"))
		showTo(t, &o, "a", 40, 10)
		showTo(t, &o, "a", 50, 10)
		want("a", 20, "", "after four other states")
		want("a", 40, "editor-40", "of the last four states")
		for n := range mostOwned {
			of(fmt.Sprint("other-", n), 1)
		}
		if len(o.mu.objects) != mostOwned {
			t.Errorf("%d objects are kept, want %d", len(o.mu.objects), mostOwned)
		}
		showTo(t, &o, "a", 60, 10)
		want("a", 60, "", "after questions about others")
		time.Sleep(ownersFor - time.Second)
		showTo(t, &o, "a", 70, 10)
		time.Sleep(2 * time.Second)
		showTo(t, &o, "a", 80, 10)
		if o.active.Load() || len(o.mu.objects) > 0 {
			t.Errorf("ten minutes after the last question %d objects are kept", len(o.mu.objects))
		}
		showTo(t, &o, "a", 90, 10)
		want("a", 90, "", "after that")
	})
}
