// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

var widgetKind = schema.GroupVersionKind{Group: "kit.example.dev", Version: "v1", Kind: "Widget"}

func widget(name, size string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	obj.SetGroupVersionKind(widgetKind)
	obj.SetNamespace("default")
	obj.SetName(name)
	return obj
}

// setUpSizer adds a program that keeps a ConfigMap with the name and size of each
// Widget.
func setUpSizer(mgr *manager.Manager) error {
	widgets := informer.ForKind(mgr.Informers(), widgetKind)
	lister, write := widgets.Lister(), mgr.Client()
	c := reconcile.New("sizer", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		is, err := lister.Get(key)
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		size, _, _ := unstructured.NestedString(is.Object, "spec", "size")
		return reconcile.Result{}, write.Apply(ctx, configMap(key.Name, map[string]string{"size": size}), client.FieldOwner("sizer"))
	}, reconcile.Options{Workers: 2})
	c.Watch(source.Kind(widgets, source.Self))
	return mgr.Add(c)
}

// sizes is a scenario in which a Widget is created at the start, and changed at three
// and a half seconds and at six and a half.
func sizes(w *kit.World) {
	w.Run(setUpSizer)
	x := widget("x", "0")
	w.Settled(func() error {
		m := configMap("x", nil)
		if size, _, _ := unstructured.NestedString(x.Object, "spec", "size"); !w.Get(m) || m.Data["size"] != size {
			return fmt.Errorf("the size is %v, wanted is %s", m.Data, size)
		}
		return nil
	})
	w.Create(x)
	w.Sleep(3500 * time.Millisecond)
	w.Edit(x, func() { x.Object["spec"] = map[string]any{"size": "1"} })
	w.Sleep(3 * time.Second)
	w.Edit(x, func() { x.Object["spec"] = map[string]any{"size": "2"} })
}

// Faults of a CRD's kind affect no other kind.
func TestKit_FaultsOfCustomKindsHaveTheirEffect(t *testing.T) {
	const kind = `Widget.kit.example.dev`
	for name, c := range map[string]struct {
		faults  kit.Plan
		follows []string
	}{
		"fail conversion": {kit.Plan{kit.Cut().At(3 * time.Second), kit.FailConversion(2 * time.Second).At(2 * time.Second)}, []string{
			`2s fault fault ` + kind + ` fail conversion`, `asked manager-1 ` + kind + ` watch`, `! answered manager-1 ` + kind + ` watch 200`, `answered manager-1 ` + kind + ` watch 500`,
			`! stored manager-1 ` + kind + ` .*@`, `4s over fault ` + kind + ` fail conversion`, `! answered manager-1 .* 500`, `stored manager-1 ` + kind + ` .*default/x`, `asked manager-1 ConfigMap patch`}},
		"change schema": {kit.Plan{kit.ChangeSchema().At(3 * time.Second)}, []string{
			`3s fault fault ` + kind + ` change schema`, `changed .*CustomResourceDefinition.apiextensions.k8s.io updated widgets.kit.example.dev`, `! answered manager-1 (ConfigMap|` + kind + `) watch [^2]`,
			`3s answered manager-1 ` + kind + ` watch 200`, `asked manager-1 ` + kind + ` watch`, `3.5s changed user ` + kind, `stored manager-1 ` + kind + ` .*default/x`, `asked manager-1 ConfigMap patch`}},
		"change schema and back": {kit.Plan{kit.ChangeSchema().At(3 * time.Second), kit.ChangeSchema().At(5 * time.Second)}, []string{
			`3s answered manager-1 ` + kind + ` watch 200`, `5s fault fault ` + kind + ` change schema`, `5s answered manager-1 ` + kind + ` watch 200`, `asked manager-1 ` + kind + ` watch`, `6.5s stored manager-1 ` + kind}},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{CRDs: []string{"testdata/widgets.yaml"}, Faults: c.faults}, 1, sizes)
			sound(t, h)
			follow(t, h, c.follows)
		})
	}
}

func TestKit_SwarmOfCustomKindsLeavesThemWhole(t *testing.T) {
	faults := kit.Swarm(kit.FailConversion(2*time.Second), kit.ChangeSchema(), kit.Coalesce(), kit.Cut(), kit.Stop(time.Second), kit.Crash(time.Second))
	kit.Test(t, kit.Config{Seeds: 8, CRDs: []string{"testdata/widgets.yaml"}, Faults: faults}, sizes)
}

// A built-in kind has no CRD that could be changed.
func TestKit_FaultsOfCustomKindsAreNotOfOthers_K6(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Sleep(time.Second)
		w.Do(kit.ChangeSchema().Of("ConfigMap"))
	})
	finds(t, h, "scenario", "there is nothing that change schema ConfigMap could happen to now")
}

// lost returns the writes whose answer was lost, as verb and key.
func lost(h *kit.History) (out []string) {
	for i, e := range h.Events {
		if e.What != kit.Answered || e.Code != 0 || e.Name == "watch" {
			continue
		}
		if j := first(h, 0, func(other kit.Event) bool { return other.What == kit.Changed && other.At == e.At && other.Who == e.Who }); j >= 0 && j < i {
			out = append(out, e.Who+" "+h.Events[j].Kind+" "+h.Events[j].Name+" "+h.Events[j].Key)
		}
	}
	return out
}

// The lost answer is that of the triggering write, which is stored; if that write is
// the user's or refused, it is the answer to the next write of its kind, and of no
// other kind.
func TestKit_LostResponseIsThatOfItsWrite(t *testing.T) {
	for name, c := range map[string]struct {
		faults kit.Plan
		want   string
	}{
		"that write": {kit.Plan{kit.LoseResponse().OnWrite("ConfigMap", 4)}, "manager-1 ConfigMap created default/copy-of-b"},
		"the user's, so the next of a process": {kit.Plan{kit.LoseResponse().OnWrite("ConfigMap", 1)},
			"manager-1 ConfigMap created default/copy-of-a"},
		"one that is refused, so the next": {kit.Plan{kit.Reject(1, 500).Of("ConfigMap").OnWrite("ConfigMap", 2), kit.LoseResponse().OnWrite("ConfigMap", 2)},
			"manager-1 ConfigMap created default/copy-of-a"},
		"the next of a kind": {kit.Plan{kit.LoseResponse().Of("ConfigMap").At(2 * time.Second)},
			"manager-1 ConfigMap created default/copy-of-b"},
		"a kind that nobody writes": {kit.Plan{kit.LoseResponse().Of("Secret").At(time.Millisecond)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: c.faults}, 3, func(w *kit.World) {
				w.Run(setUpCopier)
				w.Settled(copied(w))
				w.Create(configMap("a", nil))
				w.Sleep(3 * time.Second)
				w.Create(configMap("b", nil))
			})
			sound(t, h)
			if got := strings.Join(lost(h), ", "); got != c.want {
				t.Errorf("the answers to %q were lost, want %q", got, c.want)
			}
		})
	}
	// A write of another kind comes between the user's and the next of a process.
	h := kit.Run(t, kit.Config{CRDs: []string{"testdata/widgets.yaml"}, Faults: kit.Plan{kit.LoseResponse().OnWrite("Widget", 1)}}, 3, sizes)
	sound(t, h)
	if got := lost(h); len(got) != 0 {
		t.Errorf("the answers to %q were lost, and no process writes a Widget", got)
	}
}
