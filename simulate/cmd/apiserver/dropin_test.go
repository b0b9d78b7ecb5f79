// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/localserver"
)

// installed installs this program, the binary of the tests.
func installed(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "assets")
	out := &buffer{}
	for range 2 { // over an earlier one
		if err := run(t.Context(), "apiserver", []string{"install", dir}, out, out); err != nil {
			t.Fatal(err)
		}
	}
	if out.String() != dir+"\n"+dir+"\n" {
		t.Errorf("install prints %q, want the directory", out)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), exeSuffix))
	}
	if !slices.Equal(names, []string{etcdName, kubeAPIServerName}) {
		t.Errorf("install writes %q, want the two binaries alone", names)
	}
	return dir
}

// Flyball's own envtest, with processes: CRDs, users, a kill, a restart.
func TestDropIn_FlyballsEnvtest(t *testing.T) {
	env, err := envtest.Start(t.Context(), envtest.Options{Assets: installed(t), CRDs: []string{write(t, "crd.yaml", boxCRD)}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	admin := kubernetes.NewForConfigOrDie(env.Config())
	maps := admin.CoreV1().ConfigMaps("default")
	kept, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	user, err := env.User("jane", "readers")
	if err != nil {
		t.Fatal(err)
	}
	jane := kubernetes.NewForConfigOrDie(user)
	if who, err := jane.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{}); err != nil ||
		who.Status.UserInfo.Username != "jane" || !slices.Contains(who.Status.UserInfo.Groups, "readers") {
		t.Errorf("the certificate's user is %v, %v, want jane, of the readers", who, err)
	}
	if _, err := jane.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v, want Forbidden", err)
	}
	robot, err := env.TokenUser(t.Context(), "default", "robot")
	if err != nil {
		t.Fatal(err)
	}
	// No controller removes a namespace, as with a kube-apiserver alone.
	spaces := admin.CoreV1().Namespaces()
	if _, err := spaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "stays"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := spaces.Delete(t.Context(), "stays", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	if err := env.KillAPIServer(); err != nil {
		t.Fatal(err)
	}
	if err := env.Compact(t.Context()); err != nil {
		t.Error(err)
	}
	if err := env.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := maps.Get(t.Context(), "kept", metav1.GetOptions{}); err != nil || got.UID != kept.UID || got.ResourceVersion != kept.ResourceVersion {
		t.Errorf("after a kill it is %v, %v, want %v", got, err, kept)
	}
	boxes := dynamic.NewForConfigOrDie(env.Config()).Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boxes"})
	if _, err := boxes.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("after a kill, the kind of the CRD: %v", err)
	}
	if got, err := spaces.Get(t.Context(), "stays", metav1.GetOptions{}); err != nil || got.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("the deleted namespace is %v, %v, want it Terminating", got, err)
	}
	if _, err := kubernetes.NewForConfigOrDie(robot).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("with a token from before the kill: %v, want Forbidden, as its user is known", err)
	}
}

// envtest runs --help and searches it for flags.
func TestDropIn_HelpAndVersion(t *testing.T) {
	dir := installed(t)
	for name, want := range map[string][]string{etcdName: {"unsafe-no-fsync", "data-dir"}, kubeAPIServerName: {"client-ca-file", "secure-port"}} {
		text, err := exec.CommandContext(t.Context(), filepath.Join(dir, name+exeSuffix), "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("%s --help: %v\n%s", name, err, text)
		}
		for _, flag := range want {
			if !regexp.MustCompile(`(?m)^\s*--` + flag + `\b`).Match(text) {
				t.Errorf("%s --help does not list --%s:\n%s", name, flag, text)
			}
		}
		if bytes.Contains(text, []byte("insecure-port")) {
			t.Errorf("%s --help lists insecure-port, so envtest would use it", name)
		}
		if text, err = exec.CommandContext(t.Context(), filepath.Join(dir, name+exeSuffix), "--version").CombinedOutput(); err != nil || !bytes.Contains(text, []byte("simulated")) {
			t.Errorf("%s --version: %v, %s", name, err, text)
		}
	}
}

// serving runs etcd or kube-apiserver in this process until the test ends, and returns when
// one of its URLs answers.
func serving(t *testing.T, name, url string, args ...string) (log *buffer) {
	t.Helper()
	log = &buffer{}
	ctx, cancel := context.WithCancel(context.Background())
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = run(ctx, name, args, log, log)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	})
	for {
		answer, failed := untrusting().Get(url)
		if failed == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return log
			}
		}
		select {
		case <-done:
			t.Fatalf("%s %q ended with %v\n%s", name, args, err, log)
		default:
		}
	}
}

func TestDropIn_FlagsOfAKubeAPIServer(t *testing.T) {
	stored, api := address(t), address(t)
	certs := filepath.Join(t.TempDir(), "certs")
	key := filepath.Join(write(t, "key", "a key"), "key")
	tokens := filepath.Join(write(t, "tokens", "secret,jane,7,\"readers,system:masters\"\n"), "tokens")
	_, port, _ := net.SplitHostPort(api)
	log := serving(t, etcdName, "http://"+stored+"/health", "--listen-client-urls=http://"+stored, "--data-dir", t.TempDir(), "--unsafe-no-fsync", "--log-level=warn")
	if !strings.Contains(log.String(), "without an effect on the simulated etcd: --log-level") {
		t.Errorf("etcd says %q, want the flag that it does not use", log)
	}
	log = serving(t, kubeAPIServerName, "https://"+api+"/readyz", "--etcd-servers=http://"+stored, "--cert-dir="+certs, "--secure-port="+port,
		"--authorization-mode=Node,RBAC", "--service-account-issuer=https://issuer.example", "--service-account-key-file="+key, "--token-auth-file="+tokens,
		"--allow-privileged", "--feature-gates", "A=true,B=false", "-v=2")
	if !strings.Contains(log.String(), "without an effect on the simulated kube-apiserver: --allow-privileged --feature-gates --v\n") {
		t.Errorf("kube-apiserver says %q, want the flags that it does not use", log)
	}
	ask := func(token, method, path, body string, code int) string {
		t.Helper()
		r := &running{config: envtestConfig(api), client: trusting(t, filepath.Join(certs, "apiserver.crt"), token)}
		return r.ask(t, method, path, body, code)
	}
	ask("", "GET", configMaps, "", 403) // anonymous
	ask("wrong", "GET", configMaps, "", 401)
	ask("secret", "POST", "/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`, 201)
	var given authenticationv1.TokenRequest
	decode(t, ask("secret", "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest"}`, 201), &given)
	if !slices.Equal(given.Spec.Audiences, []string{"https://issuer.example"}) {
		t.Errorf("the token is for %q, want the issuer of the flag", given.Spec.Audiences)
	}
	ask(given.Status.Token, "GET", configMaps, "", 403)
	for _, space := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		ask("secret", "GET", "/api/v1/namespaces/"+space, "", 200)
	}
	ask("secret", "GET", "/api/v1/namespaces/default/services/kubernetes", "", 200)
	ask("secret", "GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin", "", 200)
}

// A suite that panics leaves no server.
func TestDropIn_EndsWithItsParent(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	endWithParent(ctx, end, os.Getppid()+1)
	<-ctx.Done()
	if t.Context().Err() != nil {
		t.Error("the stand-in goes on although its parent is another one")
	}
}

func TestDropIn_ErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	foreign := httptest.NewServer(http.NotFoundHandler())
	defer foreign.Close()
	file := filepath.Join(write(t, "file", "text,\n"), "file")
	certs := "--cert-dir=" + t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{etcdName, []string{"--listen-client-urls=http://127.0.0.1:" + port, "--data-dir=" + t.TempDir()}, "address already in use"}, // envtest searches for it
		{etcdName, []string{"--listen-client-urls=nowhere", "--data-dir=" + t.TempDir()}, "write a URL"},
		{etcdName, []string{"--data-dir=" + file}, "name a directory that you can write to"},
		{etcdName, []string{"more"}, `"more" is none`},
		{kubeAPIServerName, []string{certs, "--secure-port=" + port}, "address already in use"},
		{kubeAPIServerName, []string{certs, "--etcd-servers=" + foreign.URL}, "is not the etcd that is installed beside"},
		{kubeAPIServerName, []string{"--cert-dir=" + file}, "--cert-dir"},
		{kubeAPIServerName, []string{certs, "--client-ca-file=" + file}, "no certificate in PEM"},
		{kubeAPIServerName, []string{certs, "--token-auth-file=" + file}, "write token,user,uid"},
		{kubeAPIServerName, []string{certs, "--service-account-key-file=" + file + "s"}, "read the key of ServiceAccounts"},
		{kubeAPIServerName, []string{"--tls-cert-file=" + file, "--tls-private-key-file=" + file}, "read the certificate"},
	} {
		log := &buffer{}
		if err := run(t.Context(), c.name, c.args, log, log); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want an error that says %q", c.name, c.args, err, c.want)
		}
	}
}

func TestDropIn_EtcdSaysWhereObjectsAre(t *testing.T) {
	stored, dir := address(t), t.TempDir()
	serving(t, etcdName, "http://"+stored+"/health", "--listen-client-urls=http://"+stored, "--data-dir="+dir, "--unsafe-no-fsync=true")
	answer, err := http.Get("http://" + stored + storagePath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	var kept storage
	if err := json.NewDecoder(answer.Body).Decode(&kept); err != nil || kept != (storage{dir, true}) {
		t.Errorf("objects are in %+v, %v, want %s, unsynced", kept, err, dir)
	}
}

// address is one that is free.
func address(t *testing.T) string {
	t.Helper()
	a, err := localserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return a
}
