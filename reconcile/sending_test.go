// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

// cached has one Deployment.
type cached struct{ now kube.Object }

func (c *cached) Cached(schema.GroupVersionKind, kube.Key, kube.Object) kube.Object { return c.now }

func web(version string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", ResourceVersion: version},
		Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
	}
}

func TestSending_TheEffectIsWhatTheCacheShows_R29(t *testing.T) {
	deployments := appsv1.SchemeGroupVersion
	for _, row := range []struct {
		name           string
		before, after  kube.Object // in the cache; nil: none
		did            kube.WriteEffect
		version, from  kube.Version
		code           int
		watched        bool
		effect, fields string
	}{
		{"a change", web("7", 1), web("8", 2), kube.Stored, 8, 0, 200, true, "changed", "spec.replicas"},
		{"a change of the named version", web("7", 1), web("8", 2), kube.Stored, 8, 7, 200, true, "changed", "spec.replicas"},
		{"no change", web("7", 1), web("7", 1), kube.Stored, 7, 0, 200, true, "nothing", ""},
		{"of what is not kept", web("7", 1), web("8", 1), kube.Stored, 8, 0, 200, true, "changed", ""},
		{"the cache has a later version by now", web("7", 1), web("9", 3), kube.Stored, 8, 0, 200, true, "changed", ""},
		{"the cache does not have it", web("7", 1), nil, kube.Stored, 8, 0, 200, true, "changed", ""},
		{"the cache was behind", web("6", 1), web("8", 2), kube.Stored, 8, 7, 200, true, "changed", ""},
		{"new", nil, web("8", 2), kube.Stored, 8, 0, 201, true, "created", ""},
		{"gone", web("7", 1), nil, kube.Removed, 0, 0, 200, true, "deleted", ""},
		{"not known", web("7", 1), web("7", 1), kube.Touched, 0, 0, 500, true, "", ""},
		{"not watched", nil, nil, kube.Stored, 8, 0, 200, false, "", ""},
		{"not watched, but the version was named", nil, nil, kube.Stored, 8, 7, 200, false, "changed", ""},
		{"not watched, no change of the named version", nil, nil, kube.Stored, 7, 7, 200, false, "nothing", ""},
	} {
		var s sending
		rec := new(record)
		s.begin(rec, time.Now())
		q := contextvalues.Request{
			Verb: "apply", Path: "/apis/apps/v1/namespaces/shop/deployments/web", Version: deployments, Key: kube.Key{Namespace: "shop", Name: "web"},
		}
		cache := &cached{row.before}
		if row.watched {
			q.Kind, q.Cache = "Deployment", cache
		}
		n := s.sent(q)
		s.answered(n, contextvalues.Answer{Code: row.code, Bytes: 3, Ended: true})
		cache.now = row.after
		w := kube.Written{Kind: deployments.WithKind("Deployment"), Effect: row.did, Key: q.Key, Version: row.version}
		other := w
		other.Key.Name = "other"
		s.effected(other, 0)
		s.effected(w, row.from)
		other.Key.Name, other.Effect = "web", kube.Removed
		s.effected(other, 0) // of no request
		s.end()
		got := rec.pastRun().Requests[0]
		if got.Effect != row.effect || strings.Join(got.Fields, " ") != row.fields || got.Kind != "Deployment" {
			t.Errorf("%s: the effect on a %s is %q %q, want %q %q", row.name, got.Kind, got.Effect, got.Fields, row.effect, row.fields)
		}
	}
}

func TestSending_RequestsMayOutliveTheRun_R29(t *testing.T) {
	var s sending
	rec := new(record)
	s.begin(rec, time.Now())
	q := contextvalues.Request{Verb: "update", Path: "/api/v1/nodes/a", Version: schema.GroupVersion{Version: "v1"}, Key: kube.Key{Name: "a"}}
	n := s.sent(q)
	var late sync.WaitGroup
	for range 4 {
		late.Go(func() {
			for range 100 {
				s.answered(s.sent(q), contextvalues.Answer{Code: 200})
			}
		})
	}
	late.Wait()
	if ended, _ := s.end(); ended != rec {
		t.Fatal("the end returns another record")
	}
	before := fmt.Sprint(rec.pastRun())
	s.answered(n, contextvalues.Answer{Code: 409})
	s.effected(kube.Written{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Key: q.Key, Effect: kube.Removed}, 0)
	sent := s.sent(q)
	if again, cache := s.end(); sent >= 0 || again != nil || cache != nil || fmt.Sprint(rec.pastRun()) != before {
		t.Error("a request that outlives its run is recorded with the next one, which may have the record by then")
	}
	if run := rec.pastRun(); len(run.Requests) != mostRequests || run.MoreRequests != 401-mostRequests {
		t.Errorf("%d requests and %d more, want %d in all", len(run.Requests), run.MoreRequests, 401)
	}
}
