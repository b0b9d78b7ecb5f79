// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// What the runs of a key show is found while it lasts, and not otherwise.
func TestController_Findings_R30(t *testing.T) {
	settled := func(context.Context, *client.Client, *corev1.ConfigMap, int) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}
	child := func(value string) *corev1.ConfigMap {
		made := configMap("default", "child")
		made.Data = map[string]string{"v": value}
		return made
	}
	for name, c := range map[string]struct {
		// reconcile is called with the number of the run, from 1, until calm.
		reconcile func(context.Context, *client.Client, *corev1.ConfigMap, int) (reconcile.Result, error)
		// outside are the merge patches of another client, two seconds apart; then an hour or two pass.
		outside []string
		hours   time.Duration
		want    string
	}{
		"nothing": {settled, nil, 0, ""},
		"a hot loop": {func(ctx context.Context, api *client.Client, obj *corev1.ConfigMap, n int) (reconcile.Result, error) {
			return reconcile.Result{}, api.Patch(ctx, kube.Copy(obj), client.MergePatch(fmt.Appendf(nil, `{"data":{"run":"%d"}}`, n)))
		}, nil, 0, `hot loop default/site: the key is woken by its own writes alone, many times in a row: each run writes data["run"] of ConfigMap default/site`},
		"several steps": {func(ctx context.Context, api *client.Client, obj *corev1.ConfigMap, n int) (reconcile.Result, error) {
			if n > 20 {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, api.Patch(ctx, kube.Copy(obj), client.MergePatch(fmt.Appendf(nil, `{"data":{"step%d":"done"}}`, n)))
		}, nil, 0, ""},
		"writes without effect": {func(ctx context.Context, api *client.Client, obj *corev1.ConfigMap, n int) (reconcile.Result, error) {
			return reconcile.After(time.Second, "poll"), api.Apply(ctx, child("1"))
		}, nil, 0, "write without effect default/site: each of many runs has written ConfigMap default/child without any effect"},
		"a fight": {func(ctx context.Context, api *client.Client, obj *corev1.ConfigMap, n int) (reconcile.Result, error) {
			if obj.Data["mode"] == "mine" {
				return reconcile.Result{}, nil
			}
			return reconcile.Result{}, api.Patch(ctx, kube.Copy(obj), client.MergePatch([]byte(`{"data":{"mode":"mine"}}`)))
		}, slices.Repeat([]string{`{"data":{"mode":"theirs"}}`}, 5), 0, `fight default/site: another client, kubectl-edit (Update at 2000-01-01T00:00:06Z), undoes what the key writes, many times: data["mode"] of ConfigMap default/site`},
		"changes that are followed": {func(ctx context.Context, api *client.Client, obj *corev1.ConfigMap, n int) (reconcile.Result, error) {
			return reconcile.Result{}, api.Apply(ctx, child(obj.Data["wanted"]), client.IfChanged{})
		}, []string{`{"data":{"wanted":"1"}}`, `{"data":{"wanted":"2"}}`, `{"data":{"wanted":"3"}}`, `{"data":{"wanted":"4"}}`}, 0, ""},
		"errors of an hour": {func(context.Context, *client.Client, *corev1.ConfigMap, int) (reconcile.Result, error) {
			return reconcile.Result{}, errors.New("no route to the registry")
		}, nil, 2, "stuck default/site: each run fails with one error: no route to the registry"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := simtest.New(t, nil, configMap("default", "other"))
				if err := server.Client.With(client.FieldOwner("kubectl-create")).Create(t.Context(), configMap("default", "site")); err != nil {
					t.Fatal(err) // the fields of what a server begins with have no owners
				}
				outside := server.Client.With(client.FieldOwner("kubectl-edit"))
				mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0", Client: client.Options{FieldOwner: "website"}})
				if err != nil {
					t.Fatal(err)
				}
				maps, runs, calm := informer.For[*corev1.ConfigMap](mgr.Informers()), 0, false
				r := reconcile.For(maps, func(ctx context.Context, obj *corev1.ConfigMap) (reconcile.Result, error) {
					if obj.Name != "site" || calm {
						return reconcile.Result{}, nil
					}
					if runs++; runs > 49 && name != "errors of an hour" {
						return reconcile.Result{}, nil
					}
					time.Sleep(10 * time.Millisecond)
					return c.reconcile(ctx, mgr.Client(), obj, runs)
				}, reconcile.Options{Workers: 1})
				if err := mgr.Add(r); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(context.Background())
				done := make(chan error)
				go func() { done <- mgr.Run(ctx) }()
				look := make(chan string)
				go func() { look <- highest(r) }()
				for _, patch := range c.outside {
					time.Sleep(2 * time.Second)
					if err := outside.Patch(t.Context(), configMap("default", "site"), client.MergePatch([]byte(patch))); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(c.hours * time.Hour)
				if seen := <-look; seen != c.want {
					t.Errorf("found %q, want %q", seen, c.want)
				}
				calm = true
				if err := server.Client.Patch(t.Context(), configMap("default", "site"), client.MergePatch([]byte(`{"metadata":{"labels":{"calm":"1"}}}`))); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Hour)
				if found := r.Findings(); len(found) > 0 {
					t.Errorf("after a run without it, %v is still found", found)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// highest returns the finding that has the most runs within three hours.
func highest(c interface{ Findings() []reconcile.Finding }) string {
	var most reconcile.Finding
	for n := range 13_000 {
		if time.Sleep(time.Millisecond); n > 2000 {
			time.Sleep(time.Second)
		}
		for _, f := range c.Findings() {
			if f.Count >= most.Count {
				most = f
			}
		}
	}
	if most.Kind == "" {
		return ""
	}
	text := strings.Join([]string{string(most.Kind), most.Key + ":", most.String()}, " ")
	return strings.Replace(text, fmt.Sprintf(" %d ", most.Count), " many ", 1)
}
