// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

// A child of Once gets its content when it is created, and keeps it, whatever is wanted later
// and whoever has changed it since; when it is deleted there is a new one.
func TestOnce_IsMadeOnceAndKept_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{FieldOwner: "me", Labels: map[string]string{"set": "one"}})
		calls := 0
		apply := func(others ...kube.Object) (*appsv1.Deployment, string, error) {
			t.Helper()
			d := deployment("kept", content("wanted"))
			report, err := set.Apply(t.Context(), parent, append(others, reconcile.Once(d, func(d *appsv1.Deployment) {
				calls++
				d.Annotations = map[string]string{"password": fmt.Sprint(calls)}
			}))...)
			synctest.Wait()
			return d, report.String(), err
		}
		check := func(what, report string, password string, asked ...string) {
			t.Helper()
			d, got, err := apply()
			if sent := n.take(); err != nil || got != report || !slices.Equal(sent, asked) {
				t.Errorf("%s: asked %q, got %q, %v\nwant %q, %q", what, sent, got, err, asked, report)
			}
			if is := n.server.get("kept"); d.Annotations["password"] != password || is.Annotations["password"] != password || d.UID != is.UID {
				t.Errorf("%s: the child is %v and the server has %v, want both with password %s", what, d, is, password)
			}
		}
		check("new", "created Deployment prod/kept; 0 unchanged", "1", "ensure kept")
		if is := n.server.get("kept"); n.owner != "me-once" || !metav1.IsControlledBy(is, parent) || is.Labels["set"] != "one" {
			t.Errorf("created as %q: %v, want as \"me-once\", with the parent and the labels of the set", n.owner, is)
		}
		check("again", "1 unchanged", "1")
		is := n.server.get("kept")
		is.Annotations["password"] = "a person's"
		n.server.Write(is)
		synctest.Wait()
		check("changed", "1 unchanged", "a person's")
		n.server.Delete(kube.KeyOf(is))
		synctest.Wait()
		check("deleted", "created Deployment prod/kept; 0 unchanged", "2", "ensure kept")
		if calls != 2 {
			t.Errorf("fill was called %d times, want 2: for each child that was created", calls)
		}
		report, err := set.Apply(t.Context(), parent, deployment("another"))
		if err != nil || report.String() != "created Deployment prod/another; pruned Deployment prod/kept; 0 unchanged" {
			t.Errorf("no longer wanted: %q, %v; want it pruned", report, err)
		}
	})
}

// A cache that is late does not show the child; the server does, and nothing is written.
func TestOnce_AsksTheServerWhatTheCacheDoesNotShow_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		n := &childWriter{server: s}
		i := newInformer(t, newServer()) // of another server: it never shows the child
		set := reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{reconcile.Children(i)}, reconcile.ChildSetOptions{})
		run(t, i)
		parent := parentOf("prod", "p", "p")
		s.Write(owned("kept", parent, content("its own")))
		d := deployment("kept")
		report, err := set.Apply(t.Context(), parent, reconcile.Once(d, func(*appsv1.Deployment) {
			t.Error("fill is called for a child that exists")
		}))
		if err != nil || report.String() != "1 unchanged" || d.Labels["content"] != "its own" {
			t.Errorf("got %q, %v and %v, want the child as the server has it", report, err, d)
		}
	})
}

// An object of another owner is an error that says what to do, and stays as it is.
func TestOnce_TakesNothingFromOthers_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			what  string
			is    *appsv1.Deployment
			adopt bool
			want  string // of the error; empty: it is adopted
		}{
			{"another controller's", owned("kept", parentOf("prod", "q", "q")), true, "give the child another name, or delete that object"},
			{"the parent's, without the labels", owned("kept", parentOf("prod", "p", "p"), content("its own")), false, ""},
			{"nobody's", deployment("kept", content("its own")), false, "set ChildSetOptions.Adopt"},
			{"nobody's, to adopt", deployment("kept", content("its own")), true, ""},
		} {
			for _, cached := range []bool{true, false} {
				s := newServer()
				n := &adopter{childWriter: childWriter{server: s}}
				shown := s
				if !cached {
					shown = newServer()
				}
				s.Write(row.is.DeepCopy())
				set := reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{reconcile.Children(watch(t, shown))},
					reconcile.ChildSetOptions{Adopt: row.adopt, Labels: map[string]string{"set": "one"}})
				parent := parentOf("prod", "p", "p")
				child := deployment("kept")
				_, err := set.Apply(t.Context(), parent, reconcile.Once(child, func(*appsv1.Deployment) {
					t.Errorf("%s: fill is called", row.what)
				}))
				if row.want != "" {
					if err == nil || !strings.Contains(err.Error(), row.want) || n.adopted != nil {
						t.Errorf("%s: got %v, adopted %v; want an error with %q, and no write", row.what, err, n.adopted, row.want)
					}
					if child.UID != "" || child.Labels["content"] != "" {
						t.Errorf("%s: the child is %v, want nothing of the object that it may not take", row.what, child)
					}
					continue
				}
				if err != nil || n.adopted == nil || !metav1.IsControlledBy(n.adopted, parent) || n.adopted.GetLabels()["set"] != "one" {
					t.Errorf("%s: %v, adopted as %v; want the parent as its controller and the set's labels", row.what, err, n.adopted)
				}
				if !metav1.IsControlledBy(child, parent) || child.Labels["set"] != "one" || child.Labels["content"] != "its own" || child.ResourceVersion != "adopted" {
					t.Errorf("%s: the child is %v, want it as it is stored", row.what, child)
				}
			}
		}
	})
}

// adopter records what is applied to an object that it is to adopt.
type adopter struct {
	childWriter
	adopted kube.Object
}

func (a *adopter) ApplyChild(_ context.Context, child kube.Object, _ string, _ func(context.Context) error) error {
	a.adopted = child.DeepCopyObject().(kube.Object)
	labels := map[string]string{}
	maps.Copy(labels, a.server.get(child.GetName()).Labels)
	maps.Copy(labels, child.GetLabels())
	child.SetLabels(labels)
	child.SetResourceVersion("adopted")
	return nil
}

// A parent that is gone gets no child of Once either.
func TestOnce_AsksForTheParent_M16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := family(t, reconcile.ChildSetOptions{AskParent: true})
		_, err := set.Apply(t.Context(), parent, reconcile.Once(deployment("kept"), func(*appsv1.Deployment) {
			t.Error("fill is called for a parent that is gone")
		}))
		if !errors.Is(err, reconcile.ErrParentGone) || n.server.get("kept") != nil {
			t.Errorf("got %v and %v, want ErrParentGone and no child", err, n.server.get("kept"))
		}
		n.parent = parent
		if _, err := set.Apply(t.Context(), parent, reconcile.Once(deployment("kept"), nil)); err != nil || n.server.get("kept") == nil {
			t.Errorf("got %v, want the child, complete without fill", err)
		}
	})
}
