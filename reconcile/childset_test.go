// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

// childWriter writes children as a client does, and records the calls.
type childWriter struct {
	server server
	asked  []string
	refuse string // name of a child that cannot be applied
	owner  string
	parent metav1.Object // on the server; nil: none
	reads  int           // of children

	immutable bool // the content of existing children
	refuseNew bool // a child that is to be recreated
	holds     bool // finalizers hold a child that is recreated

	// After a deletion to recreate, refuse and unreadable are set to these.
	refuseThen                 string
	unreadable, unreadableThen error // of reads of children
}

func (n *childWriter) DeleteToRecreate(_ context.Context, child, is kube.Object, propagation metav1.DeletionPropagation) error {
	n.asked = append(n.asked, "delete to recreate "+child.GetName()+" "+string(propagation))
	if n.refuseNew {
		return errors.New("invalid as a new object as well")
	}
	if now := n.server.get(child.GetName()); now.UID != is.GetUID() || now.ResourceVersion != is.GetResourceVersion() {
		return staleError(child.GetName())
	}
	n.refuse, n.unreadable = n.refuseThen, n.unreadableThen
	if n.holds {
		n.server.remove(child.GetName())
		return nil
	}
	n.server.Delete(kube.KeyOf(child))
	return nil
}

func (n *childWriter) ChildOwner() string { return "its-own" }

// by is the entry of a child's managedFields that an apply by manager makes; by "": the
// writer's own.
func by(manager string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: cmp.Or(manager, "its-own"), Operation: metav1.ManagedFieldsOperationApply}
}

func (n *childWriter) ReadChild(_ context.Context, child kube.Object) (kube.Object, error) {
	if _, isParent := child.(*corev1.ConfigMap); isParent {
		n.asked = append(n.asked, "read "+child.GetName())
		if n.parent != nil {
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: n.parent.GetName(), UID: n.parent.GetUID(), ResourceVersion: n.parent.GetResourceVersion(), Generation: n.parent.GetGeneration(),
				Labels: n.parent.GetLabels(), DeletionTimestamp: n.parent.GetDeletionTimestamp(),
			}}, nil
		}
	}
	n.reads++
	if n.unreadable != nil {
		return nil, n.unreadable
	}
	if is := n.server.get(child.GetName()); is != nil {
		return &metav1.PartialObjectMetadata{ObjectMeta: is.ObjectMeta}, nil
	}
	return nil, apierrors.NewNotFound(appsv1.Resource("deployments"), child.GetName())
}

func (n *childWriter) ApplyChild(ctx context.Context, child kube.Object, fieldOwner string, confirm func(context.Context) error) error {
	if is := n.server.get(child.GetName()); confirm != nil && (is == nil || is.Labels["content"] != child.GetLabels()["content"]) {
		if err := confirm(ctx); err != nil {
			return err
		}
	}
	n.asked, n.owner = append(n.asked, "apply "+child.GetName()), fieldOwner
	if child.GetName() == n.refuse {
		return errors.New("no room")
	}
	d := child.(*appsv1.Deployment)
	if is := n.server.get(d.Name); n.immutable && is != nil && is.Labels["content"] != d.Labels["content"] {
		return apierrors.NewInvalid(appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), d.Name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "selector"), "a whole object", "field is immutable"),
		})
	}
	if is := n.server.get(d.Name); is != nil && is.Labels["content"] == d.Labels["content"] && metav1.IsControlledBy(is, &metav1.ObjectMeta{UID: d.OwnerReferences[0].UID}) {
		*d = *is
		return nil
	}
	d.ManagedFields = []metav1.ManagedFieldsEntry{by(fieldOwner)}
	*d = *n.server.Write(d.DeepCopy())
	return nil
}

func (n *childWriter) EnsureChild(ctx context.Context, child kube.Object, fieldOwner string, prepare func(context.Context) error) (bool, error) {
	d := child.(*appsv1.Deployment)
	n.asked, n.owner = append(n.asked, "ensure "+d.Name), fieldOwner
	if is := n.server.get(d.Name); is != nil {
		*d = *is
		return false, nil
	}
	if err := prepare(ctx); err != nil {
		return false, err
	}
	d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: fieldOwner, Operation: metav1.ManagedFieldsOperationUpdate}}
	*d = *n.server.Write(d.DeepCopy())
	return true, nil
}

func (n *childWriter) DeleteChild(_ context.Context, child kube.Object) error {
	n.asked = append(n.asked, "delete "+child.GetName())
	switch is := n.server.get(child.GetName()); {
	case is == nil:
		return apierrors.NewNotFound(appsv1.Resource("deployments"), child.GetName())
	case is.UID != child.GetUID() || is.ResourceVersion != child.GetResourceVersion():
		return staleError(child.GetName())
	}
	n.server.Delete(kube.KeyOf(child))
	return nil
}

func (n *childWriter) take() []string {
	asked := n.asked
	n.asked = nil
	return asked
}

// family returns a set over a running informer, and a parent.
func family(t *testing.T, opts reconcile.ChildSetOptions) (*reconcile.ChildSet, *childWriter, *corev1.ConfigMap) {
	s := newServer()
	n := &childWriter{server: s}
	set := reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{reconcile.Children(watch(t, s))}, opts)
	return set, n, parentOf("prod", "p", "p")
}

// owned is a child that a set without a FieldOwner has applied.
func owned(name string, parent *corev1.ConfigMap, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	applied := func(d *appsv1.Deployment) { d.ManagedFields = []metav1.ManagedFieldsEntry{by("")} }
	return deployment(name, append(append([]func(*appsv1.Deployment){applied}, changes...), func(d *appsv1.Deployment) {
		d.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	})...)
}

func content(text string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Labels = map[string]string{"content": text} }
}

// With AskParent no child of a deleted parent is created, even if the cache still has the
// parent; existing children are applied without a question.
func TestChildSet_AsksForTheParentBeforeItCreatesAChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{AskParent: true})
		n.parent = parent
		another := parentOf("prod", "p", "another")
		for _, step := range []struct {
			parent metav1.Object
			wanted []kube.Object
			asked  []string
			gone   bool
		}{
			{parent, []kube.Object{deployment("a"), deployment("b")}, []string{"read p", "apply a", "apply b"}, false},
			{parent, []kube.Object{deployment("a"), deployment("b")}, []string{"apply a", "apply b"}, false},
			{nil, []kube.Object{deployment("a"), deployment("b"), deployment("c")}, []string{"apply a", "apply b", "read p"}, true},
			{another, []kube.Object{deployment("a"), deployment("c")}, []string{"apply a", "read p"}, true},
		} {
			n.parent = step.parent
			_, err := set.Apply(t.Context(), parent, step.wanted...)
			if asked := n.take(); !slices.Equal(asked, step.asked) || errors.Is(err, reconcile.ErrParentGone) != step.gone || (err != nil) != step.gone {
				t.Errorf("asked %q, got %v, want %q and ErrParentGone %v", asked, err, step.asked, step.gone)
			}
			synctest.Wait()
		}
	})
}

// With AskParent no child is written for a parent that the server has a newer version of.
func TestChildSet_WritesNothingForAnOutdatedParent_M16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, cached := family(t, reconcile.ChildSetOptions{AskParent: true})
		cached.ResourceVersion, cached.Generation, cached.Labels = "5", 2, map[string]string{"shard": "a"}
		newer := func(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
			is := kube.Copy(cached)
			is.ResourceVersion = "6"
			change(is)
			return is
		}
		for i, row := range []struct {
			what string
			is   *corev1.ConfigMap
			err  error
		}{
			{"the same", cached, nil},
			{"another status", newer(func(*corev1.ConfigMap) {}), nil},
			{"other annotations", newer(func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} }), nil},
			{"another spec", newer(func(c *corev1.ConfigMap) { c.Generation = 3 }), reconcile.ErrParentChanged},
			{"another shard", newer(func(c *corev1.ConfigMap) { c.Labels = map[string]string{"shard": "b"} }), reconcile.ErrParentChanged},
			{"being deleted", newer(func(c *corev1.ConfigMap) { c.DeletionTimestamp = &metav1.Time{Time: time.Now()} }), reconcile.ErrParentChanged},
			{"no generation", newer(func(c *corev1.ConfigMap) { c.Generation = 0 }), reconcile.ErrParentChanged},
			{"recreated", newer(func(c *corev1.ConfigMap) { c.UID = "another" }), reconcile.ErrParentGone},
		} {
			n.parent = row.is
			want := []string{"read p", "apply a"}
			if row.err != nil {
				want = want[:1]
			}
			wanted := deployment("a", content(fmt.Sprint(i)))
			if _, err := set.Apply(t.Context(), cached, wanted); !errors.Is(err, row.err) || (err == nil) != (row.err == nil) {
				t.Errorf("%s: %v, want %v", row.what, err, row.err)
			}
			if asked := n.take(); !slices.Equal(asked, want) {
				t.Errorf("%s: asked %q, want %q", row.what, asked, want)
			}
			synctest.Wait()
		}
		n.parent = nil
		if _, err := set.Apply(t.Context(), cached, deployment("a", content("2"))); err != nil || slices.Contains(n.take(), "read p") {
			t.Errorf("what is omitted asks for the parent: %v", err)
		}
	})
}

// With AskParent no child is deleted for a parent that the server has a newer version of: the
// new shard may have just created it.
func TestChildSet_PrunesNothingForAnOutdatedParent_M16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, cached := family(t, reconcile.ChildSetOptions{AskParent: true})
		cached.ResourceVersion, cached.Generation = "5", 2
		n.server.Write(owned("a", cached))
		n.server.Write(owned("new", cached))
		synctest.Wait()
		moved := kube.Copy(cached)
		moved.ResourceVersion, moved.Labels = "6", map[string]string{"shard": "b"}
		n.parent = moved
		prune := map[string]func() (reconcile.ChildReport, error){
			"Apply":    func() (reconcile.ChildReport, error) { return set.Apply(t.Context(), cached, deployment("a")) },
			"PruneAll": func() (reconcile.ChildReport, error) { return set.PruneAll(t.Context(), cached) },
		}
		for name, f := range prune {
			if report, err := f(); !errors.Is(err, reconcile.ErrParentChanged) || len(report.Pruned) > 0 {
				t.Errorf("%s = %v, %v; want ErrParentChanged, and nothing pruned", name, report, err)
			}
			for _, asked := range n.take() {
				if strings.HasPrefix(asked, "delete ") {
					t.Errorf("%s: %s, for a parent that has moved", name, asked)
				}
			}
		}
		n.parent = cached
		if report, err := prune["Apply"](); err != nil || len(report.Pruned) != 1 {
			t.Errorf("Apply = %v, %v; want that it prunes new, for the same parent", report, err)
		}
	})
}

func TestChildSet_MakesChildrenWhatIsWanted_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{FieldOwner: "me"})
		for _, step := range []struct {
			wanted []kube.Object
			asked  []string
			report string
		}{
			{[]kube.Object{deployment("a"), deployment("b")}, []string{"apply a", "apply b"}, "created Deployment prod/a, Deployment prod/b; 0 unchanged"},
			{[]kube.Object{deployment("a"), deployment("b", content("new"))}, []string{"apply a", "apply b"}, "updated Deployment prod/b; 1 unchanged"},
			{[]kube.Object{deployment("c"), deployment("a")}, []string{"apply c", "apply a", "delete b"}, "created Deployment prod/c; pruned Deployment prod/b; 1 unchanged"},
			{[]kube.Object{deployment("c"), deployment("a")}, []string{"apply c", "apply a"}, "2 unchanged"},
		} {
			report, err := set.Apply(t.Context(), parent, step.wanted...)
			if asked := n.take(); err != nil || report.String() != step.report || !slices.Equal(asked, step.asked) {
				t.Fatalf("asked %q, got %q, %v\nwant %q, %q", asked, report, err, step.asked, step.report)
			}
			synctest.Wait()
		}
		if n.owner != "me" || !metav1.IsControlledBy(n.server.get("a"), parent) {
			t.Errorf("applied as %q: %v, want as \"me\" and controlled by the parent", n.owner, n.server.get("a"))
		}
	})
}

func TestChildSet_PrunesNothingThatIsNotItsOwn_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{FieldOwner: "me", Labels: map[string]string{"set": "one"}})
		unproven := func(d *appsv1.Deployment) { d.Labels = map[string]string{"set": "one"} }
		managedBy := func(entries ...metav1.ManagedFieldsEntry) func(*appsv1.Deployment) {
			return func(d *appsv1.Deployment) { d.ManagedFields = entries }
		}
		ours := func(d *appsv1.Deployment) { unproven(d); managedBy(by("me"))(d) }
		const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
		reborn := parentOf("prod", "p", "older")
		for _, d := range []*appsv1.Deployment{
			owned("ours", parent, ours),
			owned("made-once", parent, unproven, managedBy(metav1.ManagedFieldsEntry{Manager: "me-once", Operation: update})),
			owned("made-by-hand", parent, unproven, managedBy(metav1.ManagedFieldsEntry{Manager: "me", Operation: update})),
			owned("applied-by-another", parent, unproven, managedBy(by("another"))),
			owned("its-status-applied", parent, unproven, managedBy(
				metav1.ManagedFieldsEntry{Manager: "me", Operation: apply, Subresource: "status"})),
			owned("without-owners", parent, unproven, managedBy()),
			owned("another-set", parent, func(d *appsv1.Deployment) { d.Labels = map[string]string{"set": "two"} }),
			owned("without-labels", parent),
			owned("another-uid", reborn, ours),
			owned("going", parent, ours, func(d *appsv1.Deployment) {
				d.DeletionTimestamp, d.Finalizers = &metav1.Time{}, []string{"example.com/a"}
			}),
			deployment("nobodys", ours),
			deployment("owned-not-controlled", ours, func(d *appsv1.Deployment) {
				d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "p", UID: "p"}}
			}),
		} {
			n.server.Write(d)
		}
		synctest.Wait()
		report, err := set.Apply(t.Context(), parent, deployment("wanted"))
		asked := n.take()
		slices.Sort(asked)
		if want := []string{"apply wanted", "delete made-once", "delete ours"}; err != nil || !slices.Equal(asked, want) {
			t.Errorf("asked %q (%v, %v), want %q: the rest is not this set's", asked, report, err, want)
		}
		if d := n.server.get("wanted"); d.Labels["set"] != "one" {
			t.Errorf("labels %v, want the set's, or it will never be pruned", d.Labels)
		}
	})
}

// withoutManagedFields is an informer whose objects lack managedFields, as those of a factory do.
func withoutManagedFields(t *testing.T, s server) *informer.SharedInformer[*appsv1.Deployment] {
	i := newInformer(t, s)
	err := i.SetTransform(func(d *appsv1.Deployment) (*appsv1.Deployment, error) {
		d = d.DeepCopy()
		d.ManagedFields = nil
		return d, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// What the program makes for the parent beside the set stays, whether the cache has its
// managedFields or not; the server is asked once for each version of it.
func TestChildSet_PrunesNothingMadeBesideIt_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			what  string
			keep  bool
			reads int
		}{{"a cache without managedFields", false, 2}, {"a cache with managedFields", true, 0}} {
			for _, opts := range []reconcile.ChildSetOptions{{}, {FieldOwner: "me"}} {
				s := newServer()
				n := &childWriter{server: s}
				i := newInformer(t, s)
				if !row.keep {
					i = withoutManagedFields(t, s)
				}
				set := reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{reconcile.Children(i)}, opts)
				run(t, i)
				parent := parentOf("prod", "p", "p")
				beside := owned("password", parent, func(d *appsv1.Deployment) {
					d.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: by(opts.FieldOwner).Manager, Operation: metav1.ManagedFieldsOperationUpdate}}
				})
				first := s.Write(beside.DeepCopy())
				synctest.Wait()
				apply := func() {
					t.Helper()
					if report, err := set.Apply(t.Context(), parent, deployment("a")); err != nil || len(report.Pruned) > 0 {
						t.Errorf("%s, owner %q: %v, %v; want nothing pruned", row.what, opts.FieldOwner, report, err)
					}
				}
				apply()
				synctest.Wait()
				apply()
				apply()
				s.Write(first.DeepCopy())
				synctest.Wait()
				n.reads = max(n.reads-1, 0) // that of the child that was created
				apply()
				if n.reads != row.reads {
					t.Errorf("%s, owner %q: asked the server %d times, want %d: once for each version", row.what, opts.FieldOwner, n.reads, row.reads)
				}
				if report, err := set.Apply(t.Context(), parent); err == nil || !strings.Contains(err.Error(), "(1)") {
					t.Errorf("%s, owner %q: nothing wanted: %v, %v; want an error that counts the set's child alone", row.what, opts.FieldOwner, report, err)
				}
				report, err := set.PruneAll(t.Context(), parent)
				if err != nil || report.String() != "pruned Deployment prod/a; 0 unchanged" || s.get("password") == nil {
					t.Errorf("%s, owner %q: %v, %v, password %v; want the set's child pruned alone", row.what, opts.FieldOwner, report, err, s.get("password"))
				}
				synctest.Wait()
				if report, err := set.Apply(t.Context(), parent); err != nil || report.Changed() {
					t.Errorf("%s, owner %q: %v, %v; nothing wanted, and nothing to prune", row.what, opts.FieldOwner, report, err)
				}
				if row.keep {
					continue
				}
				taken := owned("taken", parent, func(d *appsv1.Deployment) { d.ManagedFields[0].Manager = by(opts.FieldOwner).Manager })
				s.Write(taken.DeepCopy())
				synctest.Wait()
				s.Hold() // the cache lags
				taken.OwnerReferences = nil
				s.Write(taken)
				if report, err := set.PruneAll(t.Context(), parent); err != nil || report.Changed() {
					t.Errorf("%s, owner %q: %v, %v; the parent does not control it any more", row.what, opts.FieldOwner, report, err)
				}
				s.Release()
			}
		}
	})
}

// Each deletion is logged at INFO.
func TestChildSet_LogsWhatItPrunes_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{})
		n.server.Write(owned("old", parent))
		synctest.Wait()
		var lines []string
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		if _, err := set.Apply(logr.NewContext(t.Context(), log), parent, deployment("new")); err != nil {
			t.Fatal(err)
		}
		if len(lines) != 1 || !strings.Contains(lines[0], `"level"=0`) || !strings.Contains(lines[0], `"child"="prod/old"`) {
			t.Errorf("logged %q, want one line at level 0 that names the child", lines)
		}
	})
}

func TestChildSet_PrunesOnlyAfterAllIsApplied_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{})
		n.server.Write(owned("old", parent))
		synctest.Wait()
		n.refuse = "b"
		report, err := set.Apply(t.Context(), parent, deployment("a"), deployment("b"), deployment("c"))
		if asked := n.take(); err == nil || !slices.Equal(asked, []string{"apply a", "apply b", "apply c"}) || len(report.Created) != 2 {
			t.Errorf("asked %q, %v, %v; want all applied, nothing pruned, and the error", asked, report, err)
		}
		if !strings.Contains(err.Error(), "child Deployment prod/b: no room") {
			t.Errorf("got %v, want the child named", err)
		}
	})
}

func TestChildSet_PrunesAtTheVersionThatWasRead_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{})
		n.server.Write(owned("old", parent))
		synctest.Wait()
		n.server.Hold() // the cache lags
		n.server.Write(owned("old", parent, content("newer")))
		_, err := set.Apply(t.Context(), parent, deployment("new"))
		if n.server.get("old") == nil || !apierrors.IsConflict(err) {
			t.Errorf("got %v and %v, want a conflict: the child has changed", n.server.get("old"), err)
		}
		n.server.Release()
	})
}

func TestChildSet_NothingWantedPrunesNothing_R10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{})
		if report, err := set.Apply(t.Context(), parent); err != nil || report.Changed() {
			t.Errorf("got %v, %v where there is nothing; that is no error", report, err)
		}
		n.server.Write(owned("a", parent))
		n.server.Write(owned("b", parent))
		synctest.Wait()
		_, err := set.Apply(t.Context(), parent)
		if asked := n.take(); !errors.Is(err, reconcile.ErrNothingWanted) || len(asked) != 0 || !strings.Contains(err.Error(), "prod/p") {
			t.Errorf("asked %q, %v, want ErrNothingWanted and no request", asked, err)
		}
		report, err := set.PruneAll(t.Context(), parent)
		asked := n.take()
		slices.Sort(asked)
		if err != nil || len(report.Pruned) != 2 || !slices.Equal(asked, []string{"delete a", "delete b"}) {
			t.Errorf("asked %q, %v, %v, want both deleted: that was asked for", asked, report, err)
		}
		synctest.Wait()
		if report, err := set.PruneAll(t.Context(), parent); err != nil || report.Changed() {
			t.Errorf("got %v, %v after all are gone", report, err)
		}
	})
}

func TestChildSet_TakesNothingFromOthers_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := parentOf("prod", "q", "q")
		for _, adopt := range []bool{false, true} {
			set, n, parent := family(t, reconcile.ChildSetOptions{Adopt: adopt})
			n.server.Write(deployment("nobodys"))
			n.server.Write(owned("others", other))
			synctest.Wait()
			_, err := set.Apply(t.Context(), parent, deployment("others"))
			if taken, is := errors.AsType[*reconcile.AlreadyControlledError](err); !is || taken.Controller.UID != "q" || len(n.take()) != 0 {
				t.Errorf("adopt %v: got %v, want an AlreadyControlledError and no request", adopt, err)
			}
			_, err = set.Apply(t.Context(), parent, deployment("nobodys"))
			if applied := len(n.take()) == 1; applied != adopt || (err == nil) != adopt {
				t.Errorf("adopt %v: applied %v, %v", adopt, applied, err)
			}
		}
	})
}

// An informer may select objects, and a cache may lag: objects that it lacks may exist.
func TestChildSet_TakesNothingThatTheCacheDoesNotShow_R9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, adopt := range []bool{false, true} {
			set, n, parent := family(t, reconcile.ChildSetOptions{Adopt: adopt})
			n.server.Hold()
			n.server.Write(deployment("nobodys"))
			n.server.Write(owned("others", parentOf("prod", "q", "q")))
			n.server.Write(owned("ours", parent))
			_, err := set.Apply(t.Context(), parent, deployment("others"))
			if taken, is := errors.AsType[*reconcile.AlreadyControlledError](err); !is || taken.Controller.UID != "q" || len(n.take()) != 0 {
				t.Errorf("adopt %v: got %v, want an AlreadyControlledError and no write", adopt, err)
			}
			_, err = set.Apply(t.Context(), parent, deployment("nobodys"))
			if applied := len(n.take()) == 1; applied != adopt || (err == nil) != adopt {
				t.Errorf("adopt %v: applied %v, %v", adopt, applied, err)
			}
			report, err := set.Apply(t.Context(), parent, deployment("ours"))
			if err != nil || report.String() != "1 unchanged" {
				t.Errorf("its own: %v, %v; want it unchanged", report, err)
			}
			n.server.Release()
		}
	})
}

func TestChildSet_WhatCannotBeIsATerminalErrorAndNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{})
		elsewhere := deployment("a", func(d *appsv1.Deployment) { d.Namespace = "dev" })
		nameless := deployment("")
		for want, wanted := range map[string]kube.Object{
			"is nil":               (*appsv1.Deployment)(nil),
			"not made with":        parentOf("prod", "x", ""),
			"has no name":          nameless,
			"in another namespace": elsewhere,
			"wanted twice":         deployment("first"),
		} {
			_, err := set.Apply(t.Context(), parent, deployment("first"), wanted)
			if err == nil || !strings.Contains(err.Error(), want) || len(n.take()) != 0 {
				t.Errorf("got %v, want %q and no request", err, want)
			}
		}
		if _, err := set.Apply(t.Context(), parentOf("prod", "p", ""), deployment("a")); err == nil || !strings.Contains(err.Error(), "no UID") {
			t.Errorf("got %v, want an error about the parent", err)
		}
		kind := reconcile.Children(watch(t, n.server))
		for want, set := range map[string]*reconcile.ChildSet{
			"writer is nil": reconcile.NewChildSet(nil, testScheme(t), []reconcile.ChildKind{kind}, reconcile.ChildSetOptions{}),
			"mgr.Scheme()":  reconcile.NewChildSet(n, nil, []reconcile.ChildKind{kind}, reconcile.ChildSetOptions{}),
			"no kinds":      reconcile.NewChildSet(n, testScheme(t), nil, reconcile.ChildSetOptions{}),
			"given twice":   reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{kind, kind}, reconcile.ChildSetOptions{}),
			"is nil; give":  reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{reconcile.Children[*appsv1.Deployment](nil)}, reconcile.ChildSetOptions{}),
			"is empty":      reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{{}}, reconcile.ChildSetOptions{}),
		} {
			if _, err := set.PruneAll(t.Context(), parent); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want an error that says %q", err, want)
			}
		}
	})
}
