// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	theirs "sigs.k8s.io/controller-runtime/pkg/reconcile"
	theirsource "sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/flyball-dev/flyball/bridge/controllerruntime/adopt"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

func configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
}

// newManager returns a manager of a simulated server, which runs between start and the end of the test.
func newManager(t *testing.T, server *simtest.Server) (mgr *manager.Manager, start func()) {
	t.Helper()
	mgr, err := manager.New(manager.Options{
		Config: server.Config, Logger: logr.Discard(), MetricsAddress: "0", HealthAddress: "0",
	})
	if err != nil {
		t.Fatal(err)
	}
	return mgr, func() {
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- mgr.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the manager ended with %v", err)
			}
		})
	}
}

// secrets is a reconciler as programs for controller-runtime have it: a Secret for each ConfigMap.
type secrets struct {
	client.Client
	told func(*corev1.ConfigMap)
	mu   sync.Mutex
	ran  []string
}

func (s *secrets) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	s.mu.Lock()
	s.ran = append(s.ran, req.Name)
	s.mu.Unlock()
	cm := &corev1.ConfigMap{}
	if err := s.Get(ctx, req.NamespacedName, cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := s.Get(ctx, req.NamespacedName, &corev1.Secret{})
	if err == nil {
		return ctrl.Result{}, nil
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if err := controllerutil.SetControllerReference(cm, secret, s.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.Create(ctx, secret); err != nil {
		return ctrl.Result{}, err
	}
	s.told(cm)
	return ctrl.Result{}, s.Get(ctx, req.NamespacedName, &corev1.Secret{}) // the own write
}

func (s *secrets) runs(name string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.ran {
		if r == name {
			n++
		}
	}
	return n
}

// A reconciler, a handler of owners, predicates, a channel and a recorder of controller-runtime run under a manager.
func TestAdopt_PiecesRunUnderAManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, configMap("a", nil), configMap("skipped", map[string]string{"skip": "yes"}))
		mgr, start := newManager(t, server)
		cl, err := adopt.NewClient(mgr)
		if err != nil {
			t.Fatal(err)
		}
		maps, owned := informer.For[*corev1.ConfigMap](mgr.Informers()), informer.For[*corev1.Secret](mgr.Informers())
		recorder := any(adopt.Recorders(mgr).GetEventRecorder("secrets")).(manager.EventRecorder)
		r := &secrets{Client: cl, told: func(cm *corev1.ConfigMap) {
			recorder.AnnotatedEventf(cm, nil, map[string]string{"noted": "yes"}, corev1.EventTypeNormal, "Created", "Create", "created %s", cm.Name)
		}}
		pushed := make(chan event.GenericEvent)
		c := reconcile.New("secrets", adopt.Reconciler(r), reconcile.Options{})
		c.Watch(adopt.Handler(maps, &handler.EnqueueRequestForObject{}, predicate.NewPredicateFuncs(func(obj client.Object) bool {
			return obj.GetLabels()["skip"] == ""
		})))
		c.Watch(adopt.Handler(owned, handler.EnqueueRequestForOwner(mgr.Scheme(), mgr.RESTMapper(), &corev1.ConfigMap{}, handler.OnlyControllerOwner())))
		c.Watch(adopt.Source("pushed", theirsource.Channel(pushed, &handler.EnqueueRequestForObject{})))
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err == nil {
			t.Error("a cached read before the run succeeds")
		}
		start()
		time.Sleep(time.Second)
		if err := server.Client.Get(t.Context(), kube.Key{Namespace: "default", Name: "a"}, &corev1.Secret{}); err != nil {
			t.Fatalf("the Secret of a: %v", err)
		}
		if runs := c.Runs(reconcile.Key{Namespace: "default", Name: "a"}); len(runs) == 0 || len(runs[0].Requests) != 1 ||
			runs[0].Requests[0].Verb != "create" || runs[0].Requests[0].Effect != "created" || runs[0].Causes.Count == 0 {
			t.Errorf("the record of their reconciler is %+v, want that it created a Secret", runs)
		}
		if r.runs("skipped") != 0 {
			t.Error("an object that the predicate excludes is reconciled")
		}
		var events eventsv1.EventList
		if err := cl.List(t.Context(), &events); err != nil || len(events.Items) != 1 || events.Items[0].Annotations["noted"] != "yes" {
			t.Errorf("the Events are %v with %v, want the annotated one", events.Items, err)
		}
		if err := server.Client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := server.Client.Get(t.Context(), kube.Key{Namespace: "default", Name: "a"}, &corev1.Secret{}); err != nil {
			t.Errorf("the Secret is not created again for its owner: %v", err)
		}
		pushed <- event.GenericEvent{Object: configMap("skipped", nil)}
		time.Sleep(time.Second)
		if r.runs("skipped") == 0 {
			t.Error("an event of the channel is not reconciled")
		}
		s := c.Snapshot()
		if len(s.Sources) != 3 || slices.ContainsFunc(s.Sources, func(s source.Snapshot) bool { return !s.Synced }) {
			t.Errorf("the sources are %+v, want three that are synced", s.Sources)
		}
	})
}

func TestReconciler_ResultsMeanTheSame(t *testing.T) {
	failed, priority := errors.New("failed"), 7
	for name, c := range map[string]struct {
		result ctrl.Result
		err    error
		want   reconcile.Result
	}{
		"done":  {},
		"later": {result: ctrl.Result{RequeueAfter: time.Minute}, want: reconcile.Result{RequeueAfter: time.Minute}},
		//lint:ignore SA1019 programs still use it
		"again":       {result: ctrl.Result{Requeue: true}, want: reconcile.Result{Retry: true}},
		"priority":    {result: ctrl.Result{RequeueAfter: 1, Priority: &priority}, want: reconcile.Result{RequeueAfter: 1, Priority: &priority}},
		"past":        {result: ctrl.Result{RequeueAfter: -time.Minute}},
		"failed":      {err: failed},
		"not retried": {err: theirs.TerminalError(failed)},
	} {
		f := adopt.Reconciler(theirs.Func(func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
			if r.Namespace != "ns" || r.Name != "a" {
				t.Errorf("%s: reconciles %v", name, r)
			}
			return c.result, c.err
		}))
		got, err := f(t.Context(), reconcile.Key{Namespace: "ns", Name: "a"})
		if got != c.want {
			t.Errorf("%s: the result is %+v, want %+v", name, got, c.want)
		}
		if errors.Is(c.err, failed) != errors.Is(err, failed) || (c.err == nil) != (err == nil) {
			t.Errorf("%s: the error is %v, want %v", name, err, c.err)
		}
	}
	if c := reconcile.New("none", adopt.Reconciler(nil), reconcile.Options{}); c.Err() == nil {
		t.Error("a nil reconciler is no misuse")
	}
}

// A terminal error is not tried again; another one is.
func TestReconciler_TerminalErrorsAreNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, configMap("terminal", nil), configMap("passing", nil))
		mgr, start := newManager(t, server)
		var mu sync.Mutex
		runs := map[string]int{}
		c := reconcile.New("failing", adopt.Reconciler(theirs.Func(func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			runs[r.Name]++
			if r.Name == "terminal" {
				return ctrl.Result{}, theirs.TerminalError(errors.New("invalid"))
			}
			return ctrl.Result{}, errors.New("unavailable")
		})), reconcile.Options{})
		c.Watch(source.Kind(informer.For[*corev1.ConfigMap](mgr.Informers()), source.Self))
		if err := mgr.Add(c); err != nil {
			t.Fatal(err)
		}
		start()
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if runs["terminal"] != 1 || runs["passing"] < 3 {
			t.Errorf("a terminal error ran %d times and another one %d times in a minute, want 1 and more", runs["terminal"], runs["passing"])
		}
	})
}

// noting is a typed handler that notes what it is given, and adds the key after a minute.
type noting struct {
	mu    sync.Mutex
	notes []string
}

func (n *noting) note(what string, obj *corev1.ConfigMap, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, what)
	q.AddAfter(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}, time.Minute)
}

func (n *noting) Create(_ context.Context, e event.TypedCreateEvent[*corev1.ConfigMap], q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	n.note(fmt.Sprintf("create %s initial=%v", e.Object.Name, e.IsInInitialList), e.Object, q)
}

func (n *noting) Update(_ context.Context, e event.TypedUpdateEvent[*corev1.ConfigMap], q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	n.note(fmt.Sprintf("update %s from %q to %q", e.ObjectNew.Name, e.ObjectOld.Data["x"], e.ObjectNew.Data["x"]), e.ObjectNew, q)
}

func (n *noting) Delete(_ context.Context, e event.TypedDeleteEvent[*corev1.ConfigMap], q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
	n.note("delete "+e.Object.Name, e.Object, q)
}

func (n *noting) Generic(context.Context, event.TypedGenericEvent[*corev1.ConfigMap], workqueue.TypedRateLimitingInterface[ctrl.Request]) {
}

func TestHandler_GivesTheEventsAndAddsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, configMap("a", nil))
		mgr, start := newManager(t, server)
		h := &noting{}
		s := adopt.Handler(informer.For[*corev1.ConfigMap](mgr.Informers()), h)
		start()
		type added struct {
			key   reconcile.Key
			cause source.Cause
		}
		var mu sync.Mutex
		var all []added
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- s.Run(ctx, func(k reconcile.Key, c source.Cause) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, added{k, c})
			})
		}()
		count := func() int { mu.Lock(); defer mu.Unlock(); return len(all) }
		<-s.Synced()
		time.Sleep(time.Second)
		b := configMap("b", nil)
		if err := server.Client.Create(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		b.Data = map[string]string{"x": "1"}
		if err := server.Client.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := count(); n != 0 {
			t.Errorf("%d keys are added at once, want none before a minute", n)
		}
		time.Sleep(2 * time.Minute)
		if n := count(); n != 2 {
			t.Errorf("%d keys are added after a minute, want each of two once", n)
		}
		mu.Lock()
		first := all[0]
		mu.Unlock()
		if first.key.Name != "a" || !first.cause.Initial || first.cause.Source != "handler of ConfigMap" || first.cause.Type != kube.Added {
			t.Errorf("the first key is %+v, want the initial object and its cause", first)
		}
		if err := server.Client.Delete(t.Context(), b); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		h.mu.Lock()
		defer h.mu.Unlock()
		want := []string{"create a initial=true", "create b initial=false", `update b from "" to "1"`, "delete b"}
		if !slices.Equal(h.notes, want) {
			t.Errorf("the handler got %q, want %q", h.notes, want)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if n := count(); n != 2 {
			t.Error("a key is added after the run")
		}
		if err := s.Run(t.Context(), nil); err == nil {
			t.Error("a second run is no error")
		}
	})
}

func TestSource_MisuseIsReturned(t *testing.T) {
	var none *informer.SharedInformer[*corev1.ConfigMap]
	for name, s := range map[string]source.Source[reconcile.Key]{
		"no informer": adopt.Handler(none, &handler.EnqueueRequestForObject{}),
		"no source":   adopt.Source("x", nil),
	} {
		if source.ErrOf(s) == nil || s.Run(t.Context(), nil) == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// failing is a source that does not start, or does not sync.
type failing struct{ start, sync error }

func (f failing) Start(context.Context, workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	return f.start
}

func (f failing) WaitForSync(context.Context) error { return f.sync }

func TestSource_ErrorsOfTheSourceEndTheRun(t *testing.T) {
	failed := errors.New("failed")
	for _, f := range []failing{{start: failed}, {sync: failed}} {
		s := adopt.Source("theirs", f)
		if err := s.Run(t.Context(), nil); !errors.Is(err, failed) {
			t.Errorf("the run of %+v ended with %v", f, err)
		}
		if source.SnapshotOf(s).Synced {
			t.Errorf("%+v counts as synced", f)
		}
	}
}

// Lists by a field index, as programs for controller-runtime do.
func TestNewClient_ListsByAFieldIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, configMap("a", map[string]string{"x": "1"}), configMap("b", nil))
		mgr, start := newManager(t, server)
		cl, err := adopt.NewClient(mgr)
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.IndexField(t.Context(), &corev1.ConfigMap{}, "x", func(obj client.Object) []string { return []string{obj.GetLabels()["x"]} }); err != nil {
			t.Fatal(err)
		}
		start()
		synctest.Wait()
		var list corev1.ConfigMapList
		if err := cl.List(t.Context(), &list, client.MatchingFields{"x": "1"}); err != nil || len(list.Items) != 1 || list.Items[0].Name != "a" {
			t.Errorf("the list by the index has %v with %v", list.Items, err)
		}
	})
}

// The informers show what the client writes, before any watch does.
func TestNewClient_ReadsItsOwnWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil)
		mgr, start := newManager(t, server)
		informer.For[*corev1.ConfigMap](mgr.Informers())
		cl, err := adopt.NewClient(mgr)
		if err != nil {
			t.Fatal(err)
		}
		start()
		time.Sleep(time.Second)
		server.LagKindTo(schema.GroupResource{Resource: "configmaps"}, server.Revision())
		made := configMap("a", nil)
		if err := cl.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), client.ObjectKeyFromObject(made), made); err != nil {
			t.Errorf("a read directly after a write: %v", err)
		}
	})
}
