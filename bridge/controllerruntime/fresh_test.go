// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

const (
	freshTrials = 30
	freshLag    = 400 * time.Millisecond
	blocked     = 50 * time.Millisecond // a read that takes longer waits for the watch
	held        = "example.org/hold"
)

// freshRow is a write, and a read that has to show it.
type freshRow struct {
	name   string
	exists func(name string) []client.Object // before the write
	dying  bool                              // what exists is being deleted
	write  func(ctx context.Context, cl client.Client, name string) error
	shows  func(ctx context.Context, cl client.Client, name string) (bool, error)
}

// freshCount counts the trials of a row.
type freshCount struct {
	stale   int // a read shows a state older than the write
	blocked int // a read waits
	pending int // a read says that the state is not known yet
	refused int // the client does not make the write
}

func (c freshCount) String() string {
	if c.refused > 0 {
		return fmt.Sprintf("%d not supported", c.refused)
	}
	return fmt.Sprintf("%d stale, %d blocked, %d pending", c.stale, c.blocked, c.pending)
}

var freshRows = []freshRow{
	{"create", nothing, false, func(ctx context.Context, cl client.Client, name string) error {
		return cl.Create(ctx, valued(name, "2"))
	}, isChanged},
	{"update", one, false, change, isChanged},
	{"update, read as metadata", one, false, change, func(ctx context.Context, cl client.Client, name string) (bool, error) {
		m := metadata(name)
		return shown(ctx, cl, m, func() bool { return m.Labels["v"] == "2" })
	}},
	{"update, unstructured", one, false, func(ctx context.Context, cl client.Client, name string) error {
		u := loose(name)
		if err := cl.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(u.Object, "2", "data", "v"); err != nil {
			return err
		}
		return cl.Update(ctx, u)
	}, func(ctx context.Context, cl client.Client, name string) (bool, error) {
		u := loose(name)
		return shown(ctx, cl, u, func() bool { v, _, _ := unstructured.NestedString(u.Object, "data", "v"); return v == "2" })
	}},
	{"status update", aDeployment, false, func(ctx context.Context, cl client.Client, name string) error {
		d := deployment(name)
		if err := cl.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		d.Status.ObservedGeneration = 7
		return cl.Status().Update(ctx, d)
	}, func(ctx context.Context, cl client.Client, name string) (bool, error) {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		return shown(ctx, cl, d, func() bool { return d.Status.ObservedGeneration == 7 })
	}},
	{"patch", one, false, func(ctx context.Context, cl client.Client, name string) error {
		return cl.Patch(ctx, valued(name, "2"), client.MergeFrom(valued(name, "1")))
	}, isChanged},
	{"patch as `PartialObjectMetadata`", one, false, func(ctx context.Context, cl client.Client, name string) error {
		before := metadata(name)
		if err := cl.Get(ctx, client.ObjectKeyFromObject(before), before); err != nil {
			return err
		}
		after := before.DeepCopy()
		after.Labels["v"] = "2"
		return cl.Patch(ctx, after, client.MergeFrom(before))
	}, func(ctx context.Context, cl client.Client, name string) (bool, error) {
		m := metadata(name)
		return shown(ctx, cl, m, func() bool { return m.Labels["v"] == "2" })
	}},
	{"apply", one, false, func(ctx context.Context, cl client.Client, name string) error {
		applied := coreac.ConfigMap(name, "default").WithData(map[string]string{"v": "2"})
		return cl.Apply(ctx, applied, client.FieldOwner("test"), client.ForceOwnership)
	}, isChanged},
	{"delete", one, false, remove, isGone},
	{"delete and create again", one, false, func(ctx context.Context, cl client.Client, name string) error {
		if err := remove(ctx, cl, name); err != nil {
			return err
		}
		return cl.Create(ctx, valued(name, "2"))
	}, isChanged},
	{"last finalizer", oneHeld, true, release, isGone},
	{"delete and last finalizer", oneHeld, false, func(ctx context.Context, cl client.Client, name string) error {
		if err := remove(ctx, cl, name); err != nil {
			return err
		}
		return release(ctx, cl, name)
	}, isGone},
	{"create with `generateName`, then a list", nothing, false, func(ctx context.Context, cl client.Client, name string) error {
		cm := valued("", "1")
		cm.GenerateName, cm.Labels["name"] = name+"-", name
		return cl.Create(ctx, cm)
	}, counts(1)},
	{"`DeleteAllOf`, then a list", func(name string) []client.Object {
		first, second := valued(name+"-a", "1"), valued(name+"-b", "1")
		first.Labels["name"], second.Labels["name"] = name, name
		return []client.Object{first, second}
	}, false, func(ctx context.Context, cl client.Client, name string) error {
		return cl.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"name": name})
	}, counts(0)},
}

func nothing(string) []client.Object { return nil }

func one(name string) []client.Object { return []client.Object{valued(name, "1")} }

func oneHeld(name string) []client.Object {
	cm := valued(name, "1")
	cm.Finalizers = []string{held}
	return []client.Object{cm}
}

func aDeployment(name string) []client.Object { return []client.Object{deployment(name)} }

func valued(name, v string) *corev1.ConfigMap {
	cm := configMap("default", name, map[string]string{"v": v})
	cm.Labels["v"] = v
	return cm
}

func loose(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func metadata(name string) *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	return m
}

func change(ctx context.Context, cl client.Client, name string) error {
	cm := valued(name, "")
	if err := cl.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
		return err
	}
	cm.Data["v"], cm.Labels["v"] = "2", "2"
	return cl.Update(ctx, cm)
}

func remove(ctx context.Context, cl client.Client, name string) error {
	return cl.Delete(ctx, valued(name, ""))
}

// release patches, since a cache may not show the latest version.
func release(ctx context.Context, cl client.Client, name string) error {
	return cl.Patch(ctx, valued(name, ""), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
}

// shown reads obj, and returns whether it is there and is as expected.
func shown(ctx context.Context, cl client.Client, obj client.Object, is func() bool) (bool, error) {
	err := cl.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && is(), err
}

func isChanged(ctx context.Context, cl client.Client, name string) (bool, error) {
	cm := valued(name, "")
	return shown(ctx, cl, cm, func() bool { return cm.Data["v"] == "2" })
}

func isGone(ctx context.Context, cl client.Client, name string) (bool, error) {
	cm := valued(name, "")
	err := cl.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}

// counts expects n objects with the label of the trial.
func counts(n int) func(context.Context, client.Client, string) (bool, error) {
	return func(ctx context.Context, cl client.Client, name string) (bool, error) {
		var list corev1.ConfigMapList
		err := cl.List(ctx, &list, client.InNamespace("default"), client.MatchingLabels{"name": name})
		return len(list.Items) == n, err
	}
}

// catchUp returns what lets the watches deliver one version after the other from now on.
func catchUp(s *simtest.Server) func() {
	from := s.Revision()
	return func() {
		for version := from + 1; version <= s.Revision(); version++ {
			s.LagTo(version)
			time.Sleep(10 * time.Millisecond)
		}
		s.CatchUp()
	}
}

// tryRow makes the write while the watches are late, and reads until they are not.
func tryRow(t *testing.T, s *simtest.Server, cl client.Client, r freshRow, name string) (c freshCount) {
	t.Helper()
	for _, obj := range r.exists(name) {
		err := s.Client.Create(t.Context(), obj)
		if err == nil && r.dying {
			err = s.Client.Delete(t.Context(), obj)
		}
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
	}
	time.Sleep(time.Second) // the watches deliver this
	s.LagTo(s.Revision())
	time.AfterFunc(freshLag, catchUp(s))
	end := time.Now().Add(freshLag + 100*time.Millisecond)
	err := r.write(t.Context(), cl, name)
	if err != nil && strings.Contains(err.Error(), "is not supported by") {
		c.refused = 1
	} else if err != nil {
		t.Errorf("%s: %v", r.name, err)
	}
	for ; err == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		at := time.Now()
		ok, err := r.shows(t.Context(), cl, name)
		if time.Since(at) > blocked {
			c.blocked = 1
		}
		switch _, unsettled := errors.AsType[*kube.NotSettledError](err); {
		case unsettled:
			c.pending = 1
		case err != nil:
			t.Errorf("%s: the read after the write: %v", r.name, err)
		case !ok:
			c.stale = 1
		}
	}
	time.Sleep(time.Until(end))
	return c
}

// measure makes the trials of each row through the client of a manager with opts.
func measure(t *testing.T, opts ctrl.Options) []freshCount {
	t.Helper()
	s := simtest.New(t, nil)
	opts.Metrics, opts.Logger = server.Options{BindAddress: "0"}, logr.Discard()
	mgr, err := ctrl.NewManager(s.Config, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	<-mgr.Elected()
	for _, form := range []client.Object{&corev1.ConfigMap{}, loose(""), metadata(""), &appsv1.Deployment{}} {
		if _, err := mgr.GetCache().GetInformer(ctx, form); err != nil {
			t.Fatal(err)
		}
	}
	found := make([]freshCount, len(freshRows))
	for i, row := range freshRows {
		for n := range freshTrials {
			c := tryRow(t, s, mgr.GetClient(), row, fmt.Sprintf("row-%d-%d", i, n))
			found[i].stale += c.stale
			found[i].blocked += c.blocked
			found[i].pending += c.pending
			found[i].refused += c.refused
		}
	}
	// A watch of controller-runtime that is canceled may leave a goroutine behind, so none is left.
	s.Overload(math.MaxInt, http.StatusServiceUnavailable, 0)
	for _, r := range s.Watched() {
		s.CloseWatches(r)
	}
	synctest.Wait()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
	return found
}

// With the one line no read shows a state older than an own write, and none waits. The same trials see both with
// controller-runtime.
func TestOptions_NoReadIsOlderThanAnOwnWriteOrWaits(t *testing.T) {
	cached := func(consistent *bool) ctrl.Options {
		reads := &client.CacheOptions{Unstructured: true}
		(&waiting{CacheOptions: reads}).EnableReadYourWritesConsistency = consistent
		return ctrl.Options{Client: client.Options{Cache: reads}}
	}
	for _, side := range []struct {
		name string
		opts ctrl.Options
		all  func(*testing.T, []freshCount)
	}{
		{"bridge", Options(cached(nil)), func(t *testing.T, found []freshCount) {
			for i, c := range found {
				if c.stale+c.blocked+c.refused > 0 {
					t.Errorf("%s: %s of %d trials, want none", freshRows[i].name, c, freshTrials)
				}
			}
		}},
		{"controller-runtime", cached(nil), func(t *testing.T, found []freshCount) {
			for _, c := range found {
				if c.stale > 0 {
					return
				}
			}
			t.Error("no read is stale; the trials see nothing")
		}},
		{"experimental mode", cached(new(true)), func(*testing.T, []freshCount) {}},
	} {
		t.Run(side.name, func(t *testing.T) {
			var found []freshCount
			synctest.Test(t, func(t *testing.T) { found = measure(t, side.opts) })
			for i, c := range found {
				t.Logf("%-40s %s of %d", freshRows[i].name, c, freshTrials)
			}
			if !t.Failed() {
				side.all(t, found)
			}
		})
	}
}
