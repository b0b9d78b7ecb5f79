// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

var configMaps, pods = schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Pod"}

// watching returns a controller with one source.
func watching(s source.Snapshot) reconcile.Snapshot {
	return reconcile.Snapshot{Sources: []source.Snapshot{s}}
}

// A controller that is added during Run finds its kind divided for others, or not at all. It is
// refused if it would miss events.
func TestDivision_AControllerThatComesLateMissesNothing(t *testing.T) {
	self := source.Snapshot{Kind: configMaps, Self: true}
	for _, row := range []struct {
		name    string
		by      shards.By
		first   []reconcile.Snapshot
		late    reconcile.Snapshot
		refused bool
	}{
		{"the same use", shards.UID, []reconcile.Snapshot{watching(self)}, watching(self), false},
		{"the first of its kind", shards.UID, nil, watching(self), false},
		{"another kind", shards.UID, []reconcile.Snapshot{watching(self)}, watching(source.Snapshot{Kind: pods}), false},
		{"all objects", shards.UID, []reconcile.Snapshot{watching(self)}, watching(source.Snapshot{Kind: configMaps}), true},
		{"by owners", shards.UID, []reconcile.Snapshot{watching(self)}, watching(source.Snapshot{Kind: configMaps, Controllers: true}), true},
		{"all objects, as others", shards.UID, []reconcile.Snapshot{watching(source.Snapshot{Kind: configMaps})}, watching(source.Snapshot{Kind: configMaps}), false},
		{"by namespace", shards.Namespace, []reconcile.Snapshot{watching(self)}, watching(source.Snapshot{Kind: configMaps}), false},
		{"one replica", shards.Namespace, []reconcile.Snapshot{watching(self)}, reconcile.Snapshot{Singleton: true, Sources: []source.Snapshot{self}}, true},
		{"shards of its own", shards.Namespace, []reconcile.Snapshot{watching(self)}, reconcile.Snapshot{OwnShards: true, Sources: []source.Snapshot{self}}, true},
	} {
		run := row.first
		d := newDivision(row.by, func() []reconcile.Snapshot { return run })
		if err := misfit(d, row.late); err != nil {
			t.Errorf("%s, before Run: %v", row.name, err)
		}
		decided := d.of(configMaps)
		if err := misfit(d, row.late); (err != nil) != row.refused || err != nil && !strings.Contains(err.Error(), "add it before Run") {
			t.Errorf("%s: %v, want an error that says what to do: %v", row.name, err, row.refused)
		}
		run = append(run, row.late)
		if again := d.of(configMaps); again != decided {
			t.Errorf("%s: the kind is divided by %q and by %q", row.name, decided, again)
		}
	}
}

// It is logged once of each kind that Listers show a part of it.
func TestDivision_IsLoggedOnceOfEachKind(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	d := newDivision(shards.UID, func() []reconcile.Snapshot { return nil })
	part := state.Informer{Kind: configMaps.WithVersion("v1"), Division: state.Division{By: "uid", Count: 8}}
	whole := state.Informer{Kind: pods.WithVersion("v1"), Division: state.Division{Form: state.FormWhole}}
	for range 2 {
		d.log(log, []state.Informer{part, whole, part})
	}
	if len(lines) != 1 || !strings.Contains(lines[0], `"kind"="ConfigMap"`) || !strings.Contains(lines[0], "divided among the replicas") {
		t.Errorf("logged %q, want one line about ConfigMaps", lines)
	}
}

// misfit returns why a controller cannot be added.
func misfit(d *division, c reconcile.Snapshot) error {
	joined, err := d.join(c)
	if err == nil {
		joined()
	}
	return err
}

// An informer that starts while a controller is being added divides its kind with that controller.
func TestDivision_AControllerThatIsBeingAddedCounts(t *testing.T) {
	run := []reconcile.Snapshot{watching(source.Snapshot{Kind: configMaps, Self: true})}
	late := watching(source.Snapshot{Kind: configMaps})
	d := newDivision(shards.UID, func() []reconcile.Snapshot { return run })
	joined, err := d.join(late)
	if err != nil {
		t.Fatal(err)
	}
	if by := d.of(configMaps); by != "" {
		t.Errorf("the kind is divided by %q without the controller that is being added", by)
	}
	joined()

	var meanwhile func()
	d = newDivision(shards.UID, func() []reconcile.Snapshot {
		before := run
		if do := meanwhile; do != nil {
			meanwhile = nil
			do()
		}
		return before
	})
	meanwhile = func() {
		if err := misfit(d, late); err != nil {
			t.Error(err)
		}
		run = append(run, late)
	}
	if by := d.of(configMaps); by != "" {
		t.Errorf("the kind is divided by %q without the controller that was added meanwhile", by)
	}
}
