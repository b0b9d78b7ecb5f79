// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

const unsaid = "s3cr3t" // in fields, and in no record

// recordedRequest is a request as one line.
func recordedRequest(q reconcile.Request) string {
	what := q.Resource.String()
	if q.Subresource != "" {
		what += "/" + q.Subresource
	}
	line := strings.Join(strings.Fields(strings.Join([]string{
		q.Verb, what, q.Path, q.Kind, strings.TrimPrefix(q.Key.String(), "/"), fmt.Sprint(q.Code), q.Effect, strings.Join(q.Fields, ","),
	}, " ")), " ")
	if q.MoreFields > 0 {
		line += fmt.Sprint(" +", q.MoreFields)
	}
	return line
}

// One reconcile sends all kinds of requests, by the manager's client and by a clientset.
func TestController_RunsHaveTheirRequests_R29(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, configMap("default", "site"),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "token"}, Type: "Opaque", Data: map[string][]byte{"old": []byte("x")}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
		mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0", Client: client.Options{FieldOwner: "website"}})
		if err != nil {
			t.Fatal(err)
		}
		api, err := kubernetes.NewForConfig(mgr.Config())
		if err != nil {
			t.Fatal(err)
		}
		maps := informer.For[*corev1.ConfigMap](mgr.Informers())
		informer.For[*corev1.Secret](mgr.Informers())
		c := reconcile.For(maps, func(ctx context.Context, site *corev1.ConfigMap) (reconcile.Result, error) {
			if site.Name != "site" || site.Labels["seen"] != "" {
				return reconcile.Result{}, nil
			}
			time.Sleep(100 * time.Millisecond) // until all watches are open: else no cache shows what a write has changed
			child := func(value string) *corev1.ConfigMap {
				made := configMap("default", "child")
				made.Data = map[string]string{"v": value}
				return made
			}
			for i, step := range []func() error{
				func() error { return mgr.Client().Apply(ctx, child("1")) },
				func() error { return mgr.Client().Apply(ctx, child("1")) },
				func() error { return mgr.Client().Apply(ctx, child(unsaid)) },
				func() error {
					_, err := api.CoreV1().ConfigMaps("default").Patch(ctx, "site", types.MergePatchType, []byte(`{"metadata":{"labels":{"seen":"`+unsaid+`"}}}`), metav1.PatchOptions{})
					return err
				},
				func() error {
					_, err := api.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{LabelSelector: "a=" + unsaid})
					return err
				},
				func() error {
					_, err := api.CoreV1().Secrets("default").Patch(ctx, "token", types.MergePatchType, []byte(`{"stringData":{"`+unsaid+`":"x"}}`), metav1.PatchOptions{})
					return err
				},
				func() error { // which no informer watches
					var account corev1.ServiceAccount
					if err := mgr.Client().Get(ctx, kube.Key{Namespace: "default", Name: "web"}, &account); err != nil {
						return err
					}
					return mgr.Client().Update(ctx, &account)
				},
				func() error { return mgr.Client().Delete(ctx, child("")) },
			} {
				if err := step(); err != nil {
					return reconcile.Result{}, fmt.Errorf("step %d: %w", i, err)
				}
			}
			return reconcile.Result{}, mgr.Client().Delete(ctx, child(""))
		}, reconcile.Options{Workers: 1})
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- mgr.Run(ctx) }()
		time.Sleep(time.Second)
		synctest.Wait()
		runs := c.Runs(reconcile.Key{Namespace: "default", Name: "site"})
		if len(runs) == 0 {
			t.Fatal("no runs")
		}
		var got []string
		for _, q := range runs[0].Requests {
			if !strings.HasPrefix(q.Path, "/api") { // discovery
				got = append(got, recordedRequest(q))
			}
			if q.Sent.Before(runs[0].Began) || q.Took < 0 || q.BytesReceived == 0 {
				t.Errorf("%s: sent at %s, took %s, received %d bytes", recordedRequest(q), q.Sent, q.Took, q.BytesReceived)
			}
		}
		want := []string{
			"apply configmaps ConfigMap default/child 201 created",
			"apply configmaps ConfigMap default/child 200 nothing",
			`apply configmaps ConfigMap default/child 200 changed data["v"]`,
			`patch configmaps ConfigMap default/site 200 changed metadata.labels["seen"]`,
			"list configmaps ConfigMap default/ 200",
			"patch secrets Secret default/token 200 changed data",
			"get serviceaccounts ServiceAccount default/web 200",
			"update serviceaccounts ServiceAccount default/web 200 nothing",
			"delete configmaps ConfigMap default/child 200 deleted",
			"delete configmaps ConfigMap default/child 404",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the requests are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if all := fmt.Sprintf("%+v", runs); strings.Contains(all, unsaid) {
			t.Errorf("a record has the value of a field: %s", all)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
