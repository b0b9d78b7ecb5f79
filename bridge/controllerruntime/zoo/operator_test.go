// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

// operator is the operator. It is correct, but for what is planted.
type operator struct {
	client.Client
	live client.Reader // reads from the server
	bug  plant
	mu   struct {
		sync.Mutex
		seen    map[types.NamespacedName]int64 // replicas of the last pass
		pending map[types.NamespacedName]bool  // Pods are to be restarted
	}
}

// mainOf returns the main function of the operator, with the bridge's line if bridged is set.
func mainOf(bug plant, bridged bool) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		opts := ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard()}
		opts.Controller.SkipNameValidation = new(true) // a restart is another manager in one process
		opts.Client.Cache = &client.CacheOptions{Unstructured: true}
		if bridged {
			opts = bridge.Options(opts)
		}
		mgr, err := ctrl.NewManager(cfg, opts)
		if err != nil {
			return err
		}
		o := &operator{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug}
		o.mu.seen, o.mu.pending = map[types.NamespacedName]int64{}, map[types.NamespacedName]bool{}
		if err := o.setUp(mgr); err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

func (o *operator) setUp(mgr ctrl.Manager) error {
	byLabel := func(label string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			name := obj.GetLabels()[label]
			if name == "" {
				return nil
			}
			key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
			return []reconcile.Request{{NamespacedName: key}}
		})
	}
	b := ctrl.NewControllerManagedBy(mgr).Named("clusters").For(newCluster().Unstructured).
		Owns(&appsv1.StatefulSet{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&corev1.Service{}).
		Owns(&policyv1.PodDisruptionBudget{}).
		Watches(&corev1.Secret{}, byLabel(ofSoftOwner)).
		Watches(&corev1.PersistentVolumeClaim{}, byLabel(ofCluster))
	if o.bug.how == volumesOfEndingPods {
		b = b.Watches(&corev1.Pod{}, byLabel(ofCluster))
	}
	return b.Complete(o)
}

// pass is one reconcile of a Cluster.
type pass struct {
	*operator
	c     cluster
	made  map[string]bool // objects that it has made or changed, by the suffix of the name
	again time.Duration   // after which the next pass is due; 0: at the next event
}

// Reconcile makes the objects of a Cluster what its spec wants.
func (o *operator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	p := &pass{operator: o, c: newCluster(), made: map[string]bool{}}
	err := o.Get(ctx, req.NamespacedName, p.c.Unstructured)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, o.gone(ctx, req.NamespacedName)
	case err != nil:
		return ctrl.Result{}, err
	case p.c.GetDeletionTimestamp() != nil:
		err := p.finalize(ctx)
		return ctrl.Result{RequeueAfter: p.again}, err
	case controllerutil.AddFinalizer(p.c, finalizer):
		return ctrl.Result{}, o.Update(ctx, p.c.Unstructured)
	}
	var failed []error
	for _, step := range []func(context.Context) error{
		p.planted, p.secrets, p.config, p.volumes, p.sets, p.budget, p.ui, p.tls, p.report,
	} {
		failed = append(failed, step(ctx))
	}
	return ctrl.Result{RequeueAfter: p.again}, errors.Join(failed...)
}

// waits asks for another pass soon.
func (p *pass) waits() { p.again = 2 * time.Second }

var errBehind = errors.New("the cache is older than the server")

// certain returns an error unless the server has the Cluster as the cache does. It guards every step
// that cannot be undone.
func (p *pass) certain(ctx context.Context, part string) error {
	if p.bug.leavesUnguarded(part) {
		return nil
	}
	now := newCluster()
	if err := p.live.Get(ctx, p.c.key(""), now.Unstructured); err != nil {
		return errors.Join(errBehind, err)
	}
	if now.GetUID() != p.c.GetUID() || now.GetGeneration() != p.c.GetGeneration() ||
		(now.GetDeletionTimestamp() == nil) != (p.c.GetDeletionTimestamp() == nil) {
		return errBehind
	}
	return nil
}

// create creates an object that the Cluster wants.
func (p *pass) create(ctx context.Context, suffix string, obj client.Object) error {
	if p.bug.how == madeOnlyWith && p.bug.of == suffix && !p.made[p.bug.with] {
		return nil
	}
	if err := p.certain(ctx, ""); err != nil {
		return err
	}
	if err := p.Create(ctx, obj); err != nil {
		return err
	}
	p.made[suffix] = true
	return nil
}

// remove deletes an object that the Cluster does not want any more, if it is there.
func (p *pass) remove(ctx context.Context, part string, obj client.Object) error {
	switch {
	case p.bug == plant{how: neverRemoved, of: part}:
		return nil
	case p.bug.leavesUnguarded(part):
		return client.IgnoreNotFound(p.Delete(ctx, obj)) // by its name, whatever it is now
	}
	if err := p.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(obj, p.c) {
		return nil
	}
	return p.delete(ctx, part, obj)
}

// delete deletes one object, and not another one of its name.
func (p *pass) delete(ctx context.Context, part string, obj client.Object, opts ...client.DeleteOption) error {
	if p.bug.leavesUnguarded(part) {
		return client.IgnoreNotFound(p.Delete(ctx, obj, opts...))
	}
	if err := p.certain(ctx, part); err != nil {
		return err
	}
	opts = append(opts, client.Preconditions{UID: new(obj.GetUID())})
	return client.IgnoreNotFound(p.Delete(ctx, obj, opts...))
}

// of selects the objects of a part, or of all of them.
func (p *pass) of(part string) []client.ListOption {
	labels := client.MatchingLabels(p.c.labels(part))
	return []client.ListOption{client.InNamespace(p.c.GetNamespace()), labels}
}

// finalize ends the StatefulSets, then deletes the volumes, then lets the Cluster go.
func (p *pass) finalize(ctx context.Context) error {
	if done, err := p.finalizeBadly(ctx); done || err != nil {
		return err
	}
	sets, pods := &appsv1.StatefulSetList{}, &corev1.PodList{}
	claims := &corev1.PersistentVolumeClaimList{}
	for _, list := range []client.ObjectList{sets, pods, claims} {
		if err := p.live.List(ctx, list, p.of("")...); err != nil {
			return err
		}
	}
	for i := range sets.Items {
		if err := p.delete(ctx, "finalizer", &sets.Items[i]); err != nil {
			return err
		}
	}
	if len(sets.Items)+len(pods.Items) > 0 {
		p.waits()
		return nil
	}
	for i := range claims.Items {
		if err := p.delete(ctx, "finalizer", &claims.Items[i]); err != nil {
			return err
		}
	}
	return p.release(ctx)
}

func (p *pass) release(ctx context.Context) error {
	if !controllerutil.RemoveFinalizer(p.c, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(p.Update(ctx, p.c.Unstructured))
}

// gone deletes the Secrets of a Cluster that is no more: they have no owner.
func (o *operator) gone(ctx context.Context, key types.NamespacedName) error {
	secrets, reader := &corev1.SecretList{}, o.live
	unguarded := o.bug.leavesUnguarded("soft")
	if unguarded {
		reader = o.Client
	} else if err := o.live.Get(ctx, key, newCluster().Unstructured); !apierrors.IsNotFound(err) {
		return err
	}
	labels := client.MatchingLabels{ofSoftOwner: key.Name}
	if err := reader.List(ctx, secrets, client.InNamespace(key.Namespace), labels); err != nil {
		return err
	}
	for i := range secrets.Items {
		var opts []client.DeleteOption
		if !unguarded {
			opts = append(opts, client.Preconditions{UID: new(secrets.Items[i].UID)})
		}
		if err := client.IgnoreNotFound(o.Delete(ctx, &secrets.Items[i], opts...)); err != nil {
			return err
		}
	}
	return nil
}

// secrets makes the two Secrets of the Cluster. Their content is random, so they are made once.
func (p *pass) secrets(ctx context.Context) error {
	for _, suffix := range []string{"-ssl", "-ssl-internal"} {
		err := p.Get(ctx, p.c.key(suffix), &corev1.Secret{})
		if apierrors.IsNotFound(err) {
			err = p.create(ctx, suffix, p.c.secret(suffix))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) config(ctx context.Context) error {
	want, is := p.c.configMap(), &corev1.ConfigMap{}
	err := p.Get(ctx, client.ObjectKeyFromObject(want), is)
	if apierrors.IsNotFound(err) {
		return p.create(ctx, "-config", want)
	}
	want.Data = p.bug.spoilMap(configField, is.Data, want.Data)
	if err != nil || equality.Semantic.DeepEqual(is.Data, want.Data) {
		return err
	}
	is.Data = want.Data
	if err := p.Update(ctx, is); err != nil {
		return err
	}
	p.made["-config"] = true
	return nil
}

// budget makes the PodDisruptionBudget. A change replaces it.
func (p *pass) budget(ctx context.Context) error {
	want, is := p.c.budget(), &policyv1.PodDisruptionBudget{}
	err := p.Get(ctx, client.ObjectKeyFromObject(want), is)
	switch {
	case apierrors.IsNotFound(err):
		return p.create(ctx, "-budget", want)
	case err != nil || equality.Semantic.DeepEqual(is.Spec.MaxUnavailable, want.Spec.MaxUnavailable):
		return err
	case p.bug.keeps(budgetField):
		return nil
	}
	if err := p.delete(ctx, "budget", is); err != nil {
		return err
	}
	return p.create(ctx, "-budget", want)
}

// volumes resizes the volumes of the main part, each by its own size.
func (p *pass) volumes(ctx context.Context) error {
	if !p.c.stored(mainPart) || p.bug.how == resizedWithTheSet || p.bug.keeps(storageField) {
		return nil
	}
	return p.resize(ctx)
}

func (p *pass) resize(ctx context.Context) error {
	claims, want := &corev1.PersistentVolumeClaimList{}, p.c.storage(mainPart)
	if err := p.List(ctx, claims, p.of(mainPart)...); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !p.resizes(claim.Spec.Resources, want) {
			continue
		}
		if err := p.certain(ctx, ""); err != nil {
			return err
		}
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = want
		if err := p.Update(ctx, claim); err != nil {
			return err
		}
	}
	return nil
}

// sets makes a StatefulSet of each part that is wanted, and removes those that are not.
func (p *pass) sets(ctx context.Context) error {
	var failed []error
	for _, part := range []string{mainPart, arbiterPart, proxyPart, cfgPart} {
		want := p.c.statefulSet(part)
		var err error
		if p.c.has(part) {
			err = p.set(ctx, part, want)
		} else if err = p.remove(ctx, part, want); err == nil && p.c.stored(part) {
			err = p.trim(ctx, part, 0)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (p *pass) set(ctx context.Context, part string, want *appsv1.StatefulSet) error {
	is := &appsv1.StatefulSet{}
	err := p.Get(ctx, client.ObjectKeyFromObject(want), is)
	switch {
	case apierrors.IsNotFound(err):
		return p.create(ctx, suffixOf(part), want)
	case err != nil:
		return err
	case !metav1.IsControlledBy(is, p.c) || is.DeletionTimestamp != nil:
		p.waits() // until the garbage collector has removed it
		return nil
	case part == mainPart && p.outgrown(is):
		return p.replace(ctx, is)
	}
	p.spoilSet(is, want)
	now := is.DeepCopy()
	merge(now, want)
	if !equality.Semantic.DeepEqual(is, now) {
		if err := p.certain(ctx, ""); err != nil {
			return err
		}
		return p.Update(ctx, now)
	}
	if part != mainPart {
		return nil
	}
	if done, err := p.trimBadly(ctx, is); done || err != nil {
		return err
	}
	return p.trim(ctx, mainPart, int(p.c.replicas(mainPart)))
}

// merge sets the fields of is that the operator owns.
func merge(is, want *appsv1.StatefulSet) {
	is.Spec.Replicas = want.Spec.Replicas
	from, to := &want.Spec.Template, &is.Spec.Template
	to.Labels, to.Annotations = from.Labels, from.Annotations
	to.Spec.NodeSelector, to.Spec.Tolerations = from.Spec.NodeSelector, from.Spec.Tolerations
	was, now := &to.Spec.Containers[0], from.Spec.Containers[0]
	was.Image, was.Env, was.Resources = now.Image, now.Env, now.Resources
}

// outgrown reports whether a StatefulSet makes volumes of another size than is wanted.
func (p *pass) outgrown(is *appsv1.StatefulSet) bool {
	if len(is.Spec.VolumeClaimTemplates) == 0 || p.bug.keeps(storageField) {
		return false
	}
	return p.resizes(is.Spec.VolumeClaimTemplates[0].Spec.Resources, p.c.storage(mainPart))
}

// resizes reports whether volumes of a size are to have another one.
func (p *pass) resizes(is corev1.VolumeResourceRequirements, want resource.Quantity) bool {
	size := is.Requests[corev1.ResourceStorage]
	return size.Cmp(want) != 0 && (p.bug.how != neverShrunk || size.Cmp(want) < 0)
}

// replace deletes a StatefulSet without its Pods. The next pass creates it.
func (p *pass) replace(ctx context.Context, is *appsv1.StatefulSet) error {
	if p.bug.how == immutable {
		claim := &is.Spec.VolumeClaimTemplates[0]
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = p.c.storage(mainPart)
		return p.Update(ctx, is)
	}
	orphan := client.PropagationPolicy(metav1.DeletePropagationOrphan)
	if err := p.delete(ctx, "resize", is, orphan); err != nil {
		return err
	}
	if p.bug.how == resizedWithTheSet {
		return p.resize(ctx)
	}
	return nil
}

// trim deletes the volumes of Pods with an ordinal of at least first, once the Pods are gone.
func (p *pass) trim(ctx context.Context, part string, first int) error {
	if p.bug == (plant{how: neverRemoved, of: part + " volumes"}) {
		return nil
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := p.List(ctx, claims, p.of(part)...); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		n := ordinalOf(claim.Name)
		if n < first {
			continue
		}
		pod := p.c.volumeKey(part, n)
		pod.Name = pod.Name[len("data-"):]
		switch err := p.live.Get(ctx, pod, &corev1.Pod{}); {
		case p.bug.leavesUnguarded(part + " volumes"):
		case err == nil:
			p.waits()
			continue
		case !apierrors.IsNotFound(err):
			return err
		}
		if err := p.delete(ctx, part+" volumes", claim); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) ui(ctx context.Context) error {
	want, is := p.c.service(), &corev1.Service{}
	if !p.c.has(uiPart) {
		return p.remove(ctx, uiPart, want)
	}
	err := p.Get(ctx, client.ObjectKeyFromObject(want), is)
	if apierrors.IsNotFound(err) {
		return p.create(ctx, "-ui", want)
	} else if err != nil {
		return err
	}
	now := is.DeepCopy()
	now.Labels = p.bug.spoilMap(serviceLabels, is.Labels, want.Labels)
	if !p.bug.keeps(portField) {
		port := want.Spec.Ports[0].Port
		now.Spec.Ports[0].Port, now.Spec.Ports[0].TargetPort = port, intstr.FromInt32(port)
	}
	if equality.Semantic.DeepEqual(is, now) {
		return nil
	}
	return p.Update(ctx, now)
}

func (p *pass) tls(ctx context.Context) error {
	want := p.c.tls()
	if !p.c.has(tlsPart) {
		return p.remove(ctx, tlsPart, want)
	}
	err := p.Get(ctx, client.ObjectKeyFromObject(want), &corev1.Secret{})
	if apierrors.IsNotFound(err) {
		return p.create(ctx, "-tls", want)
	}
	return err
}

// report writes the status.
func (p *pass) report(ctx context.Context) error {
	set := &appsv1.StatefulSet{}
	if err := client.IgnoreNotFound(p.Get(ctx, p.c.key(""), set)); err != nil {
		return err
	}
	now := cluster{p.c.DeepCopy()}
	phase, ready := "Updating", "False"
	if set.Status.ReadyReplicas == p.c.replicas(mainPart) {
		phase, ready = "Ready", "True"
	}
	now.set(phase, "status", "phase")
	now.set(int64(set.Status.ReadyReplicas), "status", "ready")
	replicas := p.c.number("spec", "replicas")
	if p.bug.how == volumesAfterStatus {
		replicas = max(replicas, p.c.number("status", "replicas")) // trimBadly lowers it
	}
	now.set(replicas, "status", "replicas")
	now.set(p.c.GetGeneration(), "status", "observedGeneration")
	now.set([]any{map[string]any{"type": "Ready", "status": ready}}, "status", "conditions")
	if p.c.replicas(mainPart)%2 == 0 {
		now.set("an even number of replicas", "status", "message")
	} else if p.bug.how != errorKept {
		unstructured.RemoveNestedField(now.Object, "status", "message")
	}
	if equality.Semantic.DeepEqual(p.c.Object, now.Object) {
		return nil
	}
	return p.Status().Update(ctx, now.Unstructured)
}
