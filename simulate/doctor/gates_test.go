// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

// The variables that make the test program an operator of Gates, and say how it behaves and where its addresses are.
const (
	gatesAre = "DOCTOR_TEST_GATES"
	listenAt = "DOCTOR_TEST_LISTEN"
	reportTo = "DOCTOR_TEST_REPORT"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(gatesAre); how != "" {
		if err := runGates(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var (
	gateKind   = schema.GroupVersionResource{Group: "doctor.example.dev", Version: "v1", Resource: "gates"}
	shopKind   = schema.GroupVersionResource{Group: "doctor.example.dev", Version: "v1", Resource: "shops"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// runGates is a program of client-go. Each Gate wants a ConfigMap and a Secret. Its behaviour is a list of words.
func runGates(how string) error {
	how += " " + strings.Join(os.Args[1:], " ") // of one of several binaries
	is := func(word string) bool { return strings.Contains(how, word) }
	if is("dies") {
		return errors.New("connect to the database: no such host")
	}
	if address := os.Getenv(listenAt); address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }() // with the process
	}
	if is("forks") {
		if err := fork(); err != nil {
			return err
		}
	}
	if is("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if is("closed") {
		return refuseAll(os.Args[1], os.Args[2])
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	cfg.QPS = -1 // the server is ours
	if is("throttled") {
		cfg.QPS, cfg.Burst = 20, 30 // as controller-runtime
	}
	rest.AddUserAgent(cfg, "gates")
	ctx := context.Background()
	g := &gates{client: dynamic.NewForConfigOrDie(cfg), is: is}
	if every := map[bool]time.Duration{is("polls"): 400 * time.Millisecond, is("loops"): 10 * time.Millisecond}[true]; every > 0 {
		go wait.UntilWithContext(ctx, func(ctx context.Context) { _, _ = g.in(configMaps).Get(ctx, "north", metav1.GetOptions{}) }, every)
	}
	if !is("elected") {
		return g.run(ctx)
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "gates"}, Client: kubernetes.NewForConfigOrDie(cfg).CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("%s_%d", name, os.Getpid())}}
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(ctx context.Context) { _ = g.run(ctx) }, OnStoppedLeading: func() {}},
	})
	return errors.New("the leadership is lost")
}

// fork starts a process that only the end of the process group ends: it reports that it lives by a connection.
func fork() error {
	if os.Getenv(gatesAre) == "forks" {
		conn, err := net.Dial("tcp", os.Getenv(reportTo))
		if err != nil {
			return err
		}
		_, _ = conn.Read(make([]byte, 1)) // until the test ends
		return errors.New("the test is over")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), gatesAre+"=forks", listenAt+"=")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // the pipe of the one who waits for us
	return cmd.Start()
}

// refuseAll serves a webhook that refuses everything.
func refuseAll(port, certificates string) error {
	handler := func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "gates are closed at " + r.URL.Path}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}
	return http.ListenAndServeTLS("127.0.0.1:"+port, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"), http.HandlerFunc(handler))
}

type gates struct {
	client dynamic.Interface
	is     func(word string) bool
	queue  workqueue.TypedRateLimitingInterface[string]
	lister cache.GenericLister
}

func (g *gates) in(r schema.GroupVersionResource) dynamic.ResourceInterface {
	return g.client.Resource(r).Namespace("default")
}

func (g *gates) run(ctx context.Context) error {
	g.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := dynamicinformer.NewDynamicSharedInformerFactory(g.client, 0)
	g.lister = factory.ForResource(gateKind).Lister()
	kinds := []schema.GroupVersionResource{gateKind, configMaps, secrets}
	if g.is("shop") {
		kinds = append(kinds, shopKind)
	}
	for _, r := range kinds {
		add := func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = gone.Obj
			}
			u := obj.(*unstructured.Unstructured)
			if owner := metav1.GetControllerOf(u); owner != nil {
				g.queue.Add(owner.Name)
			} else if r == gateKind {
				g.queue.Add(u.GetName())
			}
		}
		handler := cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }, DeleteFunc: add}
		if _, err := factory.ForResource(r).Informer().AddEventHandler(handler); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for {
		name, over := g.queue.Get()
		if over {
			return nil
		}
		if err := g.reconcile(ctx, name); err != nil {
			fmt.Fprintln(os.Stderr, "reconcile", name, err)
			g.queue.AddRateLimited(name)
		} else {
			g.queue.Forget(name)
		}
		g.queue.Done(name)
	}
}

func (g *gates) reconcile(ctx context.Context, name string) error {
	obj, err := g.lister.ByNamespace("default").Get(name)
	if err != nil {
		return nil // it is gone
	}
	gate := obj.(*unstructured.Unstructured)
	_, err = g.in(configMaps).Get(ctx, name, metav1.GetOptions{})
	if err == nil && g.is("second with the first") {
		return nil
	}
	if g.is("second-half") {
		if apierrors.IsNotFound(err) { // the first one makes it
			return nil
		}
		return g.want(ctx, gate, secrets, "Secret")
	}
	if err := g.want(ctx, gate, configMaps, "ConfigMap"); err != nil {
		return err
	}
	if g.is("first-half") {
		return nil
	}
	if g.is("shop") {
		return g.wantAfterShop(ctx, gate)
	}
	if g.is("restless") {
		return g.count(ctx, name)
	}
	if g.is("random") {
		return g.wantOne(ctx, gate)
	}
	return g.want(ctx, gate, secrets, "Secret")
}

func owned(gate *unstructured.Unstructured, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(gate, gate.GroupVersionKind())})
	u.SetLabels(map[string]string{"gate": string(gate.GetUID())})
	return u
}

// want creates an object of the name of the Gate.
func (g *gates) want(ctx context.Context, gate *unstructured.Unstructured, r schema.GroupVersionResource, kind string) error {
	u := owned(gate, kind)
	u.SetName(gate.GetName())
	_, err := g.in(r).Create(ctx, u, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	is, err := g.in(r).Get(ctx, gate.GetName(), metav1.GetOptions{})
	if err == nil && !metav1.IsControlledBy(is, gate) {
		return fmt.Errorf("the %s is of another Gate", kind)
	}
	return err
}

// wantAfterShop creates a Shop, and when another controller has opened it, a Secret.
func (g *gates) wantAfterShop(ctx context.Context, gate *unstructured.Unstructured) error {
	u := owned(gate, "Shop")
	u.SetAPIVersion(gate.GetAPIVersion())
	u.SetName(gate.GetName())
	u.Object["spec"] = map[string]any{"size": int64(1)}
	is, err := g.in(shopKind).Create(ctx, u, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		is, err = g.in(shopKind).Get(ctx, gate.GetName(), metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	if ready, _, _ := unstructured.NestedInt64(is.Object, "status", "ready"); ready == 0 {
		return nil
	}
	return g.want(ctx, gate, secrets, "Secret")
}

// wantOne creates a Secret with a random name, unless there is one.
func (g *gates) wantOne(ctx context.Context, gate *unstructured.Unstructured) error {
	u := owned(gate, "Secret")
	all, err := g.in(secrets).List(ctx, metav1.ListOptions{LabelSelector: "gate=" + u.GetLabels()["gate"]})
	if err != nil || len(all.Items) > 0 {
		return err
	}
	u.SetGenerateName(gate.GetName() + "-")
	_, err = g.in(secrets).Create(ctx, u, metav1.CreateOptions{})
	return err
}

// count changes the ConfigMap, and with it what this is called for.
func (g *gates) count(ctx context.Context, name string) error {
	is, err := g.in(configMaps).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	is.Object["data"] = map[string]any{"count": is.GetResourceVersion()}
	_, err = g.in(configMaps).Update(ctx, is, metav1.UpdateOptions{})
	return err
}
