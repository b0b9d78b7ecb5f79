// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

func recreating(t *testing.T, propagation metav1.DeletionPropagation, opts reconcile.ChildSetOptions) (*reconcile.ChildSet, *childWriter, *corev1.ConfigMap) {
	s := newServer()
	n := &childWriter{server: s, immutable: true}
	kind := reconcile.Recreate(reconcile.Children(watch(t, s)), propagation)
	return reconcile.NewChildSet(n, testScheme(t), []reconcile.ChildKind{kind}, opts), n, parentOf("prod", "p", "p")
}

func TestRecreate_ReplacesWhatCannotBeUpdated_R25(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := recreating(t, metav1.DeletePropagationOrphan, reconcile.ChildSetOptions{})
		check := func(what, text string, asked []string, report, err string) {
			t.Helper()
			got, failure := set.Apply(t.Context(), parent, deployment("a", content(text)))
			if sent := n.take(); !slices.Equal(sent, asked) || got.String() != report || (failure == nil) != (err == "") || failure != nil && !strings.Contains(failure.Error(), err) {
				t.Errorf("%s: asked %q, %q, %v\nwant %q, %q, %q", what, sent, got, failure, asked, report, err)
			}
			synctest.Wait()
		}
		apply := []string{"apply a"}
		refused := []string{"apply a", "delete to recreate a Orphan"}
		both := append(slices.Clone(refused), "apply a")
		check("new", "1", apply, "created Deployment prod/a; 0 unchanged", "")
		check("the same", "1", apply, "1 unchanged", "")
		first := n.server.get("a").UID
		check("changed", "2", both, "recreated Deployment prod/a; 0 unchanged", "")
		if is := n.server.get("a"); is.UID == first || is.Labels["content"] != "2" {
			t.Errorf("got %v, want a new object with the new content", is)
		}
		n.refuseNew = true
		check("invalid as a new object", "3", refused, "0 unchanged", "invalid as a new object as well")
		n.refuseNew = false
		check("tried again", "3", both, "recreated Deployment prod/a; 0 unchanged", "")
		n.server.Write(owned("a", parent, content("a webhook's")))
		synctest.Wait()
		check("refused for the same content again", "3", apply, "0 unchanged", "recreated for the same content before")
		check("for other content", "2", both, "recreated Deployment prod/a; 0 unchanged", "")
	})
}

// While finalizers hold the old child nothing is written, and nothing pruned; the error is quiet.
func TestRecreate_WaitsUntilTheOldOneIsGone_R25(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := recreating(t, metav1.DeletePropagationBackground, reconcile.ChildSetOptions{})
		n.server.Write(owned("a", parent, func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/a"} }))
		n.server.Write(owned("old", parent))
		synctest.Wait()
		n.holds = true
		for _, asked := range [][]string{{"apply a", "delete to recreate a Background"}, nil, nil} {
			_, err := set.Apply(t.Context(), parent, deployment("a", content("new")))
			if sent := n.take(); !errors.Is(err, reconcile.ErrChildTerminating) || !slices.Equal(sent, asked) {
				t.Errorf("asked %q, %v; want %q and ErrChildTerminating", sent, err, asked)
			}
			synctest.Wait()
		}
		n.server.Delete(kube.Key{Namespace: "prod", Name: "a"})
		synctest.Wait()
		report, err := set.Apply(t.Context(), parent, deployment("a", content("new")))
		if err != nil || report.String() != "created Deployment prod/a; pruned Deployment prod/old; 0 unchanged" {
			t.Errorf("got %v, %v after it is gone", report, err)
		}
	})
}

func TestRecreate_DeletesNothingThatHasChanged_R25(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := recreating(t, metav1.DeletePropagationBackground, reconcile.ChildSetOptions{})
		n.server.Write(owned("a", parent, content("1")))
		synctest.Wait()
		n.server.Hold() // the cache lags
		n.server.Write(owned("a", parent, content("1")))
		if _, err := set.Apply(t.Context(), parent, deployment("a", content("2"))); !apierrors.IsConflict(err) {
			t.Errorf("got %v, want a conflict", err)
		}
		n.server.Release()
		synctest.Wait()
		if report, err := set.Apply(t.Context(), parent, deployment("a", content("2"))); err != nil || len(report.Recreated) != 1 {
			t.Errorf("got %v, %v after the cache has caught up; want it recreated", report, err)
		}
		for name, opts := range map[string]reconcile.ChildSetOptions{"unasked": {}, "an outdated parent": {AskParent: true}} {
			set, n, parent := recreating(t, metav1.DeletePropagationBackground, opts)
			if name == "unasked" {
				set, n, parent = family(t, opts)
				n.immutable = true
			}
			n.server.Write(owned("a", parent, content("1")))
			synctest.Wait()
			_, err := set.Apply(t.Context(), parent, deployment("a", content("2")))
			if is := n.server.get("a"); err == nil || is == nil || is.Labels["content"] != "1" {
				t.Errorf("%s: %v, and the server has %v; want an error and the child as it was", name, err, is)
			}
		}
	})
}

// An object that the set may adopt is not its own before it has adopted it.
func TestRecreate_DeletesNothingThatItHasNotAdopted_R25(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, n, parent := recreating(t, metav1.DeletePropagationBackground, reconcile.ChildSetOptions{Adopt: true})
		n.server.Write(deployment("a", content("someone's")))
		synctest.Wait()
		_, err := set.Apply(t.Context(), parent, deployment("a", content("new")))
		if sent := n.take(); !apierrors.IsInvalid(err) || !slices.Equal(sent, []string{"apply a"}) {
			t.Errorf("asked %q, %v; want the server's refusal alone", sent, err)
		}
	})
}

// Whatever fails after the deletion, the log has one line of it, and the next Apply creates the child.
func TestRecreate_SaysWhatItDeleted_R25(t *testing.T) {
	for name, fail := range map[string]func(*childWriter){
		"creation":       func(n *childWriter) { n.refuseThen = "a" },
		"read":           func(n *childWriter) { n.unreadableThen = errors.New("no route to host") },
		"none":           func(*childWriter) {},
		"not gone, read": func(n *childWriter) { n.holds, n.unreadableThen = true, errors.New("no route to host") },
	} {
		synctest.Test(t, func(t *testing.T) {
			set, n, parent := recreating(t, metav1.DeletePropagationBackground, reconcile.ChildSetOptions{})
			n.server.Write(owned("a", parent, content("1")))
			synctest.Wait()
			was := n.server.get("a").UID
			fail(n)
			var lines []string
			ctx := logr.NewContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
			_, err := set.Apply(ctx, parent, deployment("a", content("2")))
			if fails := name != "none"; fails != (err != nil && strings.Contains(err.Error(), "it was deleted, and is created by the next Apply: ")) {
				t.Errorf("%s fails: got %v", name, err)
			}
			synctest.Wait()
			n.refuse, n.unreadable = "", nil
			if n.server.get("a") != nil {
				n.server.Delete(kube.Key{Namespace: "prod", Name: "a"})
			}
			synctest.Wait()
			if report, err := set.Apply(ctx, parent, deployment("a", content("2"))); err != nil || report.String() != "created Deployment prod/a; 0 unchanged" {
				t.Errorf("%s failed, and the next Apply: %v, %v", name, report, err)
			}
			want := []string{"Deleted a child to create it anew, at the latest in the next Apply", `"child"="prod/a"`, `"uid"="` + string(was) + `"`, `"because"="the server refuses to change spec.selector"`}
			if len(lines) != 1 || slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(lines[0], part) }) {
				t.Errorf("%s failed: logged %q, want one line with %q", name, lines, want)
			}
		})
	}
}

func TestRecreate_UnknownPropagationIsMisuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, _, parent := recreating(t, "Cascade", reconcile.ChildSetOptions{})
		if _, err := set.Apply(t.Context(), parent, deployment("a")); err == nil || !strings.Contains(err.Error(), `"Cascade" is none of`) {
			t.Errorf("got %v, want the misuse", err)
		}
	})
}
