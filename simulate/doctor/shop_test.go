// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// shop wants a StatefulSet, a ConfigMap of its settings, and with TLS two Secrets.
type shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              shopSpec   `json:"spec"`
	Status            shopStatus `json:"status,omitzero"`
}

type shopSpec struct {
	Size     int32             `json:"size"`
	TLS      bool              `json:"tls,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	Window   *window           `json:"window,omitempty"`
}

type window struct {
	Hours int64 `json:"hours"`
}

type shopStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	Ready              int32 `json:"ready,omitempty"`
}

func (s *shop) DeepCopyObject() runtime.Object {
	out := *s
	s.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if s.Spec.Settings != nil {
		out.Spec.Settings = map[string]string{}
		for k, v := range s.Spec.Settings {
			out.Spec.Settings[k] = v
		}
	}
	if s.Spec.Window != nil {
		copied := *s.Spec.Window
		out.Spec.Window = &copied
	}
	return &out
}

type shopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []shop `json:"items"`
}

func (l *shopList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*shop))
	}
	return &out
}

func shopScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	version := schema.GroupVersion{Group: "doctor.example.dev", Version: "v1"}
	scheme.AddKnownTypeWithName(version.WithKind("Shop"), &shop{})
	scheme.AddKnownTypeWithName(version.WithKind("ShopList"), &shopList{})
	metav1.AddToGroupVersion(scheme, version)
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

// shops is the operator. It is right but for its bug.
type shops struct {
	bug    string
	shops  informer.Lister[*shop]
	sets   informer.Lister[*appsv1.StatefulSet]
	maps   informer.Lister[*corev1.ConfigMap]
	client *client.Client
}

func setUpShops(bug string) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		f := mgr.Informers()
		all, sets, maps := informer.For[*shop](f), informer.For[*appsv1.StatefulSet](f), informer.For[*corev1.ConfigMap](f)
		r := &shops{bug: bug, shops: all.Lister(), sets: sets.Lister(), maps: maps.Lister(), client: mgr.Client()}
		c := reconcile.New("shop", r.reconcile, reconcile.Options{})
		c.Watch(source.Kind(all, source.Self))
		c.Watch(source.Owned(sets, all))
		c.Watch(source.Owned(maps, all))
		return mgr.Add(c)
	}
}

func (r *shops) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	s, err := r.shops.Get(key)
	if err != nil || s.DeletionTimestamp != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	if r.bug == "panic" && s.Spec.Window.Hours > 8 { // Window may be absent
		return reconcile.Result{}, nil
	}
	for _, step := range []func(context.Context, *shop) error{r.revise, r.settings, r.secrets, r.set} {
		if err := step(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	if r.bug == "never rests" {
		return reconcile.Result{RequeueAfter: 100 * time.Millisecond}, r.count(ctx, s)
	}
	return reconcile.Result{}, r.report(ctx, s)
}

// count counts reconciles in the status.
func (r *shops) count(ctx context.Context, s *shop) error {
	status := kube.Copy(s)
	status.Status.Ready++
	return r.client.Status().Update(ctx, status)
}

func meta(s *shop, suffix string) metav1.ObjectMeta {
	owner := *metav1.NewControllerRef(s, s.GroupVersionKind())
	owner.APIVersion, owner.Kind = "doctor.example.dev/v1", "Shop"
	return metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name + suffix, OwnerReferences: []metav1.OwnerReference{owner}}
}

// revise keeps a history where Kubernetes' workloads keep theirs. Its bug is that each try makes a revision.
func (r *shops) revise(ctx context.Context, s *shop) error {
	if _, err := r.maps.Get(kube.KeyOf(s)); err == nil || r.bug != "a revision for each try" {
		return nil
	}
	for i := 1; ; i++ {
		revision := &appsv1.ControllerRevision{ObjectMeta: meta(s, fmt.Sprint("-", i)), Revision: int64(i), Data: runtime.RawExtension{Raw: []byte("{}")}}
		if err := r.client.Create(ctx, revision); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

func (r *shops) settings(ctx context.Context, s *shop) error {
	m := &corev1.ConfigMap{ObjectMeta: meta(s, ""), Data: map[string]string{"size": fmt.Sprint(s.Spec.Size)}}
	for name, value := range s.Spec.Settings {
		m.Data[name] = value
	}
	if r.bug == "never removed" {
		if is, err := r.maps.Get(kube.KeyOf(m)); err == nil {
			for name, value := range is.Data {
				if _, wanted := m.Data[name]; !wanted {
					m.Data[name] = value
				}
			}
		}
	}
	return r.client.Apply(ctx, m, client.FieldOwner("shop"), client.Force{})
}

// secrets makes the two Secrets of TLS. They have random content, so they are made once.
func (r *shops) secrets(ctx context.Context, s *shop) error {
	for _, suffix := range []string{"-tls", "-tls-internal"} {
		secret := &corev1.Secret{ObjectMeta: meta(s, suffix), Data: map[string][]byte{"key": []byte("random")}}
		is := &corev1.Secret{}
		err := r.client.Get(ctx, kube.KeyOf(secret), is)
		switch {
		case err == nil && !s.Spec.TLS:
			err = reconcile.IgnoreNotFound(r.client.Delete(ctx, is, client.Preconditions{UID: is.UID}))
		case err == nil && r.bug == "second with the first":
			return nil
		case err == nil && !metav1.IsControlledBy(is, s):
			return fmt.Errorf("the Secret %s is of another owner", kube.KeyOf(is))
		case apierrors.IsNotFound(err) && s.Spec.TLS:
			err = r.client.Create(ctx, secret)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (r *shops) set(ctx context.Context, s *shop) error {
	labels := map[string]string{"shop": s.Name}
	set := &appsv1.StatefulSet{ObjectMeta: meta(s, "")}
	set.Spec.Replicas, set.Spec.Selector = &s.Spec.Size, &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "shop", Image: "shop"}}
	if is, err := r.sets.Get(kube.KeyOf(set)); err == nil && r.bug == "never smaller" && *is.Spec.Replicas > s.Spec.Size {
		set.Spec.Replicas = is.Spec.Replicas
	}
	return r.client.Apply(ctx, set, client.FieldOwner("shop"), client.Force{})
}

func (r *shops) report(ctx context.Context, s *shop) error {
	ready := int32(0)
	if set, err := r.sets.Get(kube.KeyOf(s)); err == nil {
		ready = set.Status.ReadyReplicas
	}
	status := kube.Copy(s)
	status.Status = shopStatus{ObservedGeneration: s.Generation, Ready: ready}
	if s.Status == status.Status {
		return nil
	}
	return r.client.Status().Update(ctx, status)
}
