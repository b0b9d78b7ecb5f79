// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// wrote records a run for an event of version of a ConfigMap, which has written it with an effect.
// It returns what is then found.
func wrote(r *recorder[Key], id int, version kube.Version, own bool, effect string) string {
	key := keyOf(1)
	rec := r.begin(key)
	n := rec.add(contextvalues.Request{Verb: "patch", Path: "/api/v1/namespaces/shop/configmaps/a", Kind: "ConfigMap"}, 0)
	if effect != "" {
		did := kube.Written{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Version: version + 1}
		rec.affect(n, did, effect, fielddiff.Fields{Paths: []string{"data.run"}})
	}
	cause := source.Cause{Source: "kind ConfigMap", Kind: schema.GroupKind{Kind: "ConfigMap"}, Type: kube.Updated, Version: version, Own: own, Object: Key{Namespace: "shop", Name: "a"}}
	began := dawn.Add(time.Duration(id) * time.Minute)
	rec.setCauses(Causes{First: cause, Last: cause, Count: 1, Since: began}, began)
	outcome, err := OutcomeDone, ""
	if effect == "" {
		outcome, err = OutcomeError, "no route"
	}
	rec.setEnd(action{outcome: outcome}, "", err, time.Second)
	r.end(key, rec, nil)
	var found []string
	for _, f := range foundBy(r, began.Add(time.Minute)) {
		found = append(found, string(f.Kind))
	}
	return strings.Join(found, " ")
}

// A key that wakes itself is found with its thirtieth run, by the event of the watch too, and is well
// again with the first run that is woken by another, or writes nothing.
func TestDetector_HotLoop_R30(t *testing.T) {
	for _, own := range []bool{true, false} { // false: the watch was faster than the answer
		r := newTestRecorder(t, 0, 0)
		for id := range 80 {
			found := wrote(r, id, kube.Version(100+id), own, effectChanged)
			first := 30
			if !own {
				first = 31 // the write before the first run is not known
			}
			if (found == "hot loop") != (id+1 >= first) {
				t.Errorf("own: %v: after %d runs %q is found", own, id+1, found)
			}
		}
		if found := wrote(r, 80, 500, false, effectChanged); found != "" {
			t.Errorf("after a run for an event of others %q is found", found)
		}
	}
}

func TestDetector_WritesWithoutEffectAndErrors_R30(t *testing.T) {
	r := newTestRecorder(t, 0, 0)
	for id := range 12 {
		if found := wrote(r, id, 7, false, effectNothing); (found == "write without effect") != (id >= 7) {
			t.Errorf("after %d writes without effect %q is found", id+1, found)
		}
	}
	for id := range 100 {
		if found := wrote(r, 12+id, 7, false, ""); (found == "stuck") != (id >= 60) {
			t.Errorf("after %d minutes of errors %q is found", id, found)
		}
	}
	if found := wrote(r, 112, 7, false, effectChanged); found != "" {
		t.Errorf("after a good run %q is found", found)
	}
	r.close()
	if found := foundBy(r, dawn); len(found) > 0 {
		t.Errorf("after the end %v is found", found)
	}
}

func foundBy(r *recorder[Key], now time.Time) []Finding {
	_, found := r.found(now)
	return found
}
