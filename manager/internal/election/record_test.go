// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

var (
	secrets  = schema.GroupKind{Kind: "Secret"}
	websites = schema.GroupKind{Group: "example.com", Kind: "Website"}
)

// held returns a Lease of holder, with a record.
func held(holder string, transitions int32, second int, r *record) *coordinationv1.Lease {
	renewed := metav1.NewMicroTime(time.Date(2030, 1, 1, 0, 0, second, 123456789, time.UTC))
	l := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions, RenewTime: &renewed}}
	if r != nil {
		l.Annotations = map[string]string{Annotation: r.encode()}
	}
	return l
}

func TestPlan_OnlyACompleteRecordSparesTheQuestion_M14(t *testing.T) {
	const at = "2030-01-01T00:00:05.123456Z"
	wrote := map[string]kube.Version{"Secret": 7, "Website.example.com": 0}
	by := func(change func(*record)) *record {
		r := &record{Holder: "a", Transitions: 3, Renewed: at, Written: wrote}
		change(r)
		return r
	}
	released := by(func(r *record) { r.Released = true })
	renewed := by(func(*record) {})
	for _, row := range []struct {
		name                        string
		was                         *coordinationv1.Lease
		secret, website, configMaps string
	}{
		{"no Lease", nil, "present", "present", "present"},
		{"no record", held("a", 3, 5, nil), "present", "present", "present"},
		{"released", held("", 3, 5, released), "7", "nothing", "present"},
		{"crashed", held("a", 3, 5, renewed), "7 present", "present", "present"},
		{"crashed after a release was written", held("a", 3, 5, released), "present", "present", "present"},
		{"released by another elector", held("", 3, 5, renewed), "present", "present", "present"},
		{"released by another elector later", held("", 3, 6, released), "present", "present", "present"},
		{"released by another holder", held("", 4, 5, released), "present", "present", "present"},
		{"of another holder", held("b", 3, 5, renewed), "present", "present", "present"},
		{"renewed by another elector", held("a", 3, 6, renewed), "present", "present", "present"},
	} {
		p := planOf(row.was)
		for kind, want := range map[schema.GroupKind]string{secrets: row.secret, websites: row.website, {Kind: "ConfigMap"}: row.configMaps} {
			if got := describe(p.floor(kind)); got != want {
				t.Errorf("%s: the informers of %s must have %s, want %s", row.name, kind, got, want)
			}
		}
	}
}

func describe(f informer.Floor) string {
	var parts []string
	if f.Version != 0 {
		parts = append(parts, f.Version.String())
	}
	if f.Present {
		parts = append(parts, "present")
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, " ")
}

func TestRecord_IsReadAsItWasWritten_M13(t *testing.T) {
	r := record{Holder: `host_"x" =,`, Transitions: 4, Renewed: "now", Released: true, Written: map[string]kube.Version{"Secret": 1<<64 - 1, "Website.example.com": 0}}
	back, ok := decode(r.encode())
	if !ok || fmt.Sprint(back) != fmt.Sprint(r) {
		t.Errorf("read %v, %v, want %v", back, ok, r)
	}
	if want := `{"holder":"a","transitions":1,"renewed":"now","written":{"A":1,"B":2}}`; (record{Holder: "a", Transitions: 1, Renewed: "now", Written: map[string]kube.Version{"B": 2, "A": 1}}).encode() != want {
		t.Errorf("the record is not %s", want)
	}
}

func TestRecord_IsBounded_M13(t *testing.T) {
	r := record{Holder: "a", Written: map[string]kube.Version{}}
	for i := range 2000 {
		r.Written[fmt.Sprintf("Kind%d.example.com", i)] = kube.Version(i)
	}
	text := r.encode()
	if back, ok := decode(text); !ok || len(text) > maxRecord || back.Holder != "a" || back.Written != nil {
		t.Errorf("a record of 2000 kinds is %d bytes, read as %v, %v; want one without kinds", len(text), back, ok)
	}
	r.Holder = strings.Repeat("x", maxRecord)
	if text := r.encode(); text != "" {
		t.Errorf("a record that cannot fit has %d bytes, want none", len(text))
	}
}

// Whatever stands in the annotation, only a record of this state of the Lease is believed.
func FuzzDecode(f *testing.F) {
	f.Add("")
	f.Add(record{Holder: "a", Transitions: 3, Renewed: "x", Written: map[string]kube.Version{"Secret": 7}}.encode())
	f.Add(`{"written":{"Secret":-1}}`)
	f.Add(`{"holder":"a","transitions":3,"renewed":"2030-01-01T00:00:05.123456Z","written":{"":5}}`)
	f.Fuzz(func(t *testing.T, text string) {
		l := held("a", 3, 5, nil)
		l.Annotations = map[string]string{Annotation: text}
		p := planOf(l)
		if r, ok := decode(text); len(p.written) > 0 && (!ok || !r.isOf(l)) {
			t.Errorf("%q is believed", text)
		}
		if p.released {
			t.Errorf("%q makes a Lease that is held a released one", text)
		}
	})
}
