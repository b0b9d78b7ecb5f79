// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Classic is a controller in the traditional style: one informer that is not shared, with
// its store and event handlers, one rate-limited queue, and its own workers; no manager but for its
// parser of flags.
//
// It reports which Pods have been without a node, and for how long. The lesson: each part
// of Flyball can be used by itself.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/workqueue"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig; empty: found as kubectl finds it, or the Pod's own cluster")
	workers := flag.Int("workers", 2, "number of concurrent workers")
	_ = manager.ParseFlags(flag.CommandLine, os.Args[1:]) // it exits
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = *kubeconfig
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	exitOn(err)
	c, err := newController(cfg, func(line string) { fmt.Println(line) })
	exitOn(err)
	exitOn(c.run(ctx, *workers))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "classic:", err)
		os.Exit(1)
	}
}

// controller reports Pods without a node.
type controller struct {
	pods   *informer.SharedInformer[*corev1.Pod]
	store  informer.Lister[*corev1.Pod]
	queue  *workqueue.Queue[kube.Key]
	report func(line string)
}

func newController(cfg *rest.Config, report func(string)) (*controller, error) {
	// Only Pods without a node are watched. A Pod that gets a node leaves the scope, which
	// the handler receives as a deletion.
	lw, err := informer.NewListerWatcher[*corev1.Pod](cfg, clientscheme.Scheme, listwatch.Scope{FieldSelector: "spec.nodeName="})
	if err != nil {
		return nil, err
	}
	pods := informer.New(lw, corev1.SchemeGroupVersion.WithKind("Pod"), informer.Options{
		Logger: logr.FromSlogHandler(slog.Default().Handler()), // logs when the server is unreachable
	})
	c := &controller{
		pods:   pods,
		store:  pods.Lister(),
		queue:  workqueue.New(workqueue.Options[kube.Key]{Name: "pods"}),
		report: report,
	}
	_, err = pods.AddHandler(func(e kube.Event[*corev1.Pod]) { c.queue.Add(e.Key) }, informer.HandlerOptions{Name: "classic"})
	return c, err
}

// run works until ctx ends: it starts the informer, then the workers, and stops them in
// reverse.
func (c *controller) run(ctx context.Context, workers int) error {
	defer context.AfterFunc(ctx, c.queue.ShutDown)()
	ctx, cancel := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		cancel(c.pods.Run(ctx))
		c.queue.ShutDown()
	})
	select {
	case <-c.pods.Synced():
		for range workers {
			running.Go(c.work)
		}
	case <-ctx.Done():
	}
	running.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// work processes keys until the queue is shut down. Between Get and Done, no other worker
// has the key.
func (c *controller) work() {
	for key := range c.queue.Keys() {
		if err := c.reconcile(key); err != nil {
			c.report(fmt.Sprintf("%s: %v", key, err))
			c.queue.AddRateLimited(key)
			continue
		}
		c.queue.Forget(key)
	}
}

func (c *controller) reconcile(key kube.Key) error {
	pod, err := c.store.Get(key)
	if apierrors.IsNotFound(err) {
		c.report(fmt.Sprintf("%s: has a node, or is gone", key))
		return nil
	}
	if err != nil {
		return err
	}
	c.report(fmt.Sprintf("%s: waits for a node since %s", key, time.Since(pod.CreationTimestamp.Time).Round(time.Second)))
	c.queue.AddAfter(key, time.Minute)
	return nil
}
