// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

var namespaces = schema.GroupResource{Resource: "namespaces"}

func TestNamespaces_EndWhenTheyAreEmpty_S21(t *testing.T) {
	acting(t, simulate.Options{Kinds: []simulate.Kind{fixture.WidgetKind}}, simulate.Actors{Namespaces: true}, func(p *play) {
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "kube-root-ca.crt kube-root-ca.crt", "each namespace has the roots of its cluster")
		p.has(schema.GroupResource{Resource: "serviceaccounts"}, "default default", "each namespace has an account")
		p.own("a")
		p.must("POST "+mapsPath, `{"metadata":{"name":"kept","finalizers":["test.example.com/held"]}}`)
		p.must("POST /apis/test.example.com/v1/namespaces/ns/widgets", `{"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"w"}}`)
		p.must("POST /api/v1/namespaces/other/configmaps", `{"metadata":{"name":"elsewhere"}}`)
		p.must("DELETE /api/v1/namespaces/ns", "")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "kept elsewhere kube-root-ca.crt", "all is deleted that nothing keeps, in this namespace alone")
		p.has(fixture.Widgets, "", "custom resources are deleted too")
		said := fmt.Sprint(p.at("/api/v1/namespaces/ns", "status", "conditions"))
		for _, want := range []string{
			"Some resources are remaining: configmaps. has 1 resource instances",
			"Some content in the namespace has finalizers remaining: test.example.com/held in 1 resource instances",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("got conditions %s, want %q: they say what the end waits for", said, want)
			}
		}
		code, answer := p.ask("POST "+mapsPath, `{"metadata":{"name":"late"}}`)
		if message := fmt.Sprint(answer["message"]); code != 403 || !strings.Contains(message, "because it is being terminated") {
			t.Errorf("create in a namespace that ends: got %d %s, want 403", code, message)
		}
		p.must("PATCH "+mapsPath+"/kept merge", `{"metadata":{"finalizers":null}}`)
		fixture.Pass(time.Second)
		p.has(namespaces, "other", "nothing is left, so it goes")
	})
}
