// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// A Pod that is deleted between the read and the write of its status leaves no error in the
// log, whether the cache or the retry is first.
func TestFor_DeletionBeforeTheStatusIsQuiet_R18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
		})
		factory, err := informer.NewSharedInformerFactory(server.Config, clientscheme.Scheme, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		own, err := client.New(server.Config, clientscheme.Scheme, client.Options{Observer: factory})
		if err != nil {
			t.Fatal(err)
		}
		users, err := client.New(server.Config, clientscheme.Scheme, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		var answer error
		var mu sync.Mutex
		var log strings.Builder
		pods := informer.For[*corev1.Pod](factory)
		c := reconcile.For(pods, func(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
			if calls++; calls == 1 {
				if err := users.Delete(ctx, pod, client.GracePeriod(0)); err != nil {
					t.Error(err)
				}
			}
			changed := kube.Copy(pod)
			changed.Status.Message = "seen"
			_, answer = own.PatchChanges(ctx, pod, changed)
			return reconcile.Result{}, answer
		}, reconcile.Options{Logger: funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			log.WriteString(args + "\n")
		}, funcr.Options{})})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, run := range []func(context.Context) error{factory.Run, c.Run} {
			running.Go(func() {
				if err := run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(time.Minute)
		cancel()
		running.Wait()
		if calls == 0 || calls > 10 || answer == nil || !strings.Contains(answer.Error(), "not found") {
			t.Fatalf("%d calls, and the write of the status gives %v; want NotFound, and calls until the cache has the deletion", calls, answer)
		}
		if got := c.Snapshot().Outcomes[reconcile.OutcomeError]; got != 0 || strings.Contains(log.String(), "failed") {
			t.Errorf("%d errors, and the log has\n%s\nwant none: the object was deleted", got, &log)
		}
	})
}
