// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

var (
	pods    = schema.GroupResource{Resource: "pods"}
	secrets = schema.GroupResource{Resource: "secrets"}
)

// change is a modification of an object at a revision.
func change(r schema.GroupResource, name string, revision int64) revisions.Change {
	return revisions.Change{Revision: revision, Resource: r, Key: types.NamespacedName{Name: name}, Before: &object.Object{}, After: &object.Object{}}
}

// said lists changes as resource/name@revision.
func said(changes []revisions.Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s/%s@%d", c.Resource.Resource[:1], c.Key.Name, c.Revision))
	}
	return strings.Join(out, " ")
}

func TestDelivery_FaultsChangeWhatIsDelivered(t *testing.T) {
	four := []revisions.Change{change(pods, "a", 1), change(pods, "b", 2), change(secrets, "a", 3), change(pods, "a", 4)}
	for _, c := range []struct {
		name         string
		fault        func(*Delivery)
		want, healed string
	}{
		{"no fault", func(*Delivery) {}, "p/a@1 p/b@2 s/a@3 p/a@4", ""},
		{"drop", func(d *Delivery) { d.Drop(pods, 2) }, "s/a@3 p/a@4", ""},
		{"drop one more", func(d *Delivery) { d.Drop(pods, 1); d.DropOneMore(pods) }, "s/a@3 p/a@4", ""},
		{"duplicate", func(d *Delivery) { d.Duplicate(pods, 1) }, "p/a@1 p/a@1 p/b@2 s/a@3 p/a@4", ""},
		{"reorder", func(d *Delivery) { d.Reorder(pods) }, "p/b@2 p/a@1 s/a@3 p/a@4", ""},
		{"reorder the last", func(d *Delivery) { d.Reorder(secrets) }, "p/a@1 p/b@2 p/a@4", "s/a@3"},
		{"coalesce", func(d *Delivery) { d.Coalesce(pods) }, "p/b@2 s/a@3 p/a@4", ""},
		{"coalesce one", func(d *Delivery) { d.Coalesce(secrets) }, "p/a@1 p/b@2 p/a@4", "s/a@3"},
		{"lag of one resource", func(d *Delivery) { d.LagKindTo(pods, 1) }, "p/a@1 s/a@3", "p/b@2 p/a@4"},
		{"held back by several", func(d *Delivery) { d.LagKindTo(pods, 1); d.Reorder(secrets) }, "p/a@1", "p/b@2 s/a@3 p/a@4"},
		{"coalesced and reordered", func(d *Delivery) { d.Drop(pods, 1); d.Coalesce(pods); d.Reorder(pods) }, "s/a@3", "p/b@2 p/a@4"},
		{"rewound", func(d *Delivery) { d.LagKindTo(pods, 1); d.Deliver(four); d.Rewound(2) }, "p/a@1 s/a@3", "p/b@2 p/b@2 p/a@4"},
	} {
		var d Delivery
		c.fault(&d)
		if got := said(d.Deliver(four)); got != c.want {
			t.Errorf("%s: delivered %q, want %q", c.name, got, c.want)
		}
		if got := said(d.Heal()); got != c.healed {
			t.Errorf("%s: Heal returns %q, want %q", c.name, got, c.healed)
		}
		if got := said(d.Deliver(four)); got != "p/a@1 p/b@2 s/a@3 p/a@4" {
			t.Errorf("%s: after Heal, delivered %q, want everything", c.name, got)
		}
	}
}

func TestDelivery_LateChangesComeWhenTheirResourceCatchesUp(t *testing.T) {
	var d Delivery
	d.LagKindTo(pods, 0)
	if got := said(d.Deliver([]revisions.Change{change(pods, "a", 1), change(pods, "b", 2)})); got != "" {
		t.Errorf("delivered %q while the resource lags", got)
	}
	d.LagKindTo(pods, 1)
	if got := said(d.Deliver([]revisions.Change{change(secrets, "a", 3)})); got != "p/a@1 s/a@3" {
		t.Errorf("delivered %q, want p/a@1 s/a@3", got)
	}
	d.CatchUpKind(pods)
	if got := said(d.Deliver(nil)); got != "p/b@2" {
		t.Errorf("delivered %q, want p/b@2", got)
	}
}

// A creation and a deletion that become one are nothing.
func TestDelivery_CoalescedLifeIsNotDelivered(t *testing.T) {
	var d Delivery
	d.Coalesce(pods)
	created, deleted := change(pods, "a", 1), change(pods, "a", 2)
	created.Before, deleted.After = nil, nil
	if got := said(d.Deliver([]revisions.Change{created, deleted})); got != "" {
		t.Errorf("delivered %q, want nothing", got)
	}
}
