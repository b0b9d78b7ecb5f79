// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
)

// Objects of a kind without a controller get the status that is given, with their generation.
func TestActors_StubsWriteAStatus(t *testing.T) {
	statuses := &simulate.Statuses{
		{Group: "apps", Kind: "Deployment"}: {"replicas": int64(3), "readyReplicas": int64(3), "observedGeneration": int64(0)},
	}
	acting(t, simulate.Options{}, simulate.Actors{Statuses: statuses}, func(p *play) {
		const at = "/apis/apps/v1/namespaces/ns/deployments"
		made := p.must("POST "+at, `{"metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
		settle(p)
		for range 2 {
			is := p.must("GET "+at+"/web", "")
			got := fmt.Sprint(is["status"])
			if want := fmt.Sprintf("map[observedGeneration:%v readyReplicas:3 replicas:3]", is["metadata"].(map[string]any)["generation"]); got != want {
				t.Errorf("the status is %s, want %s", got, want)
			}
			made["spec"].(map[string]any)["paused"] = true
			delete(made["metadata"].(map[string]any), "resourceVersion")
			text, err := (&unstructured.Unstructured{Object: made}).MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			p.must("PUT "+at+"/web", string(text))
			settle(p)
		}
	})
}

// A status that the server refuses is tried once, and an Event of each object says why.
func TestActors_StubsReportARefusal(t *testing.T) {
	bad := map[string]any{"replicas": int64(-1)}
	statuses := &simulate.Statuses{{Group: "apps", Kind: "Deployment"}: bad, {Group: "apps", Kind: "ReplicaSet"}: bad}
	acting(t, simulate.Options{}, simulate.Actors{Statuses: statuses}, func(p *play) {
		const at = "/apis/apps/v1/namespaces/ns/"
		name := strings.Repeat("w", 253)
		spec := `"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}`
		for _, kind := range []string{"deployments", "replicasets"} {
			p.must("POST "+at+kind, `{"metadata":{"name":"`+name+`"},`+spec+`}`)
			settle(p)
			p.must("PUT "+at+kind+"/"+name, `{"metadata":{"name":"`+name+`","labels":{"changed":"yes"}},`+spec+`}`)
			settle(p)
		}
		refused := map[string]string{}
		for _, event := range p.must("GET /api/v1/namespaces/ns/events", "")["items"].([]any) {
			fields := event.(map[string]any)
			about := fields["involvedObject"].(map[string]any)
			refused[fmt.Sprint(about["kind"], " ", about["name"])] += fmt.Sprint(fields["reason"], " ", fields["message"])
		}
		for _, kind := range []string{"Deployment", "ReplicaSet"} {
			if is := refused[kind+" "+name]; !strings.HasPrefix(is, simulate.StatusRefused+" ") || !strings.Contains(is, "status.replicas") || strings.Count(is, simulate.StatusRefused) != 1 {
				t.Errorf("the Events of the %s say %q", kind, is)
			}
		}
		if due := p.ActorsDue(); !due.IsZero() {
			t.Errorf("a step is due at %s", due)
		}
	})
}

// settle waits until the actors have nothing to do.
func settle(p *play) {
	for synctest.Wait(); !p.ActorsDue().IsZero(); synctest.Wait() {
		time.Sleep(time.Until(p.ActorsDue()))
	}
}

// The actors say that they have work while they do, and nothing when all is done.
func TestActors_SayWhenTheyHaveWork(t *testing.T) {
	acting(t, simulate.Options{}, simulate.Actors{Namespaces: true, Workloads: true}, func(p *play) {
		settle(p)
		p.must("POST /api/v1/namespaces/ns/pods", `{"metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		if due := p.ActorsDue(); due.IsZero() {
			t.Error("a Pod is to be started, and no step is due")
		}
		settle(p)
		pods := p.Objects(schema.GroupResource{Resource: "pods"})
		if phase, _, _ := unstructured.NestedString(pods[0].(*unstructured.Unstructured).Object, "status", "phase"); phase != "Running" {
			t.Errorf("when no step is due any more the Pod is %s, want it to run", phase)
		}
	})
}
