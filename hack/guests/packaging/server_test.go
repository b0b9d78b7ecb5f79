// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package packaging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/simulate"
)

// within bounds the run time of one command.
const within = 5 * time.Minute

// server is an API server on which roles decide who may do what. It reaches webhooks at one
// address, whatever their Service.
type server struct {
	config     *rest.Config // of the administrator
	kubeconfig string       // a file with it
	path       string       // of kubectl and helm
	api        kubernetes.Interface
	webhooks   *atomic.Pointer[string]
}

// start starts a server and a loop that acts as the cluster.
func start(t *testing.T, name, helm string) *server {
	t.Helper()
	s := &server{webhooks: &atomic.Pointer[string]{}}
	binaries, err := envtest.Binaries(t.Context(), envtest.BinariesOptions{})
	must(t, err)
	s.path = filepath.Dir(helm) + string(filepath.ListSeparator) + binaries
	if name == "real" {
		s.real(t)
	} else {
		s.simulated(t)
	}
	s.config.QPS, s.config.WarningHandler = -1, rest.NoWarnings{}
	s.api, err = kubernetes.NewForConfig(s.config)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); cluster(ctx, s.api) }()
	t.Cleanup(func() { cancel(); <-done })
	if name == "real" { // it makes its own Service some seconds after it is ready
		eventually(t, "the server has its Service", func() error {
			_, err := s.api.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
			return err
		})
	}
	return s
}

func (s *server) simulated(t *testing.T) {
	t.Helper()
	l, err := simulate.Listen(simulate.ListenOptions{
		Logger: logr.Discard(),
		Options: simulate.Options{Authorization: true, DialWebhook: func(ctx context.Context, _ *url.URL) (net.Conn, error) {
			return s.dial(ctx)
		}},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	s.config, s.kubeconfig = l.Config(), filepath.Join(t.TempDir(), "kubeconfig")
	must(t, l.WriteKubeconfig(s.kubeconfig))
}

func (s *server) real(t *testing.T) {
	t.Helper()
	// The path of a socket is short.
	dir, err := os.MkdirTemp("", "packaging")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket, configuration := filepath.Join(dir, "network"), filepath.Join(dir, "egress.yaml")
	listener, err := net.Listen("unix", socket)
	must(t, err)
	network := &http.Server{Handler: http.HandlerFunc(s.connect)}
	go func() { _ = network.Serve(listener) }()
	t.Cleanup(func() { _ = network.Close() })
	must(t, os.WriteFile(configuration, fmt.Appendf(nil, `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %q}}}
`, socket), 0o600))
	env, err := envtest.Start(t.Context(), envtest.Options{APIServerArgs: map[string][]string{"egress-selector-config-file": {configuration}}})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	s.config, s.kubeconfig = env.Config(), env.Kubeconfig()
}

// dial connects to the operator's webhooks.
func (s *server) dial(ctx context.Context) (net.Conn, error) {
	at := s.webhooks.Load()
	if at == nil {
		return nil, errors.New("no operator is running")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", *at)
}

// connect forwards a connection of the real server.
func (s *server) connect(w http.ResponseWriter, r *http.Request) {
	there, err := s.dial(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	fmt.Fprint(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(there, buffered); _ = there.Close() })
	both.Go(func() { _, _ = io.Copy(here, there); _ = here.Close() })
	both.Wait()
}

// cluster sets the status of each Deployment to its desired state, as controllers and
// kubelets would.
func cluster(ctx context.Context, api kubernetes.Interface) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// The next tick retries what fails.
		deployments, _ := api.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		for _, d := range deployments.Items {
			if d.Status.ObservedGeneration == d.Generation {
				continue
			}
			n := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
				Conditions: []appsv1.DeploymentCondition{
					{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
					{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
				}}
			_, _ = api.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, &d, metav1.UpdateOptions{})
		}
	}
}

// run runs kubectl or helm as the administrator.
func (s *server) run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	program, err := lookIn(s.path, name)
	must(t, err)
	cmd := exec.CommandContext(ctx, program, args...)
	home := filepath.Dir(s.kubeconfig)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "KUBECACHEDIR="+home, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (s *server) must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := s.run(t, name, args...)
	must(t, err)
	return out
}

func lookIn(path, name string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if file := filepath.Join(dir, name); exec.Command(file).Path == file {
			if _, err := os.Stat(file); err == nil {
				return file, nil
			}
		}
	}
	return "", fmt.Errorf("there is no %s in %s", name, path)
}

// account writes a kubeconfig with a token of a ServiceAccount, and nothing else.
func (s *server) account(t *testing.T, namespace, name string) string {
	t.Helper()
	given, err := s.api.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, newTokenRequest(), metav1.CreateOptions{})
	must(t, err)
	authority := s.config.CAData
	if len(authority) == 0 {
		authority, err = os.ReadFile(s.config.CAFile)
		must(t, err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: s.config.Host, CertificateAuthorityData: authority, TLSServerName: s.config.ServerName}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: given.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: namespace}},
		CurrentContext: "x",
	}, file))
	return file
}

// objects returns the names of all objects that can be listed.
func (s *server) objects(t *testing.T) map[string]bool {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(s.config)
	must(t, err)
	dyn, err := dynamic.NewForConfig(s.config)
	must(t, err)
	lists, err := d.ServerPreferredResources()
	must(t, err)
	all := map[string]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		must(t, err)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Name == "events" || gv.Group == "metrics.k8s.io" {
				continue
			}
			found, err := dyn.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				continue // not a collection of objects, such as componentstatuses
			}
			for _, o := range found.Items {
				all[strings.TrimPrefix(r.Kind+" "+o.GetNamespace()+"/"+o.GetName(), "/")] = true
			}
		}
	}
	return all
}

// left returns what is there, and was not before.
func (s *server) left(t *testing.T, before map[string]bool) (out []string) {
	t.Helper()
	for name := range s.objects(t) {
		if !before[name] {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// removeNamespace deletes a namespace, and acts as its controller.
func (s *server) removeNamespace(t *testing.T, name string) {
	t.Helper()
	namespaces := s.api.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		t.Fatal(err)
	}
	found, err := namespaces.Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return
	}
	must(t, err)
	found.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(t.Context(), found, metav1.UpdateOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() error {
		if _, err := namespaces.Get(t.Context(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("namespace %s: %v", name, err)
		}
		return nil
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls every 50ms, for at most a minute.
func eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s: %v", what, err)
		}
	}
}

// lines collects what a process prints.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
