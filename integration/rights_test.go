// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

var _ = Describe("a kind whose definition comes, goes, and comes again", func() {
	It("is waited for, told deleted, and waited for again, while others notice nothing (A10)", Label("A10"), func(ctx context.Context) {
		t := followThree(ctx, env.Config(), newNamespace(ctx))
		passengers := follow[*passenger](t.factory, t.namespace)
		t.write(ctx, "before")
		t.equalServer(ctx)
		others := t.maps.scope().Watches + t.secrets.scope().Watches + t.widgets.scope().Watches
		notServed := And(
			HaveField("State", state.NotServed),
			HaveField("Reason", ContainSubstring("is its CustomResourceDefinition installed?")))
		Eventually(passengers.scope).Should(notServed)

		for n := range 2 {
			Expect(env.InstallCRDObjects(ctx, crd("Passenger"))).To(Succeed())
			Eventually(passengers.state).WithTimeout(90 * time.Second).Should(Equal(state.Live))
			for _, name := range []string{"a", "b"} {
				Expect(outside.Create(ctx, &passenger{*newWidget(t.namespace, name, "1")})).To(Succeed())
			}
			passengers.equalsServer(ctx)
			Expect(passengers.told()).To(ConsistOf("added a", "added b"))
			if n == 1 {
				break
			}
			_, err := env.Kubectl(ctx, "delete", "crd", "passengers.integration.flyball.dev")
			Expect(err).NotTo(HaveOccurred())
			Eventually(passengers.sees).WithTimeout(time.Minute).Should(HaveEach(BeEmpty()), "objects of a kind that is gone are gone")
			Expect(passengers.told()).To(ConsistOf("deleted a", "deleted b"))
			Eventually(passengers.scope).WithTimeout(time.Minute).Should(notServed)
		}
		t.write(ctx, "after")
		t.equalServer(ctx)
		Expect(t.maps.scope().Watches+t.secrets.scope().Watches+t.widgets.scope().Watches).To(Equal(others), "other kinds notice nothing")
	})
})

var _ = Describe("a right that is missing, granted, revoked and granted again", func() {
	It("is named, and concerns its kind alone (A11)", Label("A11"), func(ctx context.Context) {
		ns := newNamespace(ctx)
		user := "clerk-" + ns
		cfg, err := env.User(user)
		Expect(err).NotTo(HaveOccurred())
		grant(ctx, ns, user, "", "configmaps")
		grant(ctx, ns, user, group.Group, "widgets")
		t := followThree(ctx, rest.CopyConfig(cfg), ns)
		t.write(ctx, "before")
		forbidden := And(
			HaveField("State", state.Forbidden),
			HaveField("Reason", And(ContainSubstring(`User "`+user+`" cannot `), ContainSubstring(`"secrets"`))))
		Eventually(t.secrets.scope).Should(forbidden)
		t.maps.equalsServer(ctx)
		t.widgets.equalsServer(ctx)

		grant(ctx, ns, user, "", "secrets")
		t.secrets.equalsServer(ctx)
		Eventually(t.secrets.state).Should(Equal(state.Live))

		role := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: user + "-secrets"}}
		Expect(outside.Delete(ctx, role)).To(Succeed())
		clerk := kubernetes.NewForConfigOrDie(cfg)
		Eventually(func() bool {
			_, err := clerk.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{})
			return apierrors.IsForbidden(err)
		}).Should(BeTrue())
		Expect(t.secrets.state()).To(Equal(state.Live), "a server checks a right when a watch begins")
		t.network.Cut()
		Eventually(t.secrets.scope).Should(forbidden)
		_, err = t.secrets.Lister().Get(kube.Key{Namespace: ns, Name: "before"})
		Expect(err).NotTo(HaveOccurred(), "what was known stays readable")
		t.write(ctx, "meanwhile")
		t.maps.equalsServer(ctx)
		t.widgets.equalsServer(ctx)
		Expect(t.maps.state()).To(Equal(state.Live))

		role = &rbacv1.RoleBinding{
			ObjectMeta: role.ObjectMeta,
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		}
		role.ResourceVersion, role.UID = "", ""
		Expect(outside.Create(ctx, role)).To(Succeed())
		t.equalServer(ctx)
	})
})

var _ = Describe("a token that is rotated", func() {
	It("is read again from its file, and without a valid one each kind says so (A12)", Label("A12"), func(ctx context.Context) {
		ns := newNamespace(ctx)
		cfg, err := env.TokenUser(ctx, ns, "robot")
		Expect(err).NotTo(HaveOccurred())
		for apiGroup, resources := range map[string][]string{"": {"configmaps", "secrets"}, group.Group: {"widgets"}} {
			for _, resource := range resources {
				grant(ctx, ns, "system:serviceaccount:"+ns+":robot", apiGroup, resource)
			}
		}
		path := filepath.Join(GinkgoT().TempDir(), "token")
		writeToken := func(token string) {
			GinkgoHelper()
			Expect(os.WriteFile(path+".new", []byte(token), 0o600)).To(Succeed())
			Expect(os.Rename(path+".new", path)).To(Succeed(), "as the kubelet does it")
		}
		writeToken(cfg.BearerToken)
		byFile := rest.CopyConfig(cfg)
		byFile.BearerToken, byFile.BearerTokenFile = "", path
		t := followThree(ctx, byFile, ns)
		t.write(ctx, "before")
		t.equalServer(ctx)

		// A token ends with its service account; a new account of the same name has others.
		rotate := func() {
			GinkgoHelper()
			Expect(api.CoreV1().ServiceAccounts(ns).Delete(ctx, "robot", metav1.DeleteOptions{})).To(Succeed())
			old := kubernetes.NewForConfigOrDie(cfg)
			Eventually(func() bool {
				_, err := old.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{})
				return apierrors.IsUnauthorized(err)
			}).Should(BeTrue(), "the server refuses the old token")
		}
		rotate()
		cfg, err = env.TokenUser(ctx, ns, "robot")
		Expect(err).NotTo(HaveOccurred())
		writeToken(cfg.BearerToken)
		t.network.Cut()
		t.write(ctx, "rotated")
		t.equalServer(ctx)

		rotate()
		t.network.Cut()
		Eventually(t.states).Should(HaveEach(state.Unauthorized), "there is no valid token anywhere")
		_, err = t.secrets.Lister().Get(kube.Key{Namespace: ns, Name: "rotated"})
		Expect(err).NotTo(HaveOccurred(), "what was known stays readable")
		t.write(ctx, "meanwhile")
		cfg, err = env.TokenUser(ctx, ns, "robot")
		Expect(err).NotTo(HaveOccurred())
		writeToken(cfg.BearerToken)
		t.equalServer(ctx)
	})
})
