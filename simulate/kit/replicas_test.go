// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// setUpReplica makes a Secret for each ConfigMap.
func setUpReplica(mgr *manager.Manager) error {
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
	secrets := informer.For[*corev1.Secret](mgr.Informers())
	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{reconcile.Children(secrets)},
		reconcile.ChildSetOptions{FieldOwner: "copier"})
	c := reconcile.For(configMaps, func(ctx context.Context, configMap *corev1.ConfigMap) (reconcile.Result, error) {
		if configMap.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		_, err := children.Apply(ctx, configMap, secretFor(configMap, ""))
		return reconcile.Result{}, err
	}, reconcile.Options{})
	c.Watch(source.Owned(secrets, configMaps))
	return mgr.Add(c)
}

// Three replicas share ConfigMaps, under faults of processes and server.
func TestKit_ReplicasShareObjects_V30(t *testing.T) {
	for _, by := range []manager.ShardBy{manager.UID, manager.Namespace} {
		t.Run(string(by), func(t *testing.T) {
			cfg := kit.Config{
				Seeds: 10,
				Namespaces: func() (all []string) {
					for i := range 8 {
						all = append(all, fmt.Sprintf("n-%d-team", i))
					}
					return all
				}(),
				Actors: simulate.Actors{GarbageCollector: true},
				Manager: manager.Options{
					Sharding:       &manager.Sharding{Shards: 8, By: by},
					LeaderElection: &manager.LeaderElection{ID: "copier", Namespace: "default"},
				},
			}
			kit.Test(t, cfg, func(w *kit.World) {
				for _, name := range []string{"a", "b", "c"} {
					w.RunAs(name, setUpReplica)
				}
				var all []*corev1.ConfigMap
				for i := range 8 {
					all = append(all, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
						ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%d-team", i), Name: "object"}, Data: map[string]string{"value": "0"}})
				}
				w.Settled(func() error {
					for _, configMap := range all {
						got := secretFor(configMap, "")
						if w.Get(configMap) != w.Get(got) {
							return fmt.Errorf("of %s and its Secret one exists", configMap.Namespace)
						}
						if got, want := string(got.Data["value"]), configMap.Data["value"]; got != want {
							return fmt.Errorf("the Secret of %s has the value %q, want %q", configMap.Namespace, got, want)
						}
					}
					return nil
				})
				for _, configMap := range all {
					w.Create(configMap)
				}
				for i := range 12 {
					w.Sleep(time.Duration(w.Draw("pause", 5)) * time.Second)
					changed := all[w.Draw("object", len(all))]
					w.Edit(changed, func() { changed.Data["value"] = fmt.Sprint(i) })
				}
			})
		})
	}
}
