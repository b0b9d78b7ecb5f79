// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	upgrade "k8s.io/apimachinery/pkg/util/proxy"
	tunnel "k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	caches "github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

func pod(namespace, name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "shop"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "shop"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, f := range edit {
		f(p)
	}
	return p
}

func lease(namespace, name, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder}}
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": "shop"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "operator", Image: "shop"}}}},
		},
	}
}

// forbids refuses lists of all namespaces.
type forbids struct{ next http.RoundTripper }

func (f forbids) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && !strings.Contains(r.URL.Path, "/namespaces/") && strings.Count(r.URL.Path, "/") > 3 || r.URL.Path == "/api/v1/pods" {
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"forbidden: all namespaces","code":403}`)
		return w.Result(), nil
	}
	return f.next.RoundTrip(r)
}

// The Pod is found by its Lease, in the forms of Flyball and controller-runtime, by its Deployment
// or by its own name; of several replicas it is the one that leads.
func TestFind_TakesThePodThatIsMeant(t *testing.T) {
	long := strings.Repeat("a", 70)
	server := simtest.New(t, nil,
		pod("shop-system", "shop-1"), pod("shop-system", "shop-2"), pod("shop-system", "other", func(p *corev1.Pod) { p.Labels = nil }),
		pod("web", "web-1", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "web", "tier": "x"} }),
		pod("web", "web-2", func(p *corev1.Pod) {
			p.Labels, p.Status.Phase = map[string]string{"app": "web", "tier": "y"}, corev1.PodFailed
		}),
		pod("long", long, func(p *corev1.Pod) { p.Labels = nil }), pod("long", "host", func(p *corev1.Pod) {
			p.Labels = nil
			p.Spec.HostNetwork, p.Spec.NodeName = true, "node-7"
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http-metrics", ContainerPort: 9090, HostPort: 9090}}
		}),
		lease("shop-system", "shop.example.com", "shop-2_abcdefghij"),
		lease("web", "web", "web-1_0d6f8e2a-6c83-4f0a-a8f5-8d1b0f6a7c11"),
		lease("long", "long", long[:63]+"_x"), lease("long", "host", "node-7_x"),
		lease("kube-node-lease", "node-7", "node-7"), lease("kube-system", "gone", "gone_x"), lease("kube-system", "kube-scheduler", "scheduler_x"),
		pod("kube-system", "scheduler", func(p *corev1.Pod) { p.Labels = nil }),
		deployment("shop-system", "shop"),
	)
	narrow := *server.Config
	narrow.Transport = forbids{server.Config.Transport}
	for _, c := range []struct {
		name, selector string
		cfg            *rest.Config
		want           string // or the error
	}{
		{"shop.example.com", "", server.Config, "Pod shop-system/shop-2, which holds the Lease shop-system/shop.example.com"},
		{"web", "", server.Config, "Pod web/web-1, which holds the Lease web/web"},
		{"long", "", server.Config, "Pod long/" + long + ", which holds the Lease long/long"},
		{"host", "", server.Config, "Pod long/host, which holds the Lease long/host"},
		{"shop", "", server.Config, "Pod shop-system/shop-2, which holds the Lease shop-system/shop.example.com"},
		{"shop-system/shop-1", "", server.Config, "Pod shop-system/shop-1"},
		{"other", "", server.Config, "Pod shop-system/other"},
		{"", "app=shop", server.Config, "Pod shop-system/shop-2, which holds the Lease shop-system/shop.example.com"},
		{"", "tier=x", server.Config, "Pod web/web-1"},
		{"", "tier=y", server.Config, "there is a Pod with the labels tier=y, but it does not run"},
		{"", "a in", server.Config, `the selector -l "a in"`},
		{"nothing", "", server.Config, "there is no Lease, Deployment or Pod with the name nothing; name the operator by --operator"},
		{"", "", server.Config, "several Pods can be meant; choose one by --operator NAMESPACE/POD:\n" +
			"NAMESPACE     POD"},
		{"", "", server.Config, "web           web-1"},
		{"shop", "", &narrow, "Pod shop-system/shop-2, which holds the Lease shop-system/shop.example.com"},
		{"", "", &narrow, "Pod shop-system/shop-2, which holds the Lease shop-system/shop.example.com"},
	} {
		f, err := newFinder(c.cfg, "shop-system")
		if err != nil {
			t.Fatal(err)
		}
		found, err := f.find(t.Context(), c.name, c.selector)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			var all []string
			for _, one := range found {
				all = append(all, one.String())
			}
			got = strings.Join(all, "; ")
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("--operator %q -l %q: %s\nwant %s", c.name, c.selector, got, c.want)
		}
	}
}

func TestPort_IsThatOfTheMetrics(t *testing.T) {
	for _, c := range []struct {
		edit func(*corev1.Container)
		want int
	}{
		{func(*corev1.Container) {}, 8080},
		{func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{Name: "health", ContainerPort: 8081}} }, 8080},
		{func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 9000}} }, 9000},
		{func(c *corev1.Container) { c.Args = []string{"--metrics-bind-address=:8443", "-v=2"} }, 8443},
		{func(c *corev1.Container) { c.Command = []string{"/operator", "-metrics-bind-address=0"} }, 8080},
	} {
		p := pod("a", "b", func(p *corev1.Pod) { c.edit(&p.Spec.Containers[0]) })
		if got := portOf(p); got != c.want {
			t.Errorf("the port of %+v is %d, want %d", p.Spec.Containers[0], got, c.want)
		}
	}
}

// kubelet forwards ports of Pods, as the requests of an API server with or without WebSocket.
type kubelet struct {
	t         *testing.T
	ports     map[string]string // by port of the Pod: an address of this machine
	websocket bool
	streams   chan string // the transport of the first connection
}

func (k *kubelet) Error(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusInternalServerError)
}

// start returns the handler of an API server for pods/portforward.
func (k *kubelet) start() http.Handler {
	node := httptest.NewServer(http.HandlerFunc(k.serve))
	k.t.Cleanup(node.Close)
	at, err := url.Parse(node.URL)
	if err != nil {
		k.t.Fatal(err)
	}
	passes := upgrade.NewUpgradeAwareHandler(at, http.DefaultTransport, false, true, k)
	tunnels := tunnel.NewTunnelingHandler(passes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !wsstream.IsWebSocketRequest(r):
			k.used("SPDY")
			passes.ServeHTTP(w, r)
		case k.websocket:
			k.used("WebSocket")
			tunnels.ServeHTTP(w, r)
		default:
			http.Error(w, "unable to upgrade", http.StatusBadRequest)
		}
	})
}

func (k *kubelet) used(transport string) {
	select {
	case k.streams <- transport:
	default:
	}
}

func (k *kubelet) serve(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return // it has answered
	}
	var mu sync.Mutex
	problems := map[string]httpstream.Stream{}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		mu.Lock()
		defer mu.Unlock()
		id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			problems[id] = s
			return nil
		}
		go k.forward(s, problems[id])
		return nil
	})
	if conn != nil {
		<-conn.CloseChan()
	}
}

func (k *kubelet) forward(data, problems httpstream.Stream) {
	defer func() { _, _ = problems.Close(), data.Close() }()
	to, err := net.Dial("tcp", k.ports[data.Headers().Get(corev1.PortHeader)])
	if err != nil {
		fmt.Fprintf(problems, "error forwarding port %s to pod: connection refused", data.Headers().Get(corev1.PortHeader))
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, data) // the other end notices
		_ = to.Close()
	}()
	_, _ = io.Copy(data, to) // the other end notices
}

// kubeconfig writes one for an API server that forwards ports by k, and is simulated otherwise.
func kubeconfig(t *testing.T, server *simtest.Server, forwards http.Handler, token string) string {
	t.Helper()
	to, err := url.Parse(server.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	simulated := &httputil.ReverseProxy{
		Transport: server.Config.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Del("Authorization") // this server lets everyone do everything
		},
	}
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/portforward") {
			forwards.ServeHTTP(w, r)
			return
		}
		simulated.ServeHTTP(w, r)
	}))
	t.Cleanup(api.Close)
	cfg := clientcmdapi.NewConfig()
	cfg.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   api.URL,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}),
	}
	cfg.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	cfg.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: "shop"}
	cfg.CurrentContext = "x"
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*cfg, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// startOperator runs a manager with a controller of ConfigMaps, which annotates them, and returns the
// address of its metrics.
func startOperator(t *testing.T, cfg *rest.Config, scheme *runtime.Scheme, as manager.Serving, election *manager.LeaderElection) string {
	t.Helper()
	mgr, err := manager.New(manager.Options{
		Config: cfg, Scheme: scheme, Logger: funcr.New(func(string, string) {}, funcr.Options{}), HealthAddress: "0", MetricsAddress: "127.0.0.1:0",
		MetricsServing: as, LeaderElection: election,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := addMarker(mgr); err != nil {
		t.Fatal(err)
	}
	return runManager(t, mgr)
}

// runManager runs a manager until the end of the test, and returns the address of its metrics.
func runManager(t *testing.T, mgr *manager.Manager) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() bool { return mgr.MetricsAddr() != "" })
	return mgr.MetricsAddr()
}

// addMarker adds a controller that marks ConfigMaps.
func addMarker(mgr *manager.Manager) error {
	f := func(ctx context.Context, obj *corev1.ConfigMap) (reconcile.Result, error) {
		if obj.Name == "bad" {
			return reconcile.Result{}, errors.New("it is bad")
		}
		if obj.Namespace != "shop" || obj.Annotations["seen"] != "" {
			return reconcile.Result{}, nil
		}
		next := obj.DeepCopy()
		next.Annotations = map[string]string{"seen": "yes"}
		return reconcile.Result{}, mgr.Client().Update(ctx, next)
	}
	return mgr.Add(reconcile.For(caches.For[*corev1.ConfigMap](mgr.Informers()), f, reconcile.Options{Name: "marker"}))
}

// eventually waits until a condition holds, or the test is over.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("it did not happen before the end of the test")
		}
	}
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"a": "b"}}
}

// A program on this machine is asked without a cluster.
func TestAddress_OfARunningOperator(t *testing.T) {
	server := simtest.New(t, nil, configMap("shop", "one"), configMap("shop", "bad"))
	at := startOperator(t, server.Config, nil, manager.Serving{}, nil)
	var out string
	eventually(t, func() bool {
		var err error
		out, _, err = commandAt(t.Context(), "why", "configmap", "one", "-n", "shop", "--address", at)
		return err == nil && strings.Contains(out, "has run twice")
	})
	for _, want := range []string{
		"shop/one of controller marker is idle. It has run twice, last ",
		"it ran because ConfigMap shop/one was in the first list.\n",
		"update ConfigMap shop/one  200 ", "  changed",
		"it ran because ConfigMap shop/one was updated",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the story is\n%s\nwant %q", out, want)
		}
	}
	for args, want := range map[string]string{
		"status":                  "controller marker: 1 of its keys fail and are retried",
		"keys --state failing":    "marker       shop/bad ",
		"keys marker --sort key":  "shop/one ",
		"why cm/bad -n shop":      `no controller has the key "cm/bad"; do you mean shop/bad?`,
		"why shop/bad":            "  The error: it is bad\n",
		"why bad -A":              "shop/bad of controller marker",
		"informers -o wide":       "ConfigMap   Live ",
		"keys marker --filter (":  "the filter is no regular expression",
		"keys marker --state odd": `the state "odd" is none of`,
	} {
		text := ""
		eventually(t, func() bool { // the first list is read, and the first reconcile has ended
			out, _, err := commandAt(t.Context(), append(strings.Fields(args), "--address", at)...)
			if now := fmt.Sprint(out, err); now != text {
				text = now
				t.Logf("%s: %s\nwant %q", args, text, want)
			}
			return strings.Contains(text, want)
		})
	}
}

// The whole way: the kubeconfig, the Lease that the operator holds, its Pod, the forwarded port,
// TLS, the guard, and the token that it wants, over WebSocket and over SPDY.
func TestCluster_GuardedOperatorIsAskedThroughItsPod(t *testing.T) {
	for _, websocket := range []bool{true, false} {
		server := simtest.New(t, nil, configMap("shop", "one"), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-system", Name: "reader"}},
			pod("shop-system", "shop-7", func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}}
			}))
		at := startOperator(t, server.Config, nil, manager.Serving{Secure: true, Guard: true},
			&manager.LeaderElection{ID: "shop.example.com", Namespace: "shop-system", Identity: "shop-7"})
		k := &kubelet{t: t, ports: map[string]string{"8443": at}, websocket: websocket, streams: make(chan string, 1)}
		forwards := k.start()
		file := kubeconfig(t, server, forwards, "")
		var out, problems string
		eventually(t, func() bool {
			var err error
			out, problems, err = commandAt(t.Context(), "why", "configmap/one", "--kubeconfig", file, "--as-service-account", "reader")
			return err == nil && strings.Contains(out, "has run twice")
		})
		if want := "Pod shop-system/shop-7, which holds the Lease shop-system/shop.example.com, port 8443\n"; problems != want {
			t.Errorf("it says %q, want %q", problems, want)
		}
		if want := map[bool]string{true: "WebSocket", false: "SPDY"}[websocket]; <-k.streams != want {
			t.Errorf("the port is not forwarded over %s", want)
		}
		for _, c := range []struct{ token, flags, want string }{
			{"", "--operator shop.example.com", "the user of the kubeconfig has none"},
			{"forged", "", "that of the kubeconfig is sent only to an operator that you name"},
			{"forged", "-l app=shop", "the API server does not accept the token"},
			{"forged", "--operator shop-7", "the API server does not accept the token"},
			{"forged", "--as-service-account shop-system/reader", "Nothing is wrong now."},
			{"", "--token forged", "the API server does not accept the token"},
			{"", "--as-service-account stranger", `"stranger" not found`},
			{"", "--port 9 --as-service-account reader", "nothing listens there"},
			{"", "--operator shop-7 --context nowhere", `"nowhere" does not exist`},
		} {
			args := append([]string{"status", "--kubeconfig", kubeconfig(t, server, forwards, c.token)}, strings.Fields(c.flags)...)
			out, _, err := commandAt(t.Context(), args...)
			if text := fmt.Sprint(out, err); !strings.Contains(text, c.want) {
				t.Errorf("token %q, %s: %s\nwant %q", c.token, c.flags, text, c.want)
			}
		}
	}
}

// Without the right to forward ports it says which is missing.
func TestForward_Forbidden(t *testing.T) {
	server := simtest.New(t, nil, pod("shop-system", "shop-7"))
	refuses := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"pods \"shop-7\" is forbidden: User \"eve\" cannot create resource \"pods/portforward\"","code":403}`)
	})
	_, _, err := commandAt(t.Context(), "status", "--kubeconfig", kubeconfig(t, server, refuses, ""), "--operator", "shop-7")
	if err == nil || !strings.Contains(err.Error(), `User "eve" cannot create resource "pods/portforward"`) || !strings.Contains(err.Error(), "the resource pods/portforward and the verbs get and create") {
		t.Errorf("%v, want the server's reason and the Role", err)
	}
}

// A controller and a key are paused, resumed and run; without the option, or the right, it says so.
func TestActions_OfARunningOperator(t *testing.T) {
	server := simtest.New(t, nil, configMap("shop", "one"))
	at := startOperator(t, server.Config, nil, manager.Serving{Actions: true}, &manager.LeaderElection{ID: "shop", Namespace: "shop", Identity: "shop-7"})
	eventually(t, func() bool {
		out, _, err := commandAt(t.Context(), "why", "shop/one", "--address", at)
		return err == nil && strings.Contains(out, "has run twice")
	})
	for _, c := range []struct{ args, want string }{
		{"pause marker one -n shop", `the key "shop/one" of the controller "marker" is paused; a reconcile in progress ends` + "\n"},
		{"pause marker shop/one", "was paused already"},
		{"run marker shop/one", "it is paused, by a user of this machine; resume it"},
		{"keys", "idle, paused"},
		{"why shop/one", "It is paused by a user of this machine, for "},
		{"resume marker shop/one -o json", `"changed": true`},
		{"run marker shop/one", `the key "shop/one" of the controller "marker" runs now`},
		{"run marker shop/nothing", `cannot run the key "shop/nothing"`},
		{"pause other", `there is no controller "other"`},
		{"pause marker", `the controller "marker" is paused`},
		{"status", "it is paused, by a user of this machine"},
		{"run marker", "lacks arguments. Give CONTROLLER NAMESPACE/NAME"},
		{"pause marker shop/one -A", "-A is not for actions"},
		{"pause marker -w", "there is no flag -w"},
	} {
		out, problems, err := commandAt(t.Context(), append(strings.Fields(c.args), "--address", at)...)
		if text := fmt.Sprint(out, problems, err); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nwant %q", c.args, text, c.want)
		}
	}
	without := startOperator(t, server.Config, nil, manager.Serving{}, nil)
	if _, _, err := commandAt(t.Context(), "pause", "marker", "--address", without); err == nil || !strings.Contains(err.Error(), "takes no actions") {
		t.Errorf("%v, want what to set", err)
	}
}
