// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

const bucketFinalizer = "zoo.example.dev/bucket"

// stores keeps a bucket in the cloud for each Store, and members, ConfigMaps named
// store-0 and so on, each with a volume of the same name, created in order and removed
// in reverse.
type stores struct {
	bug     string
	stores  informer.Lister[*store]
	members informer.Lister[*corev1.ConfigMap]
	volumes informer.Lister[*volume]
	client  *client.Client
	raw     *http.Client
	host    string
	scheme  *runtime.Scheme
	cloud   buckets

	mu      sync.Mutex
	buckets map[reconcile.Key]string // IDs, for a bug
}

func setUpStores(bug string, c buckets) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		all := informer.For[*store](mgr.Informers())
		members, volumes := informer.For[*corev1.ConfigMap](mgr.Informers()), informer.For[*volume](mgr.Informers())
		raw, err := rest.HTTPClientFor(mgr.Config())
		if err != nil {
			return err
		}
		r := &stores{
			bug: bug, stores: all.Lister(), members: members.Lister(), volumes: volumes.Lister(),
			client: mgr.Client(), raw: raw, host: mgr.Config().Host, scheme: mgr.Scheme(), cloud: c, buckets: map[reconcile.Key]string{},
		}
		ctrl := reconcile.New("store", r.reconcile, reconcile.Options{Workers: 2})
		ctrl.Watch(source.Kind(all, source.Self))
		ctrl.Watch(source.Owned(members, all), source.Owned(volumes, all))
		return mgr.Add(ctrl)
	}
}

func (r *stores) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	s, err := r.stores.Get(key)
	if apierrors.IsNotFound(err) && r.bug == "clean-up when the deletion is seen" {
		return reconcile.Result{}, r.forget(ctx, key)
	}
	if err != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	if s.DeletionTimestamp != nil {
		return reconcile.Result{}, r.cleanUp(ctx, s)
	}
	if r.bug == "volumes freed by an old list" {
		if err := r.freeByList(ctx); err != nil {
			return reconcile.Result{}, err
		}
	}
	early := r.bug == "bucket made before the finalizer"
	if early {
		if s, err = r.bucket(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	if !slices.Contains(s.Finalizers, bucketFinalizer) && r.bug != "clean-up when the deletion is seen" {
		if err := r.client.SetFinalizers(ctx, s, append(slices.Clone(s.Finalizers), bucketFinalizer)); err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		return reconcile.Retry("the finalizer is added"), nil
	}
	if !early {
		if s, err = r.bucket(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	if err := r.resize(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	if s.Status.ObservedGeneration == s.Generation {
		return reconcile.Result{}, nil
	}
	s = kube.Copy(s)
	s.Status.ObservedGeneration = s.Generation
	return reconcile.Result{}, reconcile.IgnoreNotFound(r.client.Status().Update(ctx, s))
}

// bucket creates the bucket, and returns the Store with its ID in the status.
func (r *stores) bucket(ctx context.Context, s *store) (*store, error) {
	key := kube.KeyOf(s)
	if r.bug == "bucket known to memory alone" || r.bug == "clean-up when the deletion is seen" {
		r.mu.Lock()
		known := r.buckets[key] != ""
		r.mu.Unlock()
		if known {
			return s, nil
		}
	} else if s.Status.Bucket != "" {
		return s, nil
	}
	id, err := r.cloud.create(ctx, string(s.UID), r.bug == "bucket not looked for")
	if err != nil {
		return s, err
	}
	r.mu.Lock()
	r.buckets[key] = id
	r.mu.Unlock()
	s = kube.Copy(s)
	s.Status.Bucket = id
	return s, r.client.Status().Update(ctx, s)
}

func (r *stores) cleanUp(ctx context.Context, s *store) error {
	if !slices.Contains(s.Finalizers, bucketFinalizer) {
		return nil
	}
	without := slices.DeleteFunc(slices.Clone(s.Finalizers), func(f string) bool { return f == bucketFinalizer })
	if r.bug == "finalizer removed before the clean-up" {
		if err := r.client.SetFinalizers(ctx, s, without); err != nil {
			return reconcile.IgnoreNotFound(err)
		}
		return r.cloud.free(ctx, string(s.UID), "")
	}
	token, id := string(s.UID), ""
	switch r.bug {
	case "bucket known to memory alone":
		r.mu.Lock()
		token, id = "none", r.buckets[kube.KeyOf(s)]
		delete(r.buckets, kube.KeyOf(s))
		r.mu.Unlock()
	case "clean-up by the status":
		token, id = "none", s.Status.Bucket
	}
	if err := r.cloud.free(ctx, token, id); err != nil && r.bug != "error of the clean-up swallowed" {
		return err
	}
	return reconcile.IgnoreNotFound(r.client.SetFinalizers(ctx, s, without))
}

// forget frees what is remembered of a deleted Store.
func (r *stores) forget(ctx context.Context, key reconcile.Key) error {
	r.mu.Lock()
	id := r.buckets[key]
	r.mu.Unlock()
	if err := r.cloud.free(ctx, "none", id); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.buckets, key)
	r.mu.Unlock()
	return nil
}

// resize creates missing members in order, and removes surplus ones in reverse.
func (r *stores) resize(ctx context.Context, s *store) error {
	for i := range s.Spec.Size {
		if err := r.member(ctx, s, i); err != nil {
			return err
		}
	}
	for _, i := range slices.Backward(r.ordinals(s)) {
		if i < s.Spec.Size {
			break
		}
		for _, obj := range []kube.Object{&corev1.ConfigMap{ObjectMeta: meta(nth(s.Name, i))}, newVolume(nth(s.Name, i))} {
			if err := reconcile.IgnoreNotFound(r.client.Delete(ctx, obj)); err != nil {
				return err
			}
		}
	}
	return nil
}

func nth(name string, i int64) string { return fmt.Sprintf("%s-%d", name, i) }

func (r *stores) ordinals(s *store) (out []int64) {
	seen := map[int64]bool{}
	note := func(obj metav1.Object) {
		i, err := strconv.ParseInt(strings.TrimPrefix(obj.GetName(), s.Name+"-"), 10, 64)
		if err == nil && obj.GetNamespace() == s.Namespace && metav1.IsControlledBy(obj, s) && !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	for obj := range r.members.All() {
		note(obj)
	}
	for obj := range r.volumes.All() {
		note(obj)
	}
	slices.Sort(out)
	return out
}

// member creates one member after its volume.
func (r *stores) member(ctx context.Context, s *store, i int64) error {
	_, err := r.volumes.Get(reconcile.Key{Namespace: s.Namespace, Name: nth(s.Name, i)})
	_, memberErr := r.members.Get(reconcile.Key{Namespace: s.Namespace, Name: nth(s.Name, i)})
	if r.bug == "two steps without recovery" {
		if !apierrors.IsNotFound(memberErr) {
			return memberErr // the volume exists too
		}
		if err := r.make(ctx, s, &corev1.ConfigMap{ObjectMeta: meta(nth(s.Name, i))}); err != nil {
			return err
		}
		return r.make(ctx, s, newVolume(nth(s.Name, i)))
	}
	if apierrors.IsNotFound(err) {
		err = r.make(ctx, s, newVolume(nth(s.Name, i)))
	}
	if err == nil && apierrors.IsNotFound(memberErr) {
		memberErr = r.make(ctx, s, &corev1.ConfigMap{ObjectMeta: meta(nth(s.Name, i))})
	}
	return cmp.Or(err, memberErr)
}

func (r *stores) make(ctx context.Context, s *store, obj kube.Object) error {
	if err := current(ctx, r.client, s, &store{TypeMeta: s.TypeMeta}); err != nil {
		return err
	}
	if err := reconcile.SetControllerReference(s, obj, r.scheme); err != nil {
		return err
	}
	return r.client.Create(ctx, obj)
}

func newVolume(name string) *volume {
	return &volume{TypeMeta: metav1.TypeMeta{APIVersion: diskVersion.String(), Kind: "Volume"}, ObjectMeta: meta(name), Spec: volumeSpec{1}}
}

// freeByList deletes the volumes that no Store wants, by the initial list of
// client-go's Reflector: one from the cache of any server.
func (r *stores) freeByList(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.host+"/apis/zoo.example.dev/v1/stores?resourceVersion=0", nil)
	if err != nil {
		return err
	}
	answer, err := r.raw.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	var all list[storeSpec, storeStatus]
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil || answer.StatusCode != http.StatusOK {
		return cmp.Or(err, errors.New(answer.Status))
	}
	for v := range r.volumes.All() {
		if v.Namespace != "default" {
			continue
		}
		wanted := slices.ContainsFunc(all.Items, func(s store) bool {
			i, err := strconv.ParseInt(strings.TrimPrefix(v.Name, s.Name+"-"), 10, 64)
			return err == nil && i < s.Spec.Size
		})
		if !wanted {
			if err := reconcile.IgnoreNotFound(r.client.Delete(ctx, v)); err != nil {
				return err
			}
		}
	}
	return nil
}

func editStores(w *kit.World, c *cloud) {
	w.Settled(func() error { return storesAreRight(w, c) })
	w.Never(neverLost(w))
	for i := range 7 {
		s := &store{TypeMeta: metav1.TypeMeta{APIVersion: version.String(), Kind: "Store"}, ObjectMeta: meta(fmt.Sprintf("store-%c", 'a'+rune(w.Draw("name", 2))))}
		switch what := w.Draw("do", 3); {
		case !w.Get(s):
			s.Spec.Size = int64(1 + w.Draw("size", 3))
			w.Create(s)
			if w.Draw("mistake", 3) == 0 {
				w.Sleep(time.Duration(1+w.Draw("gap", 40)) * 10 * time.Millisecond)
				w.Delete(s)
			}
		case s.DeletionTimestamp != nil:
		case what == 0 || i == 6:
			w.Delete(s)
		default:
			w.Edit(s, func() { s.Spec.Size = int64(1 + w.Draw("size", 3)) })
		}
		w.Sleep(time.Duration(w.Draw("pause", 4)) * 700 * time.Millisecond)
	}
}

func storesAreRight(w *kit.World, c *cloud) error {
	wanted, tokens := map[string]bool{}, map[string]bool{}
	for s, err := range client.List[*store](context.Background(), w.Client()) {
		if err != nil {
			return err
		}
		tokens[string(s.UID)] = true
		for i := range s.Spec.Size {
			wanted[nth(s.Name, i)] = true
			member, v := &corev1.ConfigMap{ObjectMeta: meta(nth(s.Name, i))}, newVolume(nth(s.Name, i))
			if !w.Get(member) || !w.Get(v) || !metav1.IsControlledBy(member, s) || !metav1.IsControlledBy(v, s) {
				return fmt.Errorf("member %d of %s is not there with its volume", i, s.Name)
			}
		}
		if s.Status.ObservedGeneration != s.Generation {
			return fmt.Errorf("the status of %s is of generation %d, not %d", s.Name, s.Status.ObservedGeneration, s.Generation)
		}
		if c.held()[s.Status.Bucket] != string(s.UID) {
			return fmt.Errorf("the bucket %q of %s is another's, or there is none", s.Status.Bucket, s.Name)
		}
	}
	for v, err := range client.List[*volume](context.Background(), w.Client(), client.InNamespace("default")) {
		if err != nil || !wanted[v.Name] {
			return cmp.Or(err, fmt.Errorf("volume %s is nobody's", v.Name))
		}
	}
	for id, token := range c.held() {
		if !tokens[token] {
			return fmt.Errorf("%s is left of a Store that is gone", id)
		}
		delete(tokens, token)
	}
	if len(tokens) > 0 {
		return fmt.Errorf("%d Stores have no bucket of their own", len(tokens))
	}
	return nil
}

// neverLost names a volume that was lost although its Store was complete.
func neverLost(w *kit.World) func() error {
	type past struct {
		generation int64
		done       bool
		volumes    map[string]string // UIDs
	}
	known := map[string]past{}
	return func() (problem error) {
		for s, err := range client.List[*store](context.Background(), w.Client()) {
			if err != nil || s.DeletionTimestamp != nil {
				continue
			}
			is := past{s.Generation, s.Status.ObservedGeneration == s.Generation, map[string]string{}}
			for i := range s.Spec.Size {
				if v := newVolume(nth(s.Name, i)); w.Get(v) {
					is.volumes[v.Name] = string(v.UID)
				}
			}
			if was := known[string(s.UID)]; was.done && was.generation == is.generation {
				for name, uid := range was.volumes {
					if is.volumes[name] != uid {
						problem = errors.Join(problem, fmt.Errorf("volume %s was lost, and its Store wants it", name))
					}
				}
			}
			known[string(s.UID)] = is
		}
		return problem
	}
}
