// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"flag"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// What a process selects, and the Lease that it competes for, follow from the program's label
// and the flag.
func TestSharding_ScopeAndLeaseAreThoseOfTheShard_M16(t *testing.T) {
	kinds := []runtime.Object{&corev1.ConfigMap{}}
	label := func() *manager.Sharding { return &manager.Sharding{Label: "example.dev/shard", Kinds: kinds} }
	for _, c := range []struct {
		name     string
		code     *manager.Sharding
		args     []string
		selector string
		lease    string
		problem  string // in the error of New; empty: none
	}{
		{"no shards", nil, nil, "", "website", ""},
		{"the zero value", &manager.Sharding{}, nil, "", "website", ""},
		{"objects without the label", label(), nil, "!example.dev/shard", "website", ""},
		{"one shard by the flag", label(), []string{"-shard=a"}, "example.dev/shard in (a)", "website-a", ""},
		{"one shard by the program", &manager.Sharding{Label: "shard", Kinds: kinds, Shard: "b"}, nil, "shard in (b)", "website-b", ""},
		{"the flag wins", &manager.Sharding{Label: "shard", Kinds: kinds, Shard: "b"}, []string{"-shard="}, "!shard", "website", ""},
		{"a program without shards", nil, []string{"-shard=a"}, "", "", `the shard is "a" (-shard), and the program has no Label for shards`},
		{"a label that is none", &manager.Sharding{Label: "a b", Kinds: kinds}, nil, "", "", `Label "a b"`},
		{"no kinds", &manager.Sharding{Label: "shard"}, nil, "", "", "it has no Kinds"},
		{"an unknown kind", &manager.Sharding{Label: "shard", Kinds: []runtime.Object{&unknown{}}}, nil, "", "", "of Kinds is not in the scheme"},
		{"a value that names no Lease", label(), []string{"-shard=A_b"}, "", "", `Shard "A_b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := manager.Options{
				Config: &rest.Config{Host: "http://127.0.0.1:1"}, Sharding: c.code, HealthAddress: "0", MetricsAddress: "0", Logger: quiet(),
				LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"}, Informers: informer.Options{Namespaces: []string{"prod"}},
			}
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			opts.BindFlags(fs)
			must(t, fs.Parse(c.args))
			_, err := manager.New(opts)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("New = %v, want an error with %q", err, c.problem)
				}
				return
			}
			must(t, err)
			before := opts.Sharding
			must(t, opts.Complete())
			if got := opts.Informers.SelectByKind[schema.GroupKind{Kind: "ConfigMap"}]; got != c.selector {
				t.Errorf("selects %q, want %q", got, c.selector)
			}
			if got := opts.LeaderElection.ID; got != c.lease {
				t.Errorf("competes for the Lease %q, want %q", got, c.lease)
			}
			if before != nil && c.code != nil && len(c.args) == 0 && before != c.code {
				t.Error("what the program gave was replaced")
			}
		})
	}
}

// unknown is of no scheme.
type unknown struct{ corev1.ConfigMap }
