// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/chromedp/chromedp"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/simulate/embedded"
)

var (
	websites    = schema.GroupVersionResource{Group: "example.flyball.dev", Version: "v1", Resource: "websites"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// site is the example beside a simulated server with faults.
type site struct {
	t       *testing.T
	cluster embedded.Cluster
	client  dynamic.Interface
	program string // its file
	address string // of its metrics
	process *exec.Cmd
	log     *logText
}

type logText struct {
	mu struct {
		sync.Mutex
		bytes.Buffer
	}
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.String()
}

// atSite calls test with the example's program and a cluster for it.
func atSite(t *testing.T, test func(s *site)) {
	t.Helper()
	s := &site{t: t, log: new(logText), program: filepath.Join(t.TempDir(), "website")}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", s.program, "./examples/website")
	build.Dir = "../../.."
	build.Env = append(os.Environ(), "GOWORK=") // the workspace, which this module is not in
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v: %s", err, out)
	}
	text, err := os.ReadFile("../../../examples/website/config/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds, err := envtest.ParseCRDs(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = free.Addr().String()
	_ = free.Close()
	err = embedded.Run(t.Context(), embedded.Options{CRDs: crds}, func(_ context.Context, c embedded.Cluster) error {
		s.cluster = c
		if s.client, err = dynamic.NewForConfig(c.Config); err != nil {
			return err
		}
		defer s.stop()
		test(s)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if t.Failed() {
		t.Logf("the example's log ends with\n%s", last(s.log.String(), 20))
	}
}

func last(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// start starts the example.
func (s *site) start(args ...string) {
	s.t.Helper()
	s.process = exec.Command(s.program, append([]string{
		"-kubeconfig", s.cluster.Kubeconfig, "-metrics-bind-address", s.address, "-health-probe-bind-address", "0",
	}, args...)...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
}

// stop ends it, without a chance to say so.
func (s *site) stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Signal(syscall.SIGKILL)
	_ = s.process.Wait()
	s.process = nil
}

// put creates a Website.
func (s *site) put(name string, spec map[string]any) {
	s.t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": websites.GroupVersion().String(), "kind": "Website",
		"metadata": map[string]any{"namespace": "default", "name": name}, "spec": spec,
	}}
	if _, err := s.client.Resource(websites).Namespace("default").Create(s.t.Context(), object, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// spoil makes the faults: a key that fails each time, an object that cannot be decoded, and a
// Deployment that another client changes back each time, until stop.
func (s *site) spoil() (stop func()) {
	s.t.Helper()
	taken := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "default", "name": "stuck", "ownerReferences": []any{map[string]any{
			"apiVersion": "example.org/v1", "kind": "Other", "name": "stuck", "uid": "a-uid", "controller": true,
		}}},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "other"}}, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "other"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
		}},
	}}
	if _, err := s.cluster.Server.Put(taken); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"sample", "stuck", "fought", "spoilt"} {
		s.put(name, map[string]any{"content": "<h1>" + name + "</h1>", "replicas": int64(2)})
	}
	if err := s.cluster.Server.Corrupt(websites.GroupResource(), types.NamespacedName{Namespace: "default", Name: "spoilt"}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var fight sync.WaitGroup
	fight.Go(func() {
		for replicas := 5; ctx.Err() == nil; replicas = 11 - replicas {
			patch := fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas)
			_, _ = s.client.Resource(deployments).Namespace("default").Patch(ctx, "fought", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "autoscaler"})
			select {
			case <-ctx.Done():
			case <-time.After(700 * time.Millisecond):
			}
		}
	})
	return func() {
		cancel()
		fight.Wait()
	}
}

// Each page of the console shows what is wrong, is accessible in each form, and needs no other host.
func TestBrowser_EachPage(t *testing.T) {
	browser := chromium(t)
	atSite(t, func(s *site) {
		s.start()
		defer s.spoil()()
		first := open(t, browser, forms[0])
		first.await("open the console", s.goTo(first, ""))
		for _, text := range []string{"Wrong now", "default/fought", "of its keys fail", "undecodable"} {
			first.awaitText(text)
		}
		first.close()
		for _, f := range forms {
			t.Run(f.name, func(t *testing.T) {
				for _, p := range pages {
					tab := open(t, browser, f)
					tab.await(p.name, s.goTo(tab, p.path))
					tab.awaitText(p.text)
					tab.shoot(p.name + "-" + f.name)
					tab.fits(p.name)
					tab.accessible(p.name)
					tab.clean(p.name, s.address, p.reports...)
					tab.close()
				}
			})
		}
	})
}

// pages are those of the console, each with a text and with what the browser reports.
var pages = []struct {
	name, path, text string
	reports          []string
}{
	{"overview", "", "From event to write", nil},
	{"informers", "informers", "undecodable", nil},
	{"keys", "controllers/website", "default/sample", nil},
	{"failing", "controllers/website?state=failing", "default/stuck", nil},
	{"refused", "controllers/website?filter=%28", "no regular expression", []string{"status of 400"}},
	{"missing", "controllers/website/key?key=default%2Fgone", "no recorded run", []string{"status of 404"}},
	{"key", "controllers/website/key?key=default%2Fsample", "kind: Website", nil},
	{"fought", "controllers/website/key?key=default%2Ffought", "fight", nil},
	{"stuck", "controllers/website/key?key=default%2Fstuck", "in a row", nil},
	{"search", "search?q=sample", "default/sample", nil},
	{"nothing", "search?q=nothing-has-this", "no such key", nil},
}

// goTo opens a page, and returns an expression that is true once it is.
func (s *site) goTo(b *tab, page string) string {
	b.t.Helper()
	address := "http://" + s.address + console.Path + page
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		connection, err := net.Dial("tcp", s.address)
		if err == nil {
			_ = connection.Close()
			break
		}
		if time.Now().After(end) {
			b.t.Fatalf("the example does not serve its metrics: %v\n%s", err, last(s.log.String(), 20))
		}
	}
	do(b, "open "+address, chromedp.Navigate(address))
	return `document.readyState === "complete" && !!document.querySelector("main")`
}

// An open page says when the operator has gone, and comes back by itself.
func TestBrowser_TheOperatorEndsAndReturns(t *testing.T) {
	browser := chromium(t)
	atSite(t, func(s *site) {
		s.lease("another-one")
		elects := []string{"-leader-elect", "-leader-election-namespace", "default"}
		s.start(elects...)
		tab := open(t, browser, forms[0])
		tab.await("open the console", s.goTo(tab, ""))
		tab.awaitText("which another-one holds")
		tab.shoot("standby-" + forms[0].name)
		tab.accessible("a standby")
		tab.clean("a standby", s.address)

		s.lease("")
		tab.awaitText("· leads")
		s.put("sample", map[string]any{"content": "<h1>sample</h1>"})
		tab.awaitText("default/sample")

		s.lease("another-one") // its process ends: exit status 1, ErrLeadershipLost
		if err := s.process.Wait(); err == nil || !strings.Contains(s.log.String(), "lease") {
			t.Errorf("after the loss of its Lease the example ended with %v, want an error that says so", err)
		}
		s.process = nil
		tab.awaitText("No answer from the operator since")
		tab.shoot("lost-" + forms[0].name)
		tab.accessible("a lost operator")
		const shown = `document.getElementById("lost").hidden === false`
		tab.await("the page says so", shown)

		s.start(elects...)
		tab.await("the page follows again", "!("+shown+")")
		tab.awaitText("which another-one holds")
		tab.clean("the page afterwards", s.address, "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
	})
}

// lease makes a process the holder of the example's Lease; empty: nobody.
func (s *site) lease(holder string) {
	s.t.Helper()
	now := metav1.NowMicro()
	seconds := int32(3600)
	if holder == "" {
		seconds = 1
	}
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "website.example.flyball.dev"}}
	object.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}
	if _, err := s.cluster.Server.Put(object); err != nil {
		s.t.Fatal(err)
	}
}
