// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/actors"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

var collecting = simulate.Actors{GarbageCollector: true}

// own makes a ConfigMap in "ns" with owners, each a ConfigMap; "b!" is one that
// b blocks, and "b@uid" one of another identity.
func (p *play) own(name string, owners ...string) {
	p.t.Helper()
	var refs []string
	for _, owner := range owners {
		owner, blocks := strings.CutSuffix(owner, "!")
		owner, uid, other := strings.Cut(owner, "@")
		if !other {
			uid, _ = p.at(mapsPath+"/"+owner, "metadata", "uid").(string)
		}
		refs = append(refs, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"blockOwnerDeletion":%v}`, owner, uid, blocks))
	}
	p.must("POST "+mapsPath, fmt.Sprintf(`{"metadata":{"name":%q,"ownerReferences":[%s]}}`, name, strings.Join(refs, ",")))
}

func (p *play) delete(name, policy string) {
	p.t.Helper()
	p.must("DELETE "+mapsPath+"/"+name, fmt.Sprintf(`{"propagationPolicy":%q}`, policy))
}

func TestCollector_BackgroundDeletesDependentsAfterTheOwner_S21(t *testing.T) {
	acting(t, simulate.Options{}, collecting, func(p *play) {
		p.own("a")
		p.own("b", "a!")
		p.own("c", "b")
		p.own("other")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "a b c other", "all owners are there")
		p.delete("a", "Background")
		p.has(fixture.ConfigMaps, "b c other", "the owner goes at once")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "other", "what depends on it goes after it, and what depends on that")
	})
}

func TestCollector_ForegroundDeletesDependentsFirst_S21(t *testing.T) {
	acting(t, simulate.Options{}, collecting, func(p *play) {
		p.own("a")
		p.own("b", "a!")
		p.own("c", "a")
		p.must("PATCH "+mapsPath+"/b merge", `{"metadata":{"finalizers":["test.example.com/held"]}}`)
		p.must("PATCH "+mapsPath+"/c merge", `{"metadata":{"finalizers":["test.example.com/held"]}}`)
		p.delete("a", "Foreground")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "a b c", "the owner waits for what blocks it")
		if p.at(mapsPath+"/b", "metadata", "deletionTimestamp") == nil || p.at(mapsPath+"/c", "metadata", "deletionTimestamp") == nil {
			t.Error("dependents of an owner that is deleted in the foreground are not being deleted")
		}
		p.must("PATCH "+mapsPath+"/b merge", `{"metadata":{"finalizers":null}}`)
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "c", "the owner goes with the last that blocks it, c does not")
	})
}

func TestCollector_OrphansLoseTheirOwner_S21(t *testing.T) {
	acting(t, simulate.Options{}, collecting, func(p *play) {
		p.own("a")
		p.own("b", "a!")
		p.delete("a", "Orphan")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "b", "the owner goes, its dependents stay")
		if refs := p.at(mapsPath+"/b", "metadata", "ownerReferences"); refs != nil {
			t.Errorf("got owners %v, want none: an orphan has no owner", refs)
		}
	})
}

func TestCollector_JobsLeaveTheirPods_S21(t *testing.T) {
	acting(t, simulate.Options{}, working, func(p *play) {
		p.job("", fmt.Sprintf("%q:%q", actors.StageAnnotation, actors.StageRunning))
		fixture.Pass(5 * time.Second)
		p.must("DELETE "+jobsPath+"/j", "")
		fixture.Pass(5 * time.Second)
		p.has(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", "it is let go")
		if got := p.pods(); len(got) != 1 || len(got[0].OwnerReferences) > 0 {
			t.Errorf("got %d pods, want one without an owner: a job leaves its pods when nobody says otherwise", len(got))
		}
	})
}

func TestCollector_AJobEndsWithItsPodsAtAnyTime_S21(t *testing.T) {
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			acting(t, simulate.Options{}, working, func(p *play) {
				p.job("", fmt.Sprintf("%q:%q", actors.StageAnnotation, actors.StageRunning))
				fixture.Pass(time.Duration(i) * 20 * time.Millisecond)
				p.must("DELETE "+jobsPath+"/j", `{"propagationPolicy":"Foreground"}`)
				fixture.Pass(2 * time.Minute)
				p.has(schema.GroupResource{Group: "batch", Resource: "jobs"}, "", "its pods are gone, so it is gone")
				if got := p.pods(); len(got) != 0 {
					t.Errorf("got the pod %s %s with the finalizers %v, want none", got[0].Name, got[0].Status.Phase, got[0].Finalizers)
				}
			})
		})
	}
}

func TestCollector_OneOwnerOfSeveralIsEnough_S21(t *testing.T) {
	acting(t, simulate.Options{}, collecting, func(p *play) {
		p.own("a")
		p.own("b")
		p.own("c", "a", "b")
		p.delete("a", "Background")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "b c", "c has an owner left")
		if got := fmt.Sprint(p.at(mapsPath+"/c", "metadata", "ownerReferences")); strings.Contains(got, "name:a") || !strings.Contains(got, "name:b") {
			t.Errorf("got owners %s, want b alone: the reference to one that is gone is taken away", got)
		}
		p.delete("b", "Background")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "", "c has lost its last owner")
	})
}

func TestCollector_OwnersThatWereNeverThere_S21(t *testing.T) {
	acting(t, simulate.Options{}, collecting, func(p *play) {
		p.own("a")
		p.own("b", "a@another")
		p.own("c", "none@any")
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "a", "an owner of another identity is none")
	})
}

func TestCollector_OwnersOfOtherScopes_S21(t *testing.T) {
	nodes := schema.GroupResource{Resource: "nodes"}
	acting(t, simulate.Options{Kinds: []simulate.Kind{fixture.WidgetKind}}, collecting, func(p *play) {
		node, _ := in(p.must("POST /api/v1/nodes", `{"metadata":{"name":"n"}}`), "metadata", "uid").(string)
		ref := fmt.Sprintf(`{"apiVersion":"v1","kind":"Node","name":"n","uid":%q}`, node)
		p.must("POST /apis/test.example.com/v1/namespaces/ns/widgets", `{"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"w","ownerReferences":[`+ref+`]}}`)
		p.own("a")
		uid, _ := p.at(mapsPath+"/a", "metadata", "uid").(string)
		ref = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":%q}`, uid)
		p.must("POST /api/v1/namespaces/other/configmaps", `{"metadata":{"name":"b","ownerReferences":[`+ref+`]}}`)
		p.must("POST /api/v1/nodes", `{"metadata":{"name":"m","ownerReferences":[`+ref+`]}}`)
		fixture.Pass(time.Minute)
		p.has(fixture.ConfigMaps, "a", "an owner in another namespace is none")
		p.has(nodes, "m n", "what has no namespace is left alone, whatever it names as its owner")
		p.has(fixture.Widgets, "w", "its owner is there, and has no namespace")
		p.must("DELETE /api/v1/nodes/n", "")
		fixture.Pass(time.Second)
		p.has(fixture.Widgets, "", "a custom resource goes with its owner too")
	})
}

func TestCollector_CirclesEnd_S21(t *testing.T) {
	acting(t, simulate.Options{}, collecting, func(p *play) {
		p.own("a")
		p.own("b", "a!")
		uid, _ := p.at(mapsPath+"/b", "metadata", "uid").(string)
		p.must("PATCH "+mapsPath+"/a merge", fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"b","uid":%q,"blockOwnerDeletion":true}]}}`, uid))
		p.delete("a", "Foreground")
		fixture.Pass(time.Minute)
		p.has(fixture.ConfigMaps, "", "objects that own each other do not wait forever")
	})
}

func TestCollector_StartsOnWhatIsThere_S21(t *testing.T) {
	acting(t, simulate.Options{}, simulate.Actors{}, func(p *play) {
		p.own("a")
		p.own("b", "a!")
		p.own("c", "b!")
		p.delete("b", "Foreground")
		p.delete("a", "Background")
		ctx, stop := context.WithCancel(p.t.Context())
		p.run(ctx, collecting)
		fixture.Pass(time.Second)
		p.has(fixture.ConfigMaps, "", "what was to be done before the actors came is done")
		stop()
		synctest.Wait()
		p.own("d", "none@any")
		fixture.Pass(time.Minute)
		p.has(fixture.ConfigMaps, "d", "the actors have left")
	})
}
