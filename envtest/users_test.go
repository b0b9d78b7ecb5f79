// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// whoami returns the user that the API server authenticates with cfg.
func whoami(ctx context.Context, cfg *rest.Config) authenticationv1.UserInfo {
	GinkgoHelper()
	review, err := clientset(cfg).AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return review.Status.UserInfo
}

func grant(ctx context.Context, subject rbacv1.Subject) {
	GinkgoHelper()
	rbac := clientset(shared.Config()).RbacV1()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "reader-"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}},
	}
	role, err := rbac.ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "reader-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func listConfigMaps(ctx context.Context, cfg *rest.Config) error {
	_, err := clientset(cfg).CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})
	return err
}

var _ = Describe("logging in", func() {
	It("works as the administrator, by certificate, from the file too", func(ctx context.Context) {
		Expect(whoami(ctx, shared.Config()).Groups).To(ContainElement("system:masters"))
		cfg, err := clientcmd.BuildConfigFromFlags("", shared.Kubeconfig())
		Expect(err).NotTo(HaveOccurred())
		Expect(whoami(ctx, cfg).Groups).To(ContainElement("system:masters"))
	}, NodeTimeout(time.Minute))

	It("works by certificate as a plain user, who may do what was granted to the user's groups alone", func(ctx context.Context) {
		jane, err := shared.User("jane", "readers", "writers")
		Expect(err).NotTo(HaveOccurred())
		user := whoami(ctx, jane)
		Expect(user.Username).To(Equal("jane"))
		Expect(user.Groups).To(ConsistOf("readers", "writers", "system:authenticated"))
		Expect(apierrors.IsForbidden(listConfigMaps(ctx, jane))).To(BeTrue())

		grant(ctx, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "readers"})
		Eventually(listConfigMaps).WithContext(ctx).WithArguments(jane).Should(Succeed())
		_, err = clientset(jane).CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
	}, NodeTimeout(time.Minute))

	It("works by token as a service account, who may do what was granted alone", func(ctx context.Context) {
		robot, err := shared.TokenUser(ctx, "factory", "robot")
		Expect(err).NotTo(HaveOccurred())
		Expect(robot.BearerToken).NotTo(BeEmpty())
		Expect(robot.CertData).To(BeEmpty())
		Expect(whoami(ctx, robot).Username).To(Equal("system:serviceaccount:factory:robot"))
		Expect(apierrors.IsForbidden(listConfigMaps(ctx, robot))).To(BeTrue())

		grant(ctx, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "factory", Name: "robot"})
		Eventually(listConfigMaps).WithContext(ctx).WithArguments(robot).Should(Succeed())

		path, err := shared.WriteKubeconfig("robot", robot)
		Expect(err).NotTo(HaveOccurred())
		out, err := shared.Kubectl(ctx, "--kubeconfig", path, "auth", "whoami")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(ContainSubstring("system:serviceaccount:factory:robot"))

		again, err := shared.TokenUser(ctx, "factory", "robot")
		Expect(err).NotTo(HaveOccurred(), "the service account is there already")
		Expect(whoami(ctx, again).Username).To(Equal("system:serviceaccount:factory:robot"))
	}, NodeTimeout(time.Minute))

	It("is refused with a wrong token, and anonymous users may not read", func(ctx context.Context) {
		stranger := rest.AnonymousClientConfig(shared.Config())
		Expect(apierrors.IsForbidden(listConfigMaps(ctx, stranger))).To(BeTrue())
		stranger.BearerToken = "wrong"
		Expect(apierrors.IsUnauthorized(listConfigMaps(ctx, stranger))).To(BeTrue())
	}, NodeTimeout(time.Minute))

	It("names what cannot be made", func(ctx context.Context) {
		_, err := shared.User("")
		Expect(err).To(MatchError(ContainSubstring("needs a name")))
		_, err = shared.TokenUser(ctx, "Not_A_Name", "robot")
		Expect(err).To(MatchError(And(ContainSubstring("service account Not_A_Name/robot"), ContainSubstring("422"))))
		_, err = shared.WriteKubeconfig("../up", shared.Config())
		Expect(err).To(MatchError(ContainSubstring("no name of a file")))
	}, NodeTimeout(time.Minute))
})

var _ = Describe("kubectl", func() {
	It("works beside it", func(ctx context.Context) {
		_, err := shared.Kubectl(ctx, "create", "configmap", "by-kubectl", "--from-literal=a=b")
		Expect(err).NotTo(HaveOccurred())
		out, err := shared.Kubectl(ctx, "get", "configmap", "by-kubectl", "-o", "jsonpath={.data.a}")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).To(Equal("b"))
		out, err = shared.Kubectl(ctx, "version")
		Expect(err).NotTo(HaveOccurred())
		Expect(string(out)).NotTo(ContainSubstring("v0.0.0"), "the binaries carry their version")
		_, err = shared.Kubectl(ctx, "get", "configmap", "nowhere")
		Expect(err).To(MatchError(And(ContainSubstring("kubectl get configmap nowhere"), ContainSubstring("NotFound"))))
	}, NodeTimeout(time.Minute))
})
