// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
)

// On a real API server kubectl finds the plugin, the plugin finds the Pod, RBAC decides who is
// answered, and errors name the right that is missing. A recording made there replays. There is no
// kubelet to forward a port.
func TestControlPlane_RBACDecidesWhoIsAnswered(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	env, err := envtest.Start(ctx, envtest.Options{})
	must(err)
	t.Cleanup(func() { must(env.Stop()) })
	admin, err := client.New(env.Config(), clientscheme.Scheme, client.Options{})
	must(err)
	operator, err := env.TokenUser(ctx, "shop-system", "operator")
	must(err)
	reader, err := env.TokenUser(ctx, "shop-system", "reader")
	must(err)
	readers, err := env.WriteKubeconfig("reader", reader)
	must(err)
	grant := func(account string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		meta := metav1.ObjectMeta{GenerateName: account + "-"}
		role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
		must(admin.Create(ctx, role))
		must(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "shop-system", Name: account}},
		}))
	}
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	grant("operator", rule("", "configmaps", "get", "list", "watch", "update"), rule("coordination.k8s.io", "leases", "get", "list", "watch", "create", "update"),
		rule("authentication.k8s.io", "tokenreviews", "create"), rule("authorization.k8s.io", "subjectaccessreviews", "create"))
	must(admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	must(admin.Create(ctx, configMap("shop", "one")))
	p := pod("shop-system", "shop-7", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "operator" })
	must(admin.Create(ctx, p))
	must(admin.Get(ctx, kube.KeyOf(p), p))
	p.Status.Phase = corev1.PodRunning
	must(admin.Status().Update(ctx, p))
	at := startOperator(t, operator, nil, manager.Serving{Secure: true, Guard: true},
		&manager.LeaderElection{ID: "shop.example.com", Namespace: "shop-system", Identity: "shop-7"})

	says := func(want string, args ...string) {
		t.Helper()
		out, problems, err := commandAt(ctx, args...)
		if text := fmt.Sprint(out, problems, err); !strings.Contains(text, want) {
			t.Errorf("%s: %s\nwant %q", args, text, want)
		}
	}
	says("in a namespace where you may list Pods", "status", "--kubeconfig", readers, "--operator", "shop.example.com")
	grant("reader", rule("coordination.k8s.io", "leases", "list"), rule("", "pods", "list", "get"))
	eventually(t, func() bool { // the API server has the new rules
		_, problems, _ := commandAt(ctx, "status", "--kubeconfig", readers, "--operator", "shop.example.com")
		return problems == "Pod shop-system/shop-7, which holds the Lease shop-system/shop.example.com, port 8080\n"
	})
	says("the resource pods/portforward and the verbs get and create", "status", "--kubeconfig", readers, "--operator", "shop-system/shop-7")
	says("does not have a host assigned", "status", "--kubeconfig", env.Kubeconfig())

	asReader := []string{"--address", at, "--kubeconfig", env.Kubeconfig(), "--as-service-account", "shop-system/reader"}
	says("--verb=get '--non-resource-url=/debug/flyball/*'", append([]string{"status"}, asReader...)...)
	says(`User "system:serviceaccount:shop-system:reader" cannot get path "/debug/flyball/v1/overview"`, append([]string{"status"}, asReader...)...)
	grant("reader", rbacv1.PolicyRule{NonResourceURLs: []string{"/debug/flyball/*"}, Verbs: []string{"get"}})

	recordMarker(t, env.Config(), asReader...)

	dir := t.TempDir()
	build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "kubectl-flyball"), ".")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	token, _, _ := strings.Cut(reader.BearerToken, "\n")
	plugin := exec.CommandContext(ctx, env.KubectlPath(), "flyball", "why", "configmap", "one", "-n", "shop", "--address", at, "--token", token)
	plugin.Env = append(os.Environ(), "PATH="+dir)
	text, err := plugin.CombinedOutput()
	if want := "shop/one of controller marker is "; err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("kubectl flyball: %v\n%s\nwant the story of shop/one", err, text)
	}
}
