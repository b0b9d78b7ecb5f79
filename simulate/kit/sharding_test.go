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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

const shardLabel = "example.dev/shard"

// setUpShard makes a Secret for each ConfigMap of the manager's shard, and writes into it
// which one that is.
func setUpShard(shard string, stray func(*corev1.ConfigMap)) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
		secrets := informer.For[*corev1.Secret](mgr.Informers())
		children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{reconcile.Children(secrets)},
			reconcile.ChildSetOptions{FieldOwner: "copier", AskParent: true})
		c := reconcile.For(configMaps, func(ctx context.Context, configMap *corev1.ConfigMap) (reconcile.Result, error) {
			if configMap.Labels[shardLabel] != shard {
				stray(configMap)
			}
			if configMap.DeletionTimestamp != nil {
				return reconcile.Result{}, nil
			}
			_, err := children.Apply(ctx, configMap, secretFor(configMap, shard))
			return reconcile.Result{}, err
		}, reconcile.Options{})
		c.Watch(source.Owned(secrets, configMaps))
		return mgr.Add(c)
	}
}

func secretFor(configMap *corev1.ConfigMap, shard string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: configMap.Namespace, Name: configMap.Name},
		Data:       map[string][]byte{"shard": []byte(shard), "value": []byte(configMap.Data["value"])},
	}
}

// Objects are created in shards and moved between them while they change, under faults of
// processes and server. In the end each has been served by its shard, and only by it.
func TestKit_EachObjectIsServedByItsShard_M16(t *testing.T) {
	shards := []string{"", "a", "b"}
	cfg := kit.Config{
		Seeds:   30,
		Actors:  simulate.Actors{GarbageCollector: true},
		Manager: manager.Options{Sharding: &manager.Sharding{Label: shardLabel, Kinds: []runtime.Object{&corev1.ConfigMap{}}}},
		Process: func(name string, opts *manager.Options) {
			if name != "main" {
				opts.Sharding = &manager.Sharding{Label: shardLabel, Kinds: []runtime.Object{&corev1.ConfigMap{}}, Shard: name}
			}
		},
	}
	kit.Test(t, cfg, func(w *kit.World) {
		stray := func(configMap *corev1.ConfigMap) {
			w.Errorf("a shard reconciles %s with the label %q", configMap.Name, configMap.Labels[shardLabel])
		}
		w.RunAs("main", setUpShard("", stray))
		w.RunAs("a", setUpShard("a", stray))
		w.RunAs("b", setUpShard("b", stray))
		var all []*corev1.ConfigMap
		for i := range 4 {
			configMap := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("object-%d", i)}, Data: map[string]string{"value": "0"}}
			move(configMap, shards[w.Draw("shard", len(shards))])
			all = append(all, configMap)
		}
		w.Settled(func() error {
			for _, configMap := range all {
				got := secretFor(configMap, "")
				if w.Get(configMap) != w.Get(got) {
					return fmt.Errorf("of %s and its Secret one exists", configMap.Name)
				}
				if got, want := string(got.Data["shard"])+" "+string(got.Data["value"]), configMap.Labels[shardLabel]+" "+configMap.Data["value"]; got != want {
					return fmt.Errorf("the Secret of %s has shard and value %q, want %q", configMap.Name, got, want)
				}
			}
			return nil
		})
		for _, configMap := range all {
			w.Create(configMap)
		}
		for i := range 12 {
			w.Sleep(time.Duration(w.Draw("pause", 3)) * time.Second)
			moved := all[w.Draw("object", len(all))]
			w.Edit(moved, func() {
				move(moved, shards[w.Draw("shard", len(shards))])
				if w.Draw("change", 2) == 1 {
					moved.Data["value"] = fmt.Sprint(i)
				}
			})
		}
	})
}

// move sets the shard of an object.
func move(configMap *corev1.ConfigMap, shard string) {
	delete(configMap.Labels, shardLabel)
	if shard != "" {
		configMap.Labels = map[string]string{shardLabel: shard}
	}
}
