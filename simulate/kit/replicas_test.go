// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// setUpReplica makes a Secret for each ConfigMap, notes in each ServiceAccount which team it is of, and counts
// these in one ConfigMap. What divides the ServiceAccounts are the teams; one replica counts.
func setUpReplica(mgr *manager.Manager) error {
	return errors.Join(setUpSecrets(mgr), setUpTeams(mgr), setUpCount(mgr))
}

func setUpTeams(mgr *manager.Manager) error {
	accounts := informer.For[*corev1.ServiceAccount](mgr.Informers())
	return mgr.Add(reconcile.For(accounts, func(ctx context.Context, account *corev1.ServiceAccount) (reconcile.Result, error) {
		if account.Annotations["is"] == account.Annotations["wants"] {
			return reconcile.Result{}, nil
		}
		patch := client.MergePatch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"is": account.Annotations["wants"]}}})
		return reconcile.Result{}, mgr.Client().Patch(ctx, kube.Copy(account), patch)
	}, reconcile.Options{Name: "teams", ShardBy: func(key reconcile.Key) (string, bool) {
		return "team of " + key.Namespace, true
	}}))
}

// inTeams is the text of all teams.
func inTeams(accounts iter.Seq[*corev1.ServiceAccount]) string {
	var all []string
	for one := range accounts {
		all = append(all, one.Namespace+"="+one.Annotations["is"])
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func counted(text string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "teams"},
		Data:       map[string][]byte{"teams": []byte(text)},
	}
}

func setUpCount(mgr *manager.Manager) error {
	accounts := informer.For[*corev1.ServiceAccount](mgr.Informers())
	c := reconcile.New("count", func(ctx context.Context, _ string) (reconcile.Result, error) {
		return reconcile.Result{}, mgr.Client().Apply(ctx, counted(inTeams(accounts.Lister().All())), client.FieldOwner("count"))
	}, reconcile.KeyedOptions[string]{Singleton: true})
	c.Watch(source.Mapped(accounts, func(*corev1.ServiceAccount) []string { return []string{"all"} }))
	return mgr.Add(c)
}

func setUpSecrets(mgr *manager.Manager) error {
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
				var accounts []*corev1.ServiceAccount
				for i := range 8 {
					accounts = append(accounts, &corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
						ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%d-team", i), Name: "object", Annotations: map[string]string{"wants": "a"}}})
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
					for _, one := range accounts {
						if w.Get(one) && one.Annotations["is"] != one.Annotations["wants"] {
							return fmt.Errorf("the account of %s is of team %q, and wants %q", one.Namespace, one.Annotations["is"], one.Annotations["wants"])
						}
					}
					got := counted("")
					if want := inTeams(slices.Values(accounts)); !w.Get(got) || string(got.Data["teams"]) != want {
						return fmt.Errorf("counted %q, want %q", got.Data["teams"], want)
					}
					return nil
				})
				for i, configMap := range all {
					w.Create(configMap)
					w.Create(accounts[i])
				}
				for i := range 12 {
					w.Sleep(time.Duration(w.Draw("pause", 5)) * time.Second)
					changed := all[w.Draw("object", len(all))]
					w.Edit(changed, func() { changed.Data["value"] = fmt.Sprint(i) })
					if i%3 == 0 {
						joins := accounts[w.Draw("account", len(accounts))]
						w.Edit(joins, func() { joins.Annotations["wants"] = fmt.Sprint("team-", i) })
					}
				}
			})
		})
	}
}
