// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

func TestLeaderElection_NamespaceIsThatOfTheVariable(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "a/b")
	_, err := manager.New(manager.Options{
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, LeaderElection: &manager.LeaderElection{ID: "website"}, HealthAddress: "0", MetricsAddress: "0", Logger: quiet(),
	})
	if err == nil || !strings.Contains(err.Error(), `Namespace "a/b"`) {
		t.Errorf("New = %v, want it to take the namespace of POD_NAMESPACE", err)
	}
}

func TestLeaderElection_MisuseSaysWhatToWrite(t *testing.T) {
	good := manager.LeaderElection{ID: "website", Namespace: "ops"}
	for _, c := range []struct {
		name   string
		change func(e *manager.LeaderElection)
		want   string // empty: fine
	}{
		{"defaults", func(*manager.LeaderElection) {}, ""},
		{"a longer lease", func(e *manager.LeaderElection) { e.LeaseDuration = time.Minute }, ""},
		{"the shortest lease", func(e *manager.LeaderElection) { e.LeaseDuration = time.Second }, ""},
		{"no ID", func(e *manager.LeaderElection) { e.ID = "" }, "ID is not set; name the Lease"},
		{"malformed ID", func(e *manager.LeaderElection) { e.ID = "Web Site" }, `ID "Web Site": a lowercase RFC 1123 subdomain`},
		{"no namespace", func(e *manager.LeaderElection) { e.Namespace = "" }, "no Namespace is set, and this process does not run in a Pod"},
		{"malformed namespace", func(e *manager.LeaderElection) { e.Namespace = "a/b" }, `Namespace "a/b": a lowercase RFC 1123 label`},
		{"too short for a Lease", func(e *manager.LeaderElection) { e.LeaseDuration = time.Millisecond }, "LeaseDuration is 1ms; a Lease holds whole seconds, so write 1s"},
		{"parts of a second", func(e *manager.LeaderElection) { e.LeaseDuration = 2600 * time.Millisecond }, "LeaseDuration is 2.6s; a Lease holds whole seconds, so write 3s"},
		{"negative", func(e *manager.LeaderElection) { e.LeaseDuration = -time.Second }, "LeaseDuration is -1s"},
		{"deadline above the lease", func(e *manager.LeaderElection) { e.RenewDeadline = 20 * time.Second }, "RenewDeadline is 20s and LeaseDuration 15s: the leader must stop before another replica may take over; write 10s"},
		{"negative deadline", func(e *manager.LeaderElection) { e.RenewDeadline = -1 }, "RenewDeadline is -1ns"},
		{"no second try", func(e *manager.LeaderElection) { e.RetryPeriod = 9 * time.Second }, "RetryPeriod is 9s and RenewDeadline 10s: with its jitter not even a second try fits in; write 2s"},
		{"hammering", func(e *manager.LeaderElection) { e.RetryPeriod = time.Microsecond }, "RetryPeriod is 1µs: each replica asks the server that often"},
		{"off", func(e *manager.LeaderElection) { *e = manager.LeaderElection{Off: true} }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := good
			c.change(&e)
			_, err := manager.New(manager.Options{
				Config: &rest.Config{Host: "http://127.0.0.1:1"}, LeaderElection: &e, HealthAddress: "0", MetricsAddress: "0", Logger: quiet(),
			})
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("New = %v, want %q", err, c.want)
			}
		})
	}
}

func TestLeaderElection_FlagsDecide(t *testing.T) {
	named := func() *manager.LeaderElection {
		return &manager.LeaderElection{ID: "website", Namespace: "ops", Off: true}
	}
	for _, c := range []struct {
		name string
		code *manager.LeaderElection
		args []string
		want string // "ID in Namespace"; empty: none
	}{
		{"nothing", nil, nil, ""},
		{"named by the program, off", named(), nil, ""},
		{"turned on", named(), []string{"-leader-elect"}, "website in ops"},
		{"turned on, in another namespace", named(), []string{"-leader-elect=true", "-leader-election-namespace", "dev"}, "website in dev"},
		{"another name, off", named(), []string{"-leader-election-id=other"}, ""},
		{"on by the program", &manager.LeaderElection{ID: "website", Namespace: "ops"}, nil, "website in ops"},
		{"turned off", &manager.LeaderElection{ID: "website", Namespace: "ops"}, []string{"-leader-elect=false"}, ""},
		{"all by flags", nil, []string{"-leader-elect", "-leader-election-id=x", "-leader-election-namespace=y"}, "x in y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := manager.Options{LeaderElection: c.code}
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			opts.BindFlags(fs)
			must(t, fs.Parse(c.args))
			must(t, opts.Complete())
			got := ""
			if e := opts.LeaderElection; e != nil {
				got = e.ID + " in " + e.Namespace
			}
			if got != c.want {
				t.Errorf("elects %q, want %q", got, c.want)
			}
			if c.code != nil && c.code.Namespace != "ops" {
				t.Error("what the program gave was changed")
			}
		})
	}
}

func TestConfig_CarriesTheGate_M8(t *testing.T) {
	m, err := manager.New(manager.Options{
		Config: &rest.Config{Host: "https://api.test"}, MetricsAddress: "0", HealthAddress: "0", Logger: logr.Discard(),
		LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "prod"},
	})
	must(t, err)
	for want, change := range map[error]func(*rest.Config){
		manager.ErrNotLeading: func(*rest.Config) {},
		manager.ErrGateLost:   func(cfg *rest.Config) { cfg.WrapTransport = nil },
	} {
		cfg := m.Config()
		change(cfg)
		set, err := kubernetes.NewForConfig(cfg)
		must(t, err)
		if err := set.CoreV1().Pods("prod").Delete(t.Context(), "web", metav1.DeleteOptions{}); !errors.Is(err, want) {
			t.Errorf("a write of a replica that does not lead: %v, want %v", err, want)
		}
	}
}
