// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

const soleLabel = "kit.example.dev/of"

// soleWriter writes the Secrets of each ConfigMap, in every way that there is, and nobody
// else does. So what it reads must be what the server has.
type soleWriter struct {
	w       *kit.World
	maps    informer.Lister[*corev1.ConfigMap]
	secrets informer.Lister[*corev1.Secret]
	client  *client.Client
}

func setUpSoleWriter(w *kit.World) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		maps, secrets := informer.For[*corev1.ConfigMap](mgr.Informers()), informer.For[*corev1.Secret](mgr.Informers())
		s := soleWriter{w, maps.Lister(), secrets.Lister(), mgr.Client()}
		c := reconcile.New("sole", s.reconcile, reconcile.Options{Workers: 2})
		c.Watch(source.Kind(maps, source.Self))
		return mgr.Add(c)
	}
}

// state returns the names, UIDs and versions of Secrets, in order.
func state[T metav1.Object](secrets []T) string {
	var all []string
	for _, s := range secrets {
		all = append(all, fmt.Sprintf("%s %s @%s deleting=%t", s.GetName(), s.GetUID(), s.GetResourceVersion(), s.GetDeletionTimestamp() != nil))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// truth returns the state of the Secrets of key on the server.
func (s soleWriter) truth(key reconcile.Key) string {
	all := s.w.Server().Objects(schema.GroupResource{Resource: "secrets"})
	return state(slices.DeleteFunc(all, func(obj metav1.Object) bool { return obj.GetLabels()[soleLabel] != key.Name }))
}

func (s soleWriter) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	if _, err := s.maps.Get(key); err != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	again := reconcile.After(time.Duration(200+s.w.Draw("again "+key.Name, 2000))*time.Millisecond, "write again")
	for range 1 + s.w.Draw("writes "+key.Name, 3) {
		all, err := s.secrets.List(informer.QueryOptions{Namespace: key.Namespace, Selector: labels.SelectorFromSet(labels.Set{soleLabel: key.Name})})
		if err != nil {
			return reconcile.Result{}, err
		}
		if got, want := state(all), s.truth(key); got != want {
			s.w.Errorf("%s reads %s; the server has %s", key.Name, got, want)
		}
		if err := s.write(ctx, key, all); err != nil {
			return again, err
		}
	}
	return again, nil
}

// write makes one write, of a kind that fits what is there.
func (s soleWriter) write(ctx context.Context, key reconcile.Key, all []*corev1.Secret) error {
	value := []byte(fmt.Sprint(s.w.Draw("value "+key.Name, 1_000_000)))
	if len(all) == 0 {
		obj := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, GenerateName: key.Name + "-", Labels: map[string]string{soleLabel: key.Name}}}
		if s.w.Draw("held "+key.Name, 2) == 0 {
			obj.Finalizers = []string{"kit.example.dev/held"}
		}
		return s.client.Create(ctx, obj)
	}
	obj := kube.Copy(all[0])
	if obj.DeletionTimestamp != nil {
		if s.w.Draw("release "+key.Name, 2) == 0 {
			return s.client.Patch(ctx, obj, client.MergePatch([]byte(`{"metadata":{"annotations":{"v":"`+string(value)+`"}}}`)))
		}
		return s.client.Patch(ctx, obj, client.MergePatch([]byte(`{"metadata":{"finalizers":null}}`)))
	}
	obj.Data = map[string][]byte{"v": value}
	switch s.w.Draw("verb "+key.Name, 7) {
	case 0:
		return s.client.Update(ctx, obj)
	case 1:
		_, err := s.client.PatchChanges(ctx, all[0], obj)
		return err
	case 2:
		only := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name}}
		only.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		return s.client.Patch(ctx, only, client.MergePatch([]byte(`{"metadata":{"annotations":{"v":"`+string(value)+`"}}}`)))
	case 3:
		applied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: obj.Namespace, Name: obj.Name, Labels: obj.Labels}, Data: obj.Data}
		return s.client.Apply(ctx, applied, client.FieldOwner("sole"), client.Force{})
	case 4:
		return client.DeleteAllOf[*corev1.Secret](ctx, s.client, client.InNamespace(key.Namespace), client.MatchingLabels(labels.Set{soleLabel: key.Name}))
	}
	return s.client.Delete(ctx, obj)
}

// The faults that make the effect of a write unknown or a watch late. A request that the
// server carries out long after its connection is given up on is not among them: it looks
// like a write of somebody else.
func doubts() kit.Plan {
	return kit.Swarm(kit.LoseResponse(), kit.LoseResponse().Of("Secret"), kit.Cut(), kit.Refuse(5*time.Second), kit.Lag(5*time.Second),
		kit.Slow(500*time.Millisecond, 5*time.Second), kit.Reject(1, 500), kit.CloseWatches(), kit.Compact(), kit.Overload(2, 503), kit.Duplicate(),
		kit.Panic(), kit.RestartCache())
}

// No read of a reconcile is older than the writes of this process before it, acknowledged
// or not.
func TestKit_SwarmOfDoubtsLeavesReadsFresh_R12(t *testing.T) {
	kit.Test(t, kit.Config{Seeds: 30, Faults: doubts()}, func(w *kit.World) {
		w.Run(setUpSoleWriter(w))
		for i := range 3 {
			w.Create(configMap(fmt.Sprint("p", i), nil))
		}
		w.Sleep(15 * time.Second)
		for i := range 3 {
			w.Delete(configMap(fmt.Sprint("p", i), nil))
		}
	})
}
