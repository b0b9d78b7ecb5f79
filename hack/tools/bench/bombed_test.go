// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	ctrlzap "sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlreconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/webhook"
)

const (
	targetPart = "FLYBALL_BENCH_TARGET" // set: this process is attacked, as part/contestant
	targetArgs = "FLYBALL_BENCH_TARGET_ARGS"
)

// TestBombsTarget is the process that bombs hit; by itself it does nothing.
func TestBombsTarget(t *testing.T) {
	part := os.Getenv(targetPart)
	if part == "" {
		t.Skip("it is a part of BenchmarkBombs")
	}
	args := strings.Fields(os.Getenv(targetArgs))
	klog.SetLogger(logr.Discard())
	say := func(what any) { fmt.Println("TARGET", what) }
	ctx := t.Context()
	switch part {
	case "webhook/flyball":
		say(webhookFlyball(ctx, args[0], args[1]))
	case "webhook/controller-runtime":
		say(webhookControllerRuntime(ctx, args[0], args[1]))
	case "log/flyball":
		say(logFlyball(ctx, t))
	case "log/controller-runtime":
		say(logControllerRuntime(ctx, t, false))
	case "log/controller-runtime-development":
		say(logControllerRuntime(ctx, t, true))
	default:
		say(brief(read(ctx, part, &rest.Config{Host: args[0], QPS: -1})))
		time.Sleep(100 * time.Millisecond) // the last look at the memory
	}
}

func brief(err error) string {
	text := fmt.Sprint(err)
	return strings.ReplaceAll(text[:min(len(text), 900)], "\n", " ")
}

// read has a contestant read what the server answers with.
func read(ctx context.Context, part string, cfg *rest.Config) error {
	key := types.NamespacedName{Namespace: "default", Name: "one"}
	forAWhile, end := context.WithTimeout(ctx, informersRun)
	defer end()
	switch part {
	case "get/flyball", "list/flyball":
		c, err := client.New(cfg, clientscheme.Scheme, client.Options{RetryWithin: -1})
		if err != nil {
			return err
		}
		if part == "get/flyball" {
			return c.Get(ctx, key, &corev1.Secret{})
		}
		n := 0
		for _, err := range client.List[*corev1.Secret](ctx, c) {
			if apart := (*kube.UndecodableError)(nil); err != nil && !errors.As(err, &apart) {
				return err
			}
			n++
		}
		return fmt.Errorf("%d items", n)
	case "get/client-go":
		_, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Secrets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		return err
	case "list/client-go":
		list, err := kubernetes.NewForConfigOrDie(cfg).CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		return fmt.Errorf("%d items", len(list.Items))
	case "get/controller-runtime", "list/controller-runtime":
		c, err := ctrlclient.New(cfg, ctrlclient.Options{Scheme: clientscheme.Scheme})
		if err != nil {
			return err
		}
		if part == "get/controller-runtime" {
			return c.Get(ctx, key, &corev1.Secret{})
		}
		var list corev1.SecretList
		if err := c.List(ctx, &list); err != nil {
			return err
		}
		return fmt.Errorf("%d items", len(list.Items))
	case "informer/flyball":
		f, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, informer.Options{})
		if err != nil {
			return err
		}
		i := informer.For[*corev1.Secret](f)
		_ = f.Run(forAWhile)
		s := i.Snapshot()
		return fmt.Errorf("%d objects held; %+v", s.Objects, s.Scopes)
	case "informer/client-go":
		f := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(cfg), 0)
		i := f.Core().V1().Secrets().Informer()
		f.Start(forAWhile.Done())
		<-forAWhile.Done()
		return fmt.Errorf("%d objects held", len(i.GetStore().ListKeys()))
	case "informer/controller-runtime":
		all, err := ctrlcache.New(cfg, ctrlcache.Options{Scheme: clientscheme.Scheme})
		if err != nil {
			return err
		}
		if _, err := all.GetInformer(forAWhile, &corev1.Secret{}, ctrlcache.BlockUntilSynced(false)); err != nil {
			return err
		}
		return all.Start(forAWhile)
	}
	return fmt.Errorf("nobody knows the part %q", part)
}

func webhookFlyball(ctx context.Context, address, certificates string) error {
	server := webhook.New(nil, clientscheme.Scheme, webhook.Options{Address: address, CertDir: certificates})
	webhook.Validate(server, "/validate", func(context.Context, *webhook.Request, *corev1.Pod, *corev1.Pod) error { return nil })
	return server.Run(ctx)
}

func webhookControllerRuntime(ctx context.Context, address, certificates string) error {
	ctrl.SetLogger(logr.Discard())
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	server := ctrlwebhook.NewServer(ctrlwebhook.Options{Host: host, Port: n, CertDir: certificates})
	server.Register("/validate", admission.WithValidator(clientscheme.Scheme, anyPod{}))
	return server.Start(ctx)
}

// anyPod is a validator that accepts all Pods.
type anyPod struct{}

func (anyPod) ValidateCreate(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func (anyPod) ValidateUpdate(context.Context, *corev1.Pod, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

func (anyPod) ValidateDelete(context.Context, *corev1.Pod) (admission.Warnings, error) {
	return nil, nil
}

// failingKeys is how many keys fail.
const failingKeys = 1000

// nowhere is a server that has nothing: the failing controllers ask it nothing.
func nowhere(t *testing.T) *rest.Config {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// flood names keys until ctx ends.
func flood(ctx context.Context, add func(types.NamespacedName)) {
	every := time.NewTicker(time.Millisecond)
	defer every.Stop()
	for n := 0; ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		for range 20 {
			add(types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("one-%d", n%failingKeys)})
			n++
		}
	}
}

// fail is what each reconcile does.
func fail(failed *atomic.Int64, name string) error {
	if failed.Add(1)%2 == 0 {
		panic("the spec of " + name + " is more than this function can bear")
	}
	return errors.New("the spec of " + name + " makes no sense")
}

func logFlyball(ctx context.Context, t *testing.T) int64 {
	ctx, end := context.WithTimeout(ctx, logsFor)
	defer end()
	mgr, err := manager.New(manager.Options{Config: nowhere(t), MetricsAddress: "0", HealthAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	keys := make(chan reconcile.Key)
	c := reconcile.New("failing", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, fail(&failed, key.Name)
	}, reconcile.Options{})
	c.Watch(source.Channel(keys, source.ChannelOptions{}))
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		flood(ctx, func(key reconcile.Key) {
			select {
			case keys <- key:
			case <-ctx.Done():
			}
		})
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return failed.Load()
}

func logControllerRuntime(ctx context.Context, t *testing.T, development bool) int64 {
	ctx, end := context.WithTimeout(ctx, logsFor)
	defer end()
	ctrl.SetLogger(ctrlzap.New(ctrlzap.UseDevMode(development)))
	mgr, err := ctrl.NewManager(nowhere(t), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	var failed atomic.Int64
	c, err := controller.New("failing", mgr, controller.Options{Reconciler: ctrlreconcile.Func(
		func(_ context.Context, req ctrlreconcile.Request) (ctrlreconcile.Result, error) {
			return ctrlreconcile.Result{}, fail(&failed, req.Name)
		})})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(ctrlsource.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrlreconcile.Request]) error {
		go flood(ctx, func(key types.NamespacedName) { queue.Add(ctrlreconcile.Request{NamespacedName: key}) })
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	if err := mgr.Start(ctx); err != nil {
		t.Fatal(err)
	}
	return failed.Load()
}
