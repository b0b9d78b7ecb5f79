// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"
)

var (
	whole   = flag.Bool("zoo.all", false, "TestZoo_Doctor examines the operators with each bug, and not only with some")
	longest = flag.Duration("zoo.budget", 10*time.Minute, "how long TestZoo_Doctor tries plans for each bug")
)

// patient is an operator as package doctor examines it, without any check.
type patient struct {
	setup  func(bug string) func(*manager.Manager) error
	sample func() kube.Object
	// some bugs are examined in each run of the tests: they are found soon.
	some []string
	// unseen are bugs that doctor does not find; docs/doctor-bugs.md says why.
	unseen []string
}

func typed(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}

var patients = map[string]patient{
	"page": {
		setUpPages,
		func() kube.Object {
			return &page{TypeMeta: typed("Page"), ObjectMeta: meta("page"), Spec: pageSpec{"text", "plain"}}
		},
		[]string{"remembered before it is written"},
		[]string{"status written from a stale object", "UID not checked"},
	},
	"store": {
		func(bug string) func(*manager.Manager) error {
			return func(mgr *manager.Manager) error { return setUpStores(bug, bucketsInside{mgr.Client()})(mgr) }
		},
		func() kube.Object {
			return &store{TypeMeta: typed("Store"), ObjectMeta: meta("store"), Spec: storeSpec{2}}
		},
		[]string{"bucket made before the finalizer"},
		nil,
	},
	"pool": {
		setUpPools,
		func() kube.Object {
			return &pool{TypeMeta: typed("Pool"), ObjectMeta: meta("pool"), Spec: poolSpec{2}}
		},
		[]string{"second step only after the first"},
		[]string{"UID remembered by name", "surplus counted by a stale read", "workers known by their label"},
	},
}

func (p patient) operator(t *testing.T, bug string) doctor.Operator {
	t.Helper()
	text, err := json.Marshal(p.sample())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "sample.json")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	op := doctor.Operator{
		Setup: p.setup(bug), Samples: []string{name}, Budget: *longest,
		Cluster: kit.Config{CRDs: []string{"testdata/crds"}, Scheme: scheme, Actors: simulate.Actors{GarbageCollector: true}},
	}
	if !*whole {
		op.MostPlans = 12
	}
	return op
}

// Without a check that somebody wrote, doctor finds the bugs, and nothing in operators without one.
func TestZoo_Doctor(t *testing.T) {
	for _, a := range zoo {
		p := patients[a.name]
		t.Run(a.name, func(t *testing.T) {
			r := doctor.Test(t, p.operator(t, ""))
			fmt.Printf("%s without a bug|%d of %d plans|%d findings|%v\n", a.name, r.Ran, r.Plans, len(r.Findings), r.Took.Round(time.Second))
		})
		for _, bug := range a.bugs {
			if !*whole && !slices.Contains(p.some, bug.name) || !strings.Contains(a.name+"/"+bug.name, *only) {
				continue
			}
			t.Run(a.name+"/"+bug.name, func(t *testing.T) {
				op := p.operator(t, bug.name)
				op.First = true
				r := doctor.Examine(t, op)
				row := fmt.Sprintf("%s: %s|not found by %d of %d plans||", a.name, bug.name, r.Ran, r.Plans)
				if len(r.Findings) > 0 {
					f := r.Findings[0]
					row = fmt.Sprintf("%s: %s|%s|%s|%d|%s|%s", a.name, bug.name, f.Class, f.Pattern, f.After, f.Text, f.Plan)
				}
				fmt.Printf("%s|%v\n", row, r.Took.Round(time.Second))
				if unseen := slices.Contains(p.unseen, bug.name); unseen != (len(r.Findings) == 0) {
					t.Errorf("there are %d findings, and patients says that doctor sees the bug: %t", len(r.Findings), !unseen)
				}
			})
		}
	}
}

// bucketsInside keeps buckets as ConfigMaps, because doctor sees only what is in the cluster.
type bucketsInside struct{ client *client.Client }

const bucketLabel = "zoo.example.dev/bucket"

func (b bucketsInside) create(ctx context.Context, token string, anew bool) (string, error) {
	for one, err := range client.List[*corev1.ConfigMap](ctx, b.client, client.MatchingLabels{bucketLabel: token}) {
		if err != nil {
			return "", err
		}
		if !anew {
			return one.Name, nil
		}
	}
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", GenerateName: "bucket-", Labels: map[string]string{bucketLabel: token},
	}}
	err := b.client.Create(ctx, one)
	return one.Name, err
}

func (b bucketsInside) free(ctx context.Context, token, id string) error {
	for one, err := range client.List[*corev1.ConfigMap](ctx, b.client, client.InNamespace("default")) {
		if err != nil {
			return err
		}
		of, isBucket := one.Labels[bucketLabel]
		if isBucket && (of == token || one.Name == id) {
			if err := reconcile.IgnoreNotFound(b.client.Delete(ctx, one)); err != nil {
				return err
			}
		}
	}
	return nil
}
