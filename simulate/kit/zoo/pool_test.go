// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

const poolLabel = "zoo.example.dev/pool"

// pools keeps a number of workers for each Pool, ConfigMaps with generated names, and
// for each worker a ticket, a Secret of the same name.
type pools struct {
	bug     string
	pools   informer.Lister[*pool]
	workers informer.Lister[*corev1.ConfigMap]
	tickets informer.Lister[*corev1.Secret]
	client  *client.Client
	scheme  *runtime.Scheme

	mu     sync.Mutex
	turn   int                         // for bugs
	owners map[reconcile.Key]types.UID // for a bug
}

func setUpPools(bug string) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		all := informer.For[*pool](mgr.Informers())
		workers, tickets := informer.For[*corev1.ConfigMap](mgr.Informers()), informer.For[*corev1.Secret](mgr.Informers())
		r := &pools{bug: bug, pools: all.Lister(), workers: workers.Lister(), tickets: tickets.Lister(), client: mgr.Client(), scheme: mgr.Scheme(), owners: map[reconcile.Key]types.UID{}}
		if bug == "missing workers counted by a stale read" || bug == "surplus counted by a stale read" {
			var err error
			if r.client, err = unobservedClient(mgr); err != nil {
				return err
			}
		}
		c := reconcile.New("pool", r.reconcile, reconcile.Options{Workers: 2})
		c.Watch(source.Kind(all, source.Self))
		c.Watch(source.Mapped(workers, func(obj *corev1.ConfigMap) []reconcile.Key {
			return []reconcile.Key{{Namespace: obj.Namespace, Name: obj.Labels[poolLabel]}}
		}))
		c.Watch(source.Mapped(tickets, func(obj *corev1.Secret) []reconcile.Key {
			return []reconcile.Key{{Namespace: obj.Namespace, Name: obj.Labels[poolLabel]}}
		}))
		return mgr.Add(c)
	}
}

func (r *pools) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	p, err := r.pools.Get(key)
	if apierrors.IsNotFound(err) {
		r.mu.Lock()
		delete(r.owners, key)
		r.mu.Unlock()
	}
	if err != nil || p.DeletionTimestamp != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	workers := r.of(p)
	if missing := p.Spec.Workers - int64(len(workers)); missing > 0 {
		for range missing {
			made, err := r.hire(ctx, p)
			if err != nil && r.bug == "error swallowed in a loop" {
				return reconcile.Result{}, nil
			}
			if err != nil {
				return reconcile.Result{}, err
			}
			workers = append(workers, made)
		}
	}
	if surplus := int64(len(workers)) - p.Spec.Workers; surplus > 0 && r.bug != "missing workers counted by a stale read" {
		if r.bug == "surplus counted by a stale read" {
			r.mu.Lock()
			r.turn++
			by := r.turn % len(workers) // rotates, to be fair
			r.mu.Unlock()
			workers = slices.Concat(workers[by:], workers[:by])
		} else if err := r.wants(ctx, p); err != nil {
			return reconcile.Result{}, err
		}
		for _, one := range workers[p.Spec.Workers:] {
			if err := reconcile.IgnoreNotFound(r.client.Delete(ctx, one)); err != nil {
				return reconcile.Result{}, err
			}
		}
		workers = workers[:p.Spec.Workers]
	}
	if r.bug != "second step only after the first" {
		for _, one := range workers {
			if err := r.ticket(ctx, p, one); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	return reconcile.Result{}, r.report(ctx, p, int64(len(workers)))
}

// wants returns an error if the server has another generation of p: its watch may be silent while
// that of the workers is not.
func (r *pools) wants(ctx context.Context, p *pool) error {
	is := &pool{TypeMeta: p.TypeMeta}
	err := current(ctx, r.client, p, is)
	if err == nil && is.Generation != p.Generation {
		err = fmt.Errorf("%s has changed", kube.KeyOf(p))
	}
	return err
}

func (r *pools) of(p *pool) (out []*corev1.ConfigMap) {
	for one := range r.workers.All() {
		if one.Namespace != p.Namespace || one.Labels[poolLabel] != p.Name {
			continue
		}
		if metav1.IsControlledBy(one, p) || r.bug == "workers known by their label" {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.ConfigMap) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (r *pools) hire(ctx context.Context, p *pool) (*corev1.ConfigMap, error) {
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, GenerateName: p.Name + "-", Labels: map[string]string{poolLabel: p.Name}}}
	if err := current(ctx, r.client, p, &pool{TypeMeta: p.TypeMeta}); err != nil {
		return nil, err
	}
	owner := p
	switch r.bug {
	case "names counted in memory":
		r.mu.Lock()
		one.GenerateName, one.Name = "", fmt.Sprintf("%s-%d", p.Name, r.turn)
		r.turn++
		r.mu.Unlock()
	case "UID remembered by name":
		key := kube.KeyOf(p)
		r.mu.Lock()
		if r.owners[key] == "" {
			r.owners[key] = p.UID
		}
		owner = kube.Copy(p)
		owner.UID = r.owners[key]
		r.mu.Unlock()
	}
	if r.bug != "owner set by a second write" {
		if err := reconcile.SetControllerReference(owner, one, r.scheme); err != nil {
			return nil, err
		}
	}
	switch err := r.client.Create(ctx, one); {
	case apierrors.IsAlreadyExists(err) && r.bug == "names counted in memory":
		return one, nil // created before
	case err != nil:
		return nil, err
	}
	switch r.bug {
	case "owner set by a second write":
		if err := reconcile.SetControllerReference(p, one, r.scheme); err != nil {
			return nil, err
		}
		return one, r.client.Update(ctx, one)
	case "second step only after the first":
		return one, r.ticket(ctx, p, one)
	}
	return one, nil
}

// ticket creates the ticket of a worker if it is missing.
func (r *pools) ticket(ctx context.Context, p *pool, one *corev1.ConfigMap) error {
	if _, err := r.tickets.Get(kube.KeyOf(one)); !apierrors.IsNotFound(err) {
		return err
	}
	ticket := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: one.Name, Labels: map[string]string{poolLabel: p.Name}}}
	if err := reconcile.SetControllerReference(one, ticket, r.scheme); err != nil {
		return err
	}
	err := r.client.Create(ctx, ticket)
	if apierrors.IsAlreadyExists(err) {
		return nil // the cache lags
	}
	return err
}

func (r *pools) report(ctx context.Context, p *pool, active int64) error {
	status := poolStatus{p.Generation, active}
	if r.bug == "status counted up and down" {
		if status.Active = p.Status.Active; p.Status.ObservedGeneration != p.Generation {
			r.mu.Lock()
			status.Active += p.Spec.Workers - int64(r.turn)
			r.turn = int(p.Spec.Workers)
			r.mu.Unlock()
		}
	}
	if p.Status == status {
		return nil
	}
	p = kube.Copy(p)
	p.Status = status
	return reconcile.IgnoreNotFound(r.client.Status().Update(ctx, p))
}

// editPools creates, grows, shrinks and deletes a Pool. The user waits for removed
// workers to be gone before asking for more.
func editPools(w *kit.World) {
	w.Settled(func() error { return poolsAreRight(w) })
	w.Never(neverWrong(w))
	for range 7 {
		p := &pool{TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: "Pool"}, ObjectMeta: meta("pool")}
		wants := int64(1 + w.Draw("workers", 4))
		switch what := w.Draw("do", 4); {
		case !w.Get(p):
			p.Spec.Workers = wants
			w.Create(p)
		case what == 0:
			w.Delete(p)
			w.Sleep(time.Duration(1+w.Draw("gap", 40)) * 10 * time.Millisecond)
			w.Create(&pool{TypeMeta: p.TypeMeta, ObjectMeta: meta("pool"), Spec: poolSpec{wants}})
		default:
			fewer := wants < p.Spec.Workers
			w.Edit(p, func() { p.Spec.Workers = wants })
			if fewer {
				w.Eventually(func() error {
					if w.Get(p); p.Status.ObservedGeneration != p.Generation {
						return fmt.Errorf("the status of %s is of generation %d, not %d", p.Name, p.Status.ObservedGeneration, p.Generation)
					}
					return nil
				})
			}
		}
		w.Sleep(time.Duration(w.Draw("pause", 4)) * 700 * time.Millisecond)
	}
}

func staff(w *kit.World) (map[types.UID][]*corev1.ConfigMap, error) {
	out := map[types.UID][]*corev1.ConfigMap{}
	for one, err := range client.List[*corev1.ConfigMap](context.Background(), w.Client(), client.InNamespace("default")) {
		if err != nil {
			return nil, err
		}
		uid := types.UID("")
		if owner := metav1.GetControllerOf(one); owner != nil {
			uid = owner.UID
		}
		out[uid] = append(out[uid], one)
	}
	return out, nil
}

func poolsAreRight(w *kit.World) error {
	workers, err := staff(w)
	if err != nil {
		return err
	}
	for p, err := range client.List[*pool](context.Background(), w.Client()) {
		if err != nil {
			return err
		}
		if int64(len(workers[p.UID])) != p.Spec.Workers {
			return fmt.Errorf("%s has %d workers, wanted are %d", p.Name, len(workers[p.UID]), p.Spec.Workers)
		}
		if p.Status != (poolStatus{p.Generation, p.Spec.Workers}) {
			return fmt.Errorf("the status of %s is %+v at generation %d, wanted are %d workers", p.Name, p.Status, p.Generation, p.Spec.Workers)
		}
		for _, one := range workers[p.UID] {
			if ticket := (&corev1.Secret{ObjectMeta: meta(one.Name)}); !w.Get(ticket) || !metav1.IsControlledBy(ticket, one) {
				return fmt.Errorf("worker %s has no ticket", one.Name)
			}
		}
		delete(workers, p.UID)
	}
	for uid, all := range workers {
		return fmt.Errorf("%d workers of the Pool with UID %q are left", len(all), uid)
	}
	return nil
}

// tooMany workers are never wanted: no Pool asks for more than 4. Without this bound an
// operator that creates more at each reconcile went on for the whole fault phase, with
// a check of all of them after each change.
const tooMany = 60

// neverWrong reads the Pools and their workers once for all checks.
func neverWrong(w *kit.World) func() error {
	tooFew := neverTooFew()
	return func() (problem error) {
		workers, err := staff(w)
		if err != nil {
			return nil
		}
		for uid, all := range workers {
			if len(all) > tooMany {
				return fmt.Errorf("the Pool with UID %q has %d workers", uid, len(all))
			}
		}
		for p, err := range client.List[*pool](context.Background(), w.Client()) {
			if err == nil {
				problem = errors.Join(problem, poolLies(p, workers[p.UID]), tooFew(p, workers[p.UID]))
			}
		}
		return problem
	}
}

// poolLies names a Pool that claims workers of another.
func poolLies(p *pool, workers []*corev1.ConfigMap) error {
	if p.Status.ObservedGeneration == p.Generation && int64(len(workers)) < min(p.Status.Active, p.Spec.Workers) {
		return fmt.Errorf("the status of %s claims %d workers, and %d are its own", p.Name, p.Status.Active, len(workers))
	}
	return nil
}

// neverTooFew names a Pool that had as many workers as it wants and lost one.
func neverTooFew() func(*pool, []*corev1.ConfigMap) error {
	type past struct {
		uid        types.UID
		generation int64
		enough     bool
	}
	known := map[string]past{}
	return func(p *pool, workers []*corev1.ConfigMap) error {
		was, is := known[p.Name], past{p.UID, p.Generation, int64(len(workers)) >= p.Spec.Workers}
		known[p.Name] = is
		if was.uid == is.uid && was.generation == is.generation && was.enough && !is.enough {
			return fmt.Errorf("%s had %d workers as it wants, and now has %d", p.Name, p.Spec.Workers, len(workers))
		}
		return nil
	}
}
