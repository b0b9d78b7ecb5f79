// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

var _ = Describe("A controller for each kind", func() {
	It("comes and goes, and leaves no entry (M17)", func(ctx context.Context) {
		m, err := manager.New(manager.Options{Config: env.Config(), Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0"})
		Expect(err).NotTo(HaveOccurred())
		stop := start(m)
		defer stop()
		for range 2 { // the names are free again
			var controllers []*reconcile.Controller[reconcile.Key]
			release := func() {}
			for _, kind := range []string{"ConfigMap", "Secret", "ServiceAccount"} {
				i := informer.ForKind(m.Informers(), schema.GroupVersionKind{Version: "v1", Kind: kind})
				c := reconcile.New("of "+kind, idle, reconcile.Options{})
				c.Watch(source.Kind(i, source.Self))
				Expect(m.Add(c)).To(Succeed())
				controllers = append(controllers, c)
				before := release
				release = func() { before(); i.Release() }
			}
			for _, c := range controllers {
				Eventually(c.Synced()).Should(BeClosed())
				Expect(m.Remove(ctx, c)).To(Succeed())
			}
			release()
			s := m.Snapshot()
			Expect(s.Controllers).To(BeEmpty())
			Expect(s.Informers).To(BeEmpty())
		}
	})
})

var _ = Describe("A candidate that may read Leases and not create them", func() {
	It("names the rule that its Role lacks (M18)", func(ctx context.Context) {
		cfg, err := env.User("candidate")
		Expect(err).NotTo(HaveOccurred())
		api, err := kubernetes.NewForConfig(env.Config())
		Expect(err).NotTo(HaveOccurred())
		named := metav1.ObjectMeta{Namespace: "default", Name: "candidate"}
		_, err = api.RbacV1().Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch"}},
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = api.RbacV1().RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "candidate"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())

		var lines atomic.Int64
		m, err := manager.New(manager.Options{
			Config: cfg, HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
			LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "default"},
			Logger: funcr.New(func(_, line string) {
				if strings.Contains(line, "resources: [leases], verbs: [create]") {
					lines.Add(1)
				}
			}, funcr.Options{}),
		})
		Expect(err).NotTo(HaveOccurred())
		stop := start(m)
		defer stop()
		Eventually(lines.Load).Should(BeNumerically(">", 0))
		Eventually(func() error { return m.Snapshot().Leadership.Refused }).Should(MatchError(ContainSubstring("cannot create")))
	})
})
