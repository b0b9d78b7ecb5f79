// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	flyball "github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// operator returns the main of a program of controller-runtime that keeps a Secret of each ConfigMap.
func operator(opts ctrl.Options, reconciled func(client.Client) reconcile.Func) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		opts := opts
		opts.Metrics = server.Options{BindAddress: "0"}
		opts.Controller.SkipNameValidation = new(true) // each process is another manager
		mgr, err := ctrl.NewManager(cfg, opts)
		if err != nil {
			return err
		}
		err = ctrl.NewControllerManagedBy(mgr).Named("secrets").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconciled(mgr.GetClient()))
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
}

// right keeps a Secret of the ConfigMap's name.
func right(cl client.Client) reconcile.Func {
	return func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		from, secret := &corev1.ConfigMap{}, &corev1.Secret{}
		if err := cl.Get(ctx, req.NamespacedName, from); err != nil || from.DeletionTimestamp != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		err := cl.Get(ctx, req.NamespacedName, secret)
		switch want := contentOf(from); {
		case apierrors.IsNotFound(err):
			secret.ObjectMeta = metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}
			secret.Data = want
			if err := ctrl.SetControllerReference(from, secret, cl.Scheme()); err != nil {
				return ctrl.Result{}, err
			}
			return ctrl.Result{}, cl.Create(ctx, secret)
		case err != nil:
			return ctrl.Result{}, err
		case !maps.EqualFunc(secret.Data, want, func(a, b []byte) bool { return string(a) == string(b) }):
			secret.Data = want
			return ctrl.Result{}, cl.Update(ctx, secret)
		}
		return ctrl.Result{}, nil
	}
}

func contentOf(from *corev1.ConfigMap) map[string][]byte {
	return map[string][]byte{"content": []byte(from.Data["content"])}
}

// doubling creates a Secret whose name the server chooses, if a read shows none.
func doubling(cl client.Client) reconcile.Func {
	return func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		from, secrets := &corev1.ConfigMap{}, &corev1.SecretList{}
		if err := cl.Get(ctx, req.NamespacedName, from); err != nil || from.DeletionTimestamp != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if err := cl.List(ctx, secrets, client.InNamespace(req.Namespace), client.MatchingLabels{"of": req.Name}); err != nil {
			return ctrl.Result{}, err
		}
		if len(secrets.Items) > 0 {
			return ctrl.Result{}, nil
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: req.Namespace, GenerateName: req.Name + "-", Labels: map[string]string{"of": req.Name},
		}}
		if err := ctrl.SetControllerReference(from, secret, cl.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, cl.Create(ctx, secret)
	}
}

// losing remembers what it has written before it is known to be written.
func losing(cl client.Client) reconcile.Func {
	written := map[string]string{}
	next := right(cl)
	return func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		from := &corev1.ConfigMap{}
		if err := cl.Get(ctx, req.NamespacedName, from); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if written[req.String()] == from.ResourceVersion {
			return ctrl.Result{}, nil
		}
		written[req.String()] = from.ResourceVersion
		return next(ctx, req)
	}
}

// changes has two users' objects, one of which is changed.
func changes(main func(context.Context, *rest.Config) error) func(*kit.World) {
	return func(w *kit.World) {
		ctx := context.Background()
		kit.RunMain(w, "operator", main)
		first := configMap("default", "first", map[string]string{"content": "one"})
		w.Settled(func() error {
			for m, err := range flyball.List[*corev1.ConfigMap](ctx, w.Client()) {
				if err != nil {
					return err
				}
				var of []*corev1.Secret
				for s, err := range flyball.List[*corev1.Secret](ctx, w.Client()) {
					if err != nil {
						return err
					}
					if metav1.IsControlledBy(s, m) {
						of = append(of, s)
					}
				}
				if len(of) != 1 {
					return fmt.Errorf("%s has %d secrets, want 1", m.Name, len(of))
				}
				if s := of[0]; s.Name == m.Name && string(s.Data["content"]) != m.Data["content"] {
					return fmt.Errorf("the secret of %s has %q, want %q", m.Name, s.Data["content"], m.Data["content"])
				}
			}
			return nil
		})
		w.Create(first)
		w.Sleep(3 * time.Second)
		w.Create(configMap("default", "second", map[string]string{"content": "two"}))
		w.Sleep(2 * time.Second)
		w.Edit(first, func() { first.Data = map[string]string{"content": "three"} })
	}
}

// sides are controller-runtime alone and with the one line.
var sides = map[string]ctrl.Options{"controller-runtime": {}, "bridge": Options(ctrl.Options{})}

func wrong(h *kit.History) bool { return len(h.Violations) > 0 }

func TestSimulation_ARightOperatorPasses(t *testing.T) {
	for name, opts := range sides {
		t.Run(name, func(t *testing.T) { kit.Test(t, kit.Config{Seeds: 40}, changes(operator(opts, right))) })
	}
}

// Each wrong operator is found within so many seeds: a lost write with and without the line, a second child with the
// native cache, which does not show the first. With the line the second child needs several faults.
func TestSimulation_WrongOperatorsAreFound(t *testing.T) {
	for _, c := range []struct {
		name, side string
		wrong      func(client.Client) reconcile.Func
		within     int
		says       string
	}{
		{"a write remembered too early", "controller-runtime", losing, 40, "want"},
		{"a write remembered too early", "bridge", losing, 40, "want"},
		{"a child with a generated name", "controller-runtime", doubling, 100, "has 2 secrets, want 1"},
		{"a child with a generated name", "bridge", doubling, 400, "has 2 secrets, want 1"},
	} {
		t.Run(c.name+" "+c.side, func(t *testing.T) {
			h, runs := kit.Find(t, kit.Config{}, 1, c.within, changes(operator(sides[c.side], c.wrong)), wrong)
			if h == nil {
				t.Fatalf("not found in %d seeds", runs)
			}
			t.Logf("found by seed %d of %d: %s", runs, c.within, h.Violations[0])
			if v := h.Violations[0]; v.Invariant != "V17" || !strings.Contains(v.Text, c.says) {
				t.Errorf("found %s, want V17 with %q", v, c.says)
			}
		})
	}
}

// The process crashes after its first write, and its successor completes the work.
func TestSimulation_AnotherProcessFollowsACrash(t *testing.T) {
	for name, opts := range sides {
		plan := kit.Plan{kit.Crash(time.Second).AfterWrite("create Secret", 1)}
		h := kit.Run(t, kit.Config{Faults: plan}, 1, changes(operator(opts, right)))
		for _, v := range h.Violations {
			t.Errorf("%s: %s", name, v)
		}
		var lives []string
		for _, e := range h.Events {
			if e.What == kit.Started || e.What == kit.Crashed {
				lives = append(lives, e.What+" "+e.Who)
			}
		}
		if got, want := strings.Join(lives, ", "), "started operator-1, crashed operator-1, started operator-2"; got != want {
			t.Errorf("%s: the lives are %s, want %s", name, got, want)
		}
	}
}

// Most seeds change the server in the same way again, although client-go draws delays of its own.
func TestSimulation_ASeedCanBeReplayed(t *testing.T) {
	const seeds = 20
	for name, opts := range sides {
		same := 0
		for seed := range uint64(seeds) {
			scenario := changes(operator(opts, right))
			first, second := kit.Run(t, kit.Config{}, seed, scenario), kit.Run(t, kit.Config{}, seed, scenario)
			if revisions(first) == revisions(second) {
				same++
			}
		}
		t.Logf("%s: %d of %d seeds have the same revisions twice", name, same, seeds)
		if same < seeds/2 {
			t.Errorf("%s: %d of %d seeds have the same revisions twice, want most", name, same, seeds)
		}
	}
}

func revisions(h *kit.History) string {
	var text strings.Builder
	for _, e := range h.Events {
		if e.What == kit.Changed {
			fmt.Fprintln(&text, e.Who, e.Name, e.Kind, e.Key)
		}
	}
	return text.String()
}

func electing(opts ctrl.Options, release bool) ctrl.Options {
	opts.LeaderElection, opts.LeaderElectionID, opts.LeaderElectionNamespace = true, "operator", "default"
	opts.LeaderElectionReleaseOnCancel = release
	return opts
}

// ofLease names the Lease of electing.
func ofLease(faults kit.Plan, seeds int) kit.Config {
	lease := &manager.LeaderElection{ID: "operator", Namespace: "default"}
	return kit.Config{Seeds: seeds, Faults: faults, FaultPhase: time.Minute, Manager: manager.Options{LeaderElection: lease}}
}

func replicas(opts ctrl.Options) func(*kit.World) {
	return func(w *kit.World) {
		kit.RunMain(w, "standby", operator(opts, right))
		changes(operator(opts, right))(w)
	}
}

func TestSimulation_ReplicasWithLeaderElectionPass(t *testing.T) {
	for name, opts := range sides {
		for _, release := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s release=%t", name, release), func(t *testing.T) {
				kit.Test(t, ofLease(nil, 5), replicas(electing(opts, release)))
			})
		}
	}
}

// A controller that runs without leading writes on the standby too.
func TestSimulation_WritesOfTheStandbyAreFound(t *testing.T) {
	opts := electing(sides["controller-runtime"], true)
	opts.Controller.NeedLeaderElection = new(false)
	h := kit.Run(t, ofLease(kit.Plan{}, 1), 1, replicas(opts))
	if !slices.ContainsFunc(h.Violations, func(v kit.Violation) bool {
		return v.Invariant == "V10" && strings.Contains(v.Text, "and the Lease is")
	}) {
		t.Errorf("the run violates %v, want V10", h.Violations)
	}
}

// With the fence, replicas pass too: a standby waits for its lead, and its writes are refused until then.
func TestSimulation_FencedReplicasPass(t *testing.T) {
	for _, release := range []bool{true, false} {
		fenced := func(ctx context.Context, cfg *rest.Config) error {
			cfg, opts, err := Fence(cfg, electing(sides["bridge"], release))
			if err != nil {
				return err
			}
			return operator(opts, right)(ctx, cfg)
		}
		t.Run(fmt.Sprintf("release=%t", release), func(t *testing.T) {
			kit.Test(t, ofLease(nil, 5), func(w *kit.World) {
				kit.RunMain(w, "standby", fenced)
				changes(fenced)(w)
			})
		})
	}
}
