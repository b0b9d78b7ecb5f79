// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func TestManager_AddDuringRunStartsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		stop, wait := run(t, m)
		synctest.Wait()
		j := &journal{}
		must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			j.write("runs")
			if _, err := logr.FromContext(ctx); err != nil {
				j.write("has no logger")
			}
			<-ctx.Done()
			return nil
		})))
		synctest.Wait()
		if got := j.read(); !slices.Equal(got, []string{"runs"}) {
			t.Errorf("got %q, want it to run, with the manager's logger in its context", got)
		}
		stop()
		must(t, wait())
	})
}

// unregistered is of no scheme.
type unregistered struct{ corev1.ConfigMap }

func TestManager_MisuseIsReturnedByAddAndByRun(t *testing.T) {
	nothing := func(context.Context, string) (reconcile.Result, error) { return reconcile.Result{}, nil }
	var none *reconcile.Controller[string]
	for _, tc := range []struct {
		name  string
		add   func(m *manager.Manager) error
		wants string
	}{
		{"nil", func(m *manager.Manager) error { return m.Add(nil) }, "the Runnable is nil"},
		{"nil controller", func(m *manager.Manager) error { return m.Add(none) }, "the Runnable is nil (*reconcile.Controller[string])"},
		{"nil function", func(m *manager.Manager) error { return m.Add(manager.RunnableFunc(nil)) }, "the Runnable is nil"},
		{"unknown stage", func(m *manager.Manager) error { return m.AddTo("cellar", deaf{}) }, `no such stage; the stages are [servers webhooks informers standby leadership controllers]`},
		{"two of one name", func(m *manager.Manager) error {
			must(t, m.Add(reconcile.New("twin", nothing, reconcile.KeyedOptions[string]{})))
			return m.Add(reconcile.New("twin", nothing, reconcile.KeyedOptions[string]{}))
		}, `add controller "twin": a controller of that name has been added; give each its own, with reconcile.For in Options.Name`},
		{"the same twice", func(m *manager.Manager) error {
			c := reconcile.New("twin", nothing, reconcile.KeyedOptions[string]{})
			must(t, m.Add(c))
			return m.Add(c)
		}, `add controller "twin": this very controller has been added already; call Add once for each`},
		{"nil reconcile function", func(m *manager.Manager) error {
			return m.Add(reconcile.New[string]("blank", nil, reconcile.KeyedOptions[string]{}))
		}, `add controller "blank": the reconcile function is nil`},
		{"empty name", func(m *manager.Manager) error {
			return m.Add(reconcile.New("", nothing, reconcile.KeyedOptions[string]{}))
		}, `add controller "": the name is empty; name what it reconciles`},
		{"type that is not in the scheme", func(m *manager.Manager) error {
			c := reconcile.New("strange", func(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }, reconcile.Options{})
			c.Watch(source.Kind(informer.For[*unregistered](m.Informers()), source.Self))
			return m.Add(c)
		}, `add controller "strange": watch: source kind unregistered: informer for *manager_test.unregistered: the type is not in the scheme; call its package's AddToScheme(scheme) first`},
		{"malformed selector", func(m *manager.Manager) error {
			c := reconcile.New("picky", func(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }, reconcile.Options{})
			c.Watch(source.Kind(informer.For[*corev1.ConfigMap](m.Informers(), informer.Scope{LabelSelector: "a==(("}), source.Self))
			return m.Add(c)
		}, `add controller "picky": watch: source kind ConfigMap: informer of ConfigMap: watch in all namespaces with labels "a==((": parse label selector: `},
		{"negative workers", func(m *manager.Manager) error {
			return m.Add(reconcile.New("minus", nothing, reconcile.KeyedOptions[string]{Workers: -1}))
		}, `Options.Workers is -1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newManager(t, manager.Options{})
			err := tc.add(m)
			if err == nil || !strings.Contains(err.Error(), tc.wants) {
				t.Errorf("Add = %v, want an error with %q", err, tc.wants)
			}
			if err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tc.wants) {
				t.Errorf("Run = %v, want the same: nobody need look at what Add returns", err)
			}
		})
	}
}
