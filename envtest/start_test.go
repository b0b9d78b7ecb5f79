// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/flyball-dev/flyball/envtest"
)

var _ = Describe("what Start returns", func() {
	It("takes writes, serves the CRDs it was given and lists them in discovery (E1)", func(ctx context.Context) {
		objects := []runtime.Object{newCRD("pistons"), newCRD("wheels"), newCRD("belts")}
		env := start(ctx, envtest.Options{CRDs: []string{"testdata"}, CRDObjects: objects})
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "first"}}
		_, err := clientset(env.Config()).CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred(), "the namespace default is there, and writes are let in")
		groups, err := restmapper.GetAPIGroupResources(clientset(env.Config()).Discovery())
		Expect(err).NotTo(HaveOccurred())
		mapper := restmapper.NewDiscoveryRESTMapper(groups)
		client := dynamicClient(env.Config())
		for _, name := range []string{"governors", "valves", "pistons", "wheels", "belts"} {
			resource := governors.GroupResource()
			resource.Resource = name
			_, err := mapper.ResourceFor(resource.WithVersion("v1"))
			Expect(err).NotTo(HaveOccurred())
			_, err = client.Resource(resource.WithVersion("v1")).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = client.Resource(governors).Namespace("default").Create(ctx, governor("fast", -1), metav1.CreateOptions{})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "the schema is applied: %v", err)
	}, NodeTimeout(5*time.Minute))

	It("takes flags", func(ctx context.Context) {
		env := start(ctx, envtest.Options{
			APIServerArgs: map[string][]string{"profiling": {"true"}, "authorization-mode": {"AlwaysAllow"}},
			EtcdArgs:      map[string][]string{"log-level": {"info"}},
		})
		nobody, err := env.User("nobody")
		Expect(err).NotTo(HaveOccurred())
		_, err = clientset(nobody).CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred(), "the flag replaced RBAC")
		Expect(clientset(nobody).Discovery().RESTClient().Get().AbsPath("/debug/pprof/").Do(ctx).Error()).NotTo(HaveOccurred())
	}, NodeTimeout(5*time.Minute))

	It("is an environment of its own: the caller's copy of Config changes nothing", func() {
		shared.Config().Host = "elsewhere"
		Expect(shared.Config().Host).To(HavePrefix("https://127.0.0.1:"))
	})
})

var _ = Describe("CRDs", func() {
	It("serve when the call that installs them returns (E1)", func(ctx context.Context) {
		client := dynamicClient(shared.Config())
		for i := range 10 {
			resource := governors
			resource.Resource = fmt.Sprintf("cranks%d", i)
			Expect(shared.InstallCRDObjects(ctx, newCRD(resource.Resource))).To(Succeed())
			_, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}, NodeTimeout(time.Minute))

	It("can be installed later and again", func(ctx context.Context) {
		Expect(shared.InstallCRDObjects(ctx, newCRD("levers"))).To(Succeed())
		Expect(shared.InstallCRDObjects(ctx, newCRD("levers"))).To(Succeed())
		Expect(shared.InstallCRDs(ctx, "testdata/crds.yaml")).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("call their conversion here, also if kubectl has named a Service", func(ctx context.Context) {
		crd := newCRD("winches").(*unstructured.Unstructured)
		Expect(unstructured.SetNestedMap(crd.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"service": map[string]any{"namespace": "default", "name": "winches", "path": "/convert"}},
		}}, "spec", "conversion")).To(Succeed())
		text, err := json.Marshal(crd)
		Expect(err).NotTo(HaveOccurred())
		file := filepath.Join(GinkgoT().TempDir(), "crd.json")
		Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
		out, err := shared.Kubectl(ctx, "apply", "--server-side", "-f", file)
		Expect(err).NotTo(HaveOccurred(), string(out))
		for range 2 {
			Expect(shared.InstallCRDs(ctx, file)).To(Succeed())
		}
		out, err = shared.Kubectl(ctx, "get", "crd", crd.GetName(), "-o", "jsonpath={.spec.conversion.webhook.clientConfig.service}{.spec.conversion.webhook.clientConfig.url}")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("https://" + shared.Webhooks().Address() + "/convert"))
	}, NodeTimeout(time.Minute))

	It("say which one is refused, and why", func(ctx context.Context) {
		wrong := newCRD("gears").(*unstructured.Unstructured)
		wrong.SetName("cogs.envtest.flyball.dev")
		Expect(shared.InstallCRDObjects(ctx, wrong)).To(MatchError(And(
			ContainSubstring(`install the CRD "cogs.envtest.flyball.dev"`), ContainSubstring("must be spec.names.plural"))))

		thief := newCRD("thieves").(*unstructured.Unstructured)
		Expect(unstructured.SetNestedField(thief.Object, "Governor", "spec", "names", "kind")).To(Succeed())
		Expect(shared.InstallCRDObjects(ctx, thief)).To(MatchError(And(
			ContainSubstring("its names are refused"), ContainSubstring("Governor"))))
	}, NodeTimeout(time.Minute))
})

var _ = Describe("the end", func() {
	It("leaves no process, no file and no goroutine (E3)", func(ctx context.Context) {
		parent := GinkgoT().TempDir()
		before := gleak.Goroutines()
		env, err := envtest.Start(ctx, envtest.Options{Dir: parent, CRDs: []string{"testdata"}})
		Expect(err).NotTo(HaveOccurred())
		_, err = env.TokenUser(ctx, "default", "someone")
		Expect(err).NotTo(HaveOccurred())
		pids := env.Pids()
		Expect(pids).To(HaveLen(3), "etcd, kube-apiserver and the guard")
		Expect(pids).To(HaveEach(WithTransform(alive, BeTrue())))

		Expect(env.Stop()).To(Succeed())
		Expect(pids).To(HaveEach(WithTransform(alive, BeFalse())), "Stop returns when the processes are gone")
		Expect(os.ReadDir(parent)).To(BeEmpty())
		Expect(refuses(env)).To(BeTrue())
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))

		Expect(env.Stop()).To(Succeed(), "a second Stop does nothing")
		Expect(env.KillAPIServer()).To(MatchError(ContainSubstring("has been stopped")))
		Expect(env.StartAPIServer(ctx)).To(MatchError(ContainSubstring("has been stopped")))
	}, NodeTimeout(5*time.Minute))

	It("comes also when the start fails, with the server's last words (E3)", func(ctx context.Context) {
		parent := GinkgoT().TempDir()
		for want, opts := range map[string]envtest.Options{
			"unknown flag: --no-such-flag":            {APIServerArgs: map[string][]string{"no-such-flag": {"x"}}},
			"flag provided but not defined: -no-etcd": {EtcdArgs: map[string][]string{"no-etcd": {"x"}}},
			`testdata/none.yaml: no such file`:        {CRDs: []string{"testdata/none.yaml"}},
		} {
			opts.Dir = parent
			_, err := envtest.Start(ctx, opts)
			Expect(err).To(MatchError(And(ContainSubstring("start the control plane: "), ContainSubstring(want))))
			Expect(os.ReadDir(parent)).To(BeEmpty())
		}
	}, NodeTimeout(5*time.Minute))

	It("comes when the context of the start ends (E3)", func(ctx context.Context) {
		parent := GinkgoT().TempDir()
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		_, err := envtest.Start(canceled, envtest.Options{Dir: parent})
		Expect(err).To(MatchError(context.Canceled))
		Expect(os.ReadDir(parent)).To(BeEmpty())
	}, NodeTimeout(5*time.Minute))

	It("tells of a server that had died by itself", func(ctx context.Context) {
		env, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(env.Stop)
		Expect(env.Err()).To(Succeed())
		etcd := env.Pids()[0]
		Expect(syscall.Kill(etcd, syscall.SIGKILL)).To(Succeed())
		Eventually(env.Err).Should(MatchError(ContainSubstring("etcd ended by itself: signal: killed")))
		Expect(env.Stop()).To(MatchError(ContainSubstring("etcd ended by itself: signal: killed")))
		Expect(env.Err()).To(Succeed(), "a control plane that was stopped has nothing to complain of")
	}, NodeTimeout(5*time.Minute))
})

func newCRD(plural string) runtime.Object {
	kind := schema.GroupKind{Group: governors.Group, Kind: "Kind" + plural}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1",
		"kind":       "CustomResourceDefinition",
		"metadata":   map[string]any{"name": plural + "." + kind.Group},
		"spec": map[string]any{
			"group": kind.Group,
			"scope": "Namespaced",
			"names": map[string]any{"kind": kind.Kind, "listKind": kind.Kind + "List", "plural": plural, "singular": plural + "x"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // pid (name) state …; only on Linux
	return err != nil || !regexp.MustCompile(`\) Z `).Match(stat)
}

func refuses(env *envtest.Environment) bool {
	server, err := url.Parse(env.Config().Host)
	Expect(err).NotTo(HaveOccurred())
	conn, err := net.Dial("tcp", server.Host)
	if err == nil {
		conn.Close()
	}
	return err != nil
}
