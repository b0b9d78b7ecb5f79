// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/flowcontrol"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// elected returns options of a manager with leader election.
func elected() ctrl.Options {
	return ctrl.Options{
		Metrics:        server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "website", LeaderElectionNamespace: "default",
	}
}

func TestFence_WritesPassOnlyWhileTheProcessLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil, configMap("default", "read", nil))
		fenced, opts, err := Fence(simulated.Config, Options(elected()))
		if err != nil {
			t.Fatal(err)
		}
		mgr, err := ctrl.NewManager(fenced, opts)
		if err != nil {
			t.Fatal(err)
		}
		other, err := kubernetes.NewForConfig(rest.CopyConfig(mgr.GetConfig()))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		write := func() []error {
			n++
			err := mgr.GetClient().Create(t.Context(), configMap("default", "by-the-manager-"+string(rune('a'+n)), nil))
			_, err2 := other.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("default", "by-another-"+string(rune('a'+n)), nil), metav1.CreateOptions{})
			return []error{err, err2}
		}
		for _, err := range write() {
			if !errors.Is(err, reconcile.ErrNotLeading) {
				t.Errorf("a write before the election: %v, want reconcile.ErrNotLeading", err)
			}
		}
		if _, err := other.CoreV1().ConfigMaps("default").Get(t.Context(), "read", metav1.GetOptions{}); err != nil {
			t.Errorf("a read before the election: %v", err)
		}
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(t.Context()) }()
		<-mgr.Elected()
		time.Sleep(time.Minute) // renewals
		if err := errors.Join(write()...); err != nil {
			t.Errorf("a write of the leader: %v", err)
		}
		if err := simulated.Change(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"},
			types.NamespacedName{Namespace: "default", Name: "website"}, func(obj metav1.Object) {
				_ = unstructured.SetNestedField(obj.(*unstructured.Unstructured).Object, "thief", "spec", "holderIdentity")
			}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second) // beyond RetryPeriod
		for _, err := range write() {
			if !errors.Is(err, reconcile.ErrNotLeading) || !strings.Contains(err.Error(), "thief") {
				t.Errorf("a write after the lease was taken: %v, want who has it", err)
			}
		}
		if err := <-ended; err == nil {
			t.Error("the manager ended without an error, want that the election is lost")
		}
	})
}

// A rate limit that the controllers exhaust delays their writes, and no renewal.
func TestLeaderElection_RenewalsHaveNoRateLimit_M3(t *testing.T) {
	for name, prepare := range map[string]func(*rest.Config) (*rest.Config, ctrl.Options, error){
		"fenced": func(cfg *rest.Config) (*rest.Config, ctrl.Options, error) { return Fence(cfg, Options(elected())) },
		"not fenced": func(cfg *rest.Config) (*rest.Config, ctrl.Options, error) { // without the Events that controller-runtime leaves running
			opts := elected()
			opts.LeaderElectionConfig = LeaderElection(cfg)
			lock, err := lockOf(cfg, opts)
			opts.LeaderElectionResourceLockInterface = lock
			return cfg, Options(opts), err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			simulated := simtest.New(t, nil, configMap("default", "a", nil))
			cfg := rest.CopyConfig(simulated.Config)
			cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(0.1, 1)
			cfg, opts, err := prepare(cfg)
			if err != nil {
				t.Fatal(err)
			}
			mgr, err := ctrl.NewManager(cfg, opts)
			if err != nil {
				t.Fatal(err)
			}
			written := 0
			if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				for ctx.Err() == nil {
					if mgr.GetClient().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "b-"}}) == nil {
						written++
					}
				}
				return nil
			})); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Start(ctx) }()
			time.Sleep(5 * time.Minute)
			select {
			case err := <-ended:
				t.Fatalf("%s: the manager has ended with %v, want that it leads", name, err)
			default:
			}
			renewals := 0
			for _, r := range simulated.Served() {
				if r.Verb == "update" && strings.Contains(r.Path, "/leases/") {
					renewals++
				}
			}
			if renewals < 140 {
				t.Errorf("%s: %d renewals in five minutes, want every two seconds", name, renewals)
			}
			stop()
			<-ended
			if written == 0 || written > 40 {
				t.Errorf("%s: %d writes in five minutes, want one in ten seconds", name, written)
			}
		})
	}
}

// Requests for the lease have connections of their own, which do not outlive a hung request.
func TestLeaderElection_ConnectionIsItsOwn(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Proto+" from "+r.RemoteAddr)
		_, _ = w.Write([]byte("{}"))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	cfg := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	for _, c := range []*rest.Config{cfg, cfg, LeaderElection(cfg)} {
		cl, err := rest.HTTPClientFor(c)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := cl.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) != 3 || seen[0] != seen[1] || !strings.HasPrefix(seen[0], "HTTP/2") || !strings.HasPrefix(seen[2], "HTTP/1.1") {
		t.Errorf("the requests were %q, want two on one connection of HTTP/2, and that for the lease on another by HTTP/1.1", seen)
	}
	if LeaderElection(nil) != nil {
		t.Error("a nil configuration becomes another")
	}
}

func TestFence_WithoutLeaderElectionThereIsNone(t *testing.T) {
	cfg := &rest.Config{Host: "http://localhost"}
	fenced, opts, err := Fence(cfg, ctrl.Options{LeaderElectionID: "website"})
	if err != nil || fenced != cfg || opts.LeaderElectionResourceLockInterface != nil {
		t.Errorf("Fence = %v, %v, %v, want its arguments", fenced, opts, err)
	}
}

func TestFence_MisuseIsAnError(t *testing.T) {
	if _, _, err := Fence(nil, elected()); err == nil {
		t.Error("a nil configuration is no error")
	}
	opts := elected()
	opts.LeaderElectionID = ""
	if _, _, err := Fence(&rest.Config{Host: "http://localhost"}, opts); err == nil || !strings.Contains(err.Error(), "LeaderElectionID") {
		t.Errorf("an election without an ID: %v, want the field", err)
	}
}

// What a program can give besides the configuration is fenced, or not fenced, too.
func TestFence_OwnHTTPClientIsFencedAndMetricsAreNot(t *testing.T) {
	simulated := simtest.New(t, nil)
	opts := elected()
	opts.Client = client.Options{HTTPClient: &http.Client{Transport: simulated.Config.Transport}}
	var given *rest.Config
	opts.Metrics.FilterProvider = func(cfg *rest.Config, _ *http.Client) (server.Filter, error) { given = cfg; return nil, nil }
	fenced, opts, err := Fence(simulated.Config, opts)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := client.New(fenced, opts.Client)
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.Create(t.Context(), configMap("default", "a", nil)); !errors.Is(err, reconcile.ErrNotLeading) {
		t.Errorf("a write through an HTTP client of the program: %v, want it refused", err)
	}
	if _, err := opts.Metrics.FilterProvider(fenced, nil); err != nil || given != simulated.Config {
		t.Errorf("the filter of the metrics is given %v with %v, want the configuration without the fence", given, err)
	}
}

// scripted is a lock whose writes take some time, or fail.
type scripted struct {
	resourcelock.Interface
	holder string
	takes  time.Duration
	fails  error
	wrote  []string
}

func (s *scripted) Identity() string { return "me" }

func (s *scripted) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: s.holder}, nil, nil
}

func (s *scripted) Update(_ context.Context, next resourcelock.LeaderElectionRecord) error {
	time.Sleep(s.takes)
	s.wrote = append(s.wrote, next.HolderIdentity)
	return s.fails
}

func TestLock_TermCountsFromTheSendingOfARenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &scripted{holder: "me", takes: 4 * time.Second}
		l := &lock{Interface: inner, gate: writegate.New(9 * time.Second), lease: 10 * time.Second}
		mine, free := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
		left := func() time.Duration { left, _ := l.gate.Ask(); return left }
		if err := l.Update(t.Context(), mine); err != nil || left() != 5*time.Second {
			t.Errorf("a renewal that took 4s leaves %v of 9s, with %v, want 5s", left(), err)
		}
		inner.fails = errors.New("reset")
		if err := l.Update(t.Context(), mine); err == nil || left() != time.Second {
			t.Errorf("a failed renewal leaves %v, with %v, want what the earlier one leaves: 1s", left(), err)
		}
		inner.fails = nil
		_ = l.Update(t.Context(), mine)
		if _, _, err := l.Get(t.Context()); err != nil || left() == 0 {
			t.Errorf("to read the own lease shuts the gate, with %v", err)
		}
		inner.holder = "other"
		if _, _, err := l.Get(t.Context()); err != nil || left() != 0 {
			t.Errorf("the lease of another leaves %v, with %v", left(), err)
		}
		inner.holder = "me"
		_ = l.Update(t.Context(), mine)
		if err := l.Update(t.Context(), free); err != nil || left() != 0 || inner.wrote[len(inner.wrote)-1] != "" {
			t.Errorf("a release leaves %v, with %v, and writes %q", left(), err, inner.wrote)
		}
	})
}

// hanging is a server that never answers.
type hanging struct{ reached chan struct{} }

func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	close(h.reached)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestLock_LeaseIsKeptWhileAWriteMayArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &scripted{holder: "me"}
		l := &lock{Interface: inner, gate: writegate.New(9 * time.Second), lease: 10 * time.Second}
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}); err != nil {
			t.Fatal(err)
		}
		server := hanging{make(chan struct{})}
		cut := make(chan error, 1)
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, "http://server/api/v1/namespaces/a", nil)
			resp, err := l.gate.Wrap(server).RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			cut <- err
		}()
		<-server.reached
		if err := l.Update(t.Context(), resourcelock.LeaderElectionRecord{}); err == nil || len(inner.wrote) != 1 {
			t.Errorf("the release with a write under way: %v, wrote %q; want the lease kept", err, inner.wrote)
		}
		if err := <-cut; !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("the write under way ended with %v, want it cut off", err)
		}
	})
}

// A leader that stops releases the lease, and the next one writes at once, while the first no longer can.
func TestFence_NextLeaderTakesOverAReleasedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		simulated := simtest.New(t, nil)
		var managers []ctrl.Manager
		var stops []context.CancelFunc
		ended := make(chan error, 2)
		for range 2 {
			opts := elected()
			opts.LeaderElectionReleaseOnCancel = true
			fenced, opts, err := Fence(simulated.Config, Options(opts))
			if err != nil {
				t.Fatal(err)
			}
			mgr, err := ctrl.NewManager(fenced, opts)
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			go func() { ended <- mgr.Start(ctx) }()
			managers, stops = append(managers, mgr), append(stops, stop)
			<-managers[0].Elected()
		}
		write := func(i int, name string) error {
			return managers[i].GetClient().Create(t.Context(), configMap("default", name, nil))
		}
		if err := write(0, "first"); err != nil {
			t.Errorf("a write of the leader: %v", err)
		}
		if err := write(1, "standby"); !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("a write of the standby: %v, want reconcile.ErrNotLeading", err)
		}
		stops[0]()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		stopped := time.Now()
		<-managers[1].Elected()
		if took := time.Since(stopped); took > 5*time.Second {
			t.Errorf("the next leader took over after %v, want that the lease was released", took)
		}
		if err := write(1, "second"); err != nil {
			t.Errorf("a write of the next leader: %v", err)
		}
		if err := write(0, "late"); !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("a write of the leader that has stopped: %v, want reconcile.ErrNotLeading", err)
		}
		stops[1]()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
