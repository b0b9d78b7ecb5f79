// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// pages keeps a ConfigMap with the name and content of each Page. The user may add keys
// to it. A ConfigMap of another flavor is deleted and created again.
type pages struct {
	bug      string
	pages    informer.Lister[*page]
	children informer.Lister[*corev1.ConfigMap]
	client   *client.Client
	scheme   *runtime.Scheme

	mu   sync.Mutex
	done map[reconcile.Key]int64 // generations, for a bug
}

func setUpPages(bug string) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		all, children := informer.For[*page](mgr.Informers()), informer.For[*corev1.ConfigMap](mgr.Informers())
		r := &pages{bug: bug, pages: all.Lister(), children: children.Lister(), client: mgr.Client(), scheme: mgr.Scheme(), done: map[reconcile.Key]int64{}}
		if bug == "delete by a stale read" {
			var err error
			if r.client, err = unobservedClient(mgr); err != nil {
				return err
			}
		}
		c := reconcile.New("page", r.reconcile, reconcile.Options{Workers: 2})
		c.Watch(source.Kind(all, source.Self))
		c.Watch(source.Owned(children, all))
		return mgr.Add(c)
	}
}

// unobservedClient returns a client whose writes informers see only through their watches.
// It is like one of a configuration that is not the manager's: the manager observes what
// passes the WrapTransport of Config.
func unobservedClient(mgr *manager.Manager) (*client.Client, error) {
	cfg := mgr.Config()
	cfg.WrapTransport = nil
	return client.New(cfg, mgr.Scheme(), client.Options{})
}

func (r *pages) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	p, err := r.pages.Get(key)
	if err != nil || p.DeletionTimestamp != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	if r.bug == "remembered before it is written" {
		r.mu.Lock()
		done := r.done[key]
		r.done[key] = p.Generation
		r.mu.Unlock()
		if done == p.Generation {
			return reconcile.Result{}, nil
		}
	}
	if r.bug == "spec written from a stale object" && p.Annotations["zoo.example.dev/seen"] != fmt.Sprint(p.Spec) {
		return reconcile.Result{}, r.mark(ctx, p)
	}
	again, err := r.child(ctx, p)
	if err != nil && r.bug == "error swallowed after part of the work" {
		err = nil // only logged
	}
	if err != nil || again > 0 {
		return reconcile.After(again, "the child is made anew"), err
	}
	return reconcile.Result{}, r.report(ctx, p)
}

// mark marks the Page as seen, by a patch of everything that was read.
func (r *pages) mark(ctx context.Context, p *page) error {
	whole := client.MergePatch(map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{"zoo.example.dev/seen": fmt.Sprint(p.Spec)}},
		"spec":     p.Spec,
	})
	return reconcile.IgnoreNotFound(r.client.Patch(ctx, kube.Copy(p), whole))
}

func (r *pages) child(ctx context.Context, p *page) (again time.Duration, err error) {
	child, err := r.children.Get(kube.KeyOf(p))
	switch {
	case apierrors.IsNotFound(err):
		return 0, r.create(ctx, p)
	case err != nil:
		return 0, err
	case !metav1.IsControlledBy(child, p) && r.bug != "UID not checked" && r.bug != "no owner":
		return time.Second, nil // of an earlier Page
	case child.Data["flavor"] != p.Spec.Flavor:
		preconditions := client.Preconditions{UID: child.UID, ResourceVersion: child.ResourceVersion}
		if r.bug == "delete by a stale read" {
			preconditions = client.Preconditions{}
		}
		if err := reconcile.IgnoreNotFound(r.client.Delete(ctx, child, preconditions)); err != nil {
			return 0, err
		}
		if err := r.create(ctx, p); err != nil {
			return 0, err
		}
		return time.Second, nil // check later whether it exists
	case child.Data["content"] == p.Spec.Content:
		return 0, nil
	}
	child = kube.Copy(child)
	child.Data["content"] = p.Spec.Content
	if r.bug == "patch of all annotations" {
		return 0, r.client.Patch(ctx, child, client.JSONPatch(
			client.JSONOp{Op: "add", Path: "/metadata/annotations", Value: child.Annotations},
			client.JSONOp{Op: "replace", Path: "/data", Value: child.Data}))
	}
	return 0, r.client.Update(ctx, child)
}

func (r *pages) create(ctx context.Context, p *page) error {
	child := &corev1.ConfigMap{ObjectMeta: meta(p.Name), Data: map[string]string{"content": p.Spec.Content, "flavor": p.Spec.Flavor}}
	if err := current(ctx, r.client, p, &page{TypeMeta: p.TypeMeta}); err != nil {
		return err
	}
	if r.bug != "no owner" {
		if err := reconcile.SetControllerReference(p, child, r.scheme); err != nil {
			return err
		}
	}
	return r.client.Create(ctx, child)
}

func (r *pages) report(ctx context.Context, p *page) error {
	if p.Status.ObservedGeneration == p.Generation {
		return nil
	}
	status := kube.Copy(p)
	if r.bug == "status written from a stale object" {
		latest := &page{TypeMeta: p.TypeMeta, ObjectMeta: meta(p.Name)}
		if err := r.client.Get(ctx, kube.KeyOf(p), latest); err != nil { // avoids conflicts
			return reconcile.IgnoreNotFound(err)
		}
		status = latest
	}
	status.Status.ObservedGeneration = status.Generation
	return reconcile.IgnoreNotFound(r.client.Status().Update(ctx, status))
}

func editPages(w *kit.World) {
	flavors := []string{"plain", "rich"}
	noted := map[string]string{}    // the user's own key of each child
	wanted := map[string]pageSpec{} // the last write of the user
	w.Settled(func() error { return pagesAreRight(w, wanted, noted) })
	w.Never(neverAmiss(w))
	for i := range 7 {
		p := &page{TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: "Page"}, ObjectMeta: meta(fmt.Sprintf("page-%d", w.Draw("name", 2)))}
		child := &corev1.ConfigMap{ObjectMeta: meta(p.Name)}
		switch what := w.Draw("do", 6); {
		case !w.Get(p):
			p.Spec = pageSpec{fmt.Sprint("text ", i), flavors[w.Draw("flavor", 2)]}
			w.Create(p)
			delete(noted, p.Name)
		case i == 6:
			w.Delete(p)
		case what == 0:
			w.Delete(p)
			w.Sleep(time.Duration(1+w.Draw("gap", 40)) * 10 * time.Millisecond)
			p = &page{TypeMeta: p.TypeMeta, ObjectMeta: meta(p.Name), Spec: p.Spec}
			w.Create(p)
			delete(noted, p.Name)
		case what == 1:
			w.Edit(p, func() { p.Spec.Flavor = flavors[i%2] })
			delete(noted, p.Name) // deleted with the child
		case what == 2 && p.Status.ObservedGeneration == p.Generation && w.Get(child) && child.Data["flavor"] == p.Spec.Flavor && metav1.IsControlledBy(child, p):
			w.Edit(child, func() { child.Data["note"] = fmt.Sprint("note ", i) })
			noted[p.Name] = string(child.UID) + fmt.Sprint("note ", i)
		default:
			w.Edit(p, func() { p.Spec.Content = fmt.Sprint("text ", i) })
		}
		wanted[p.Name] = p.Spec
		w.Sleep(time.Duration(w.Draw("pause", 4)) * 700 * time.Millisecond)
	}
}

func pagesAreRight(w *kit.World, wanted map[string]pageSpec, noted map[string]string) error {
	all := map[string]*page{}
	for p, err := range client.List[*page](context.Background(), w.Client()) {
		if err != nil {
			return err
		}
		all[p.Name] = p
		if p.Spec != wanted[p.Name] {
			return fmt.Errorf("%s has %v, and the user has written %v", p.Name, p.Spec, wanted[p.Name])
		}
		child := &corev1.ConfigMap{ObjectMeta: meta(p.Name)}
		if !w.Get(child) || child.Data["content"] != p.Spec.Content || child.Data["flavor"] != p.Spec.Flavor {
			return fmt.Errorf("the child of %s is %v, wanted is %v", p.Name, child.Data, p.Spec)
		}
		if p.Status.ObservedGeneration != p.Generation {
			return fmt.Errorf("the status of %s is of generation %d, not %d", p.Name, p.Status.ObservedGeneration, p.Generation)
		}
		if note, known := noted[p.Name]; known && note != string(child.UID)+child.Data["note"] {
			return fmt.Errorf("the child of %s has lost what the user wrote: it has %q of UID %s, the user wrote %s", p.Name, child.Data["note"], child.UID, note)
		}
	}
	for child, err := range client.List[*corev1.ConfigMap](context.Background(), w.Client(), client.InNamespace("default")) {
		if err != nil {
			return err
		}
		if all[child.Name] == nil {
			return fmt.Errorf("ConfigMap %s is nobody's", child.Name)
		}
	}
	return nil
}

// neverAmiss reads the Pages and their children once for both checks.
func neverAmiss(w *kit.World) func() error {
	anew := neverAnew()
	return func() (problem error) {
		for p, err := range client.List[*page](context.Background(), w.Client()) {
			if err != nil {
				continue
			}
			child := &corev1.ConfigMap{ObjectMeta: meta(p.Name)}
			if !w.Get(child) {
				child = nil
			}
			problem = errors.Join(problem, statusLies(p, child), anew(p, child))
		}
		return problem
	}
}

// statusLies names a Page whose status claims to be current and is not.
func statusLies(p *page, child *corev1.ConfigMap) error {
	switch {
	case p.Status.ObservedGeneration != p.Generation:
	case child == nil || child.Data["content"] != p.Spec.Content || child.Data["flavor"] != p.Spec.Flavor:
		return fmt.Errorf("the status of %s says that generation %d is done; its child is %v, wanted is %v", p.Name, p.Generation, child, p.Spec)
	case !metav1.IsControlledBy(child, p) && len(child.OwnerReferences) > 0:
		return fmt.Errorf("the status of %s says that generation %d is done; its child is that of a Page that was", p.Name, p.Generation)
	}
	return nil
}

// neverAnew names a child that was replaced although it matched the wanted generation.
func neverAnew() func(*page, *corev1.ConfigMap) error {
	type past struct {
		page, child string // UIDs
		generation  int64
		made        bool // the child exists for this generation
	}
	known := map[string]past{}
	return func(p *page, child *corev1.ConfigMap) error {
		was, is := known[p.Name], past{page: string(p.UID), generation: p.Generation}
		if child != nil && metav1.IsControlledBy(child, p) {
			is.child = string(child.UID)
		}
		replaced := false
		if was.page == is.page && was.generation == is.generation {
			is.made = is.child == was.child && was.made || is.child != "" && is.child != was.child && child.Data["flavor"] == p.Spec.Flavor
			replaced = was.made && is.child != was.child
		}
		known[p.Name] = is
		if replaced {
			return fmt.Errorf("the child of %s was deleted though it was made for what is wanted", p.Name)
		}
		return nil
	}
}
