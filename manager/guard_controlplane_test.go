// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
)

var _ = Describe("Metrics behind the guard", func() {
	It("are answered to whom RBAC lets get them, once the manager may ask (M6)", Label("M6"), func(ctx context.Context) {
		api := kubernetes.NewForConfigOrDie(env.Config())
		operator, err := env.TokenUser(ctx, "guarded", "operator")
		Expect(err).NotTo(HaveOccurred())
		scraper, err := env.TokenUser(ctx, "guarded", "scraper")
		Expect(err).NotTo(HaveOccurred())
		stranger, err := env.TokenUser(ctx, "guarded", "stranger")
		Expect(err).NotTo(HaveOccurred())
		grant := func(role, account string) {
			GinkgoHelper()
			_, err := api.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "guarded-" + account},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
				Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "guarded", Name: account}},
			}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		_, err = api.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "metrics-reader"},
			Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		grant("metrics-reader", "scraper")

		var log lines
		m, err := manager.New(manager.Options{
			Config: operator, Logger: funcr.New(log.write, funcr.Options{}),
			HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
			MetricsServing: manager.Serving{Secure: true, Guard: true, Profiling: true},
		})
		Expect(err).NotTo(HaveOccurred())
		defer start(m)()
		ask := func(path, token string) func(g Gomega) (int, string) {
			return func(g Gomega) (int, string) {
				transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+m.MetricsAddr()+path, nil)
				g.Expect(err).NotTo(HaveOccurred())
				req.Header.Set("Authorization", "Bearer "+token)
				resp, err := transport.RoundTrip(req)
				g.Expect(err).NotTo(HaveOccurred())
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				g.Expect(err).NotTo(HaveOccurred())
				return resp.StatusCode, string(text)
			}
		}
		code, text := ask("/metrics", scraper.BearerToken)(Default)
		Expect(code).To(Equal(http.StatusServiceUnavailable), text)
		Expect(log.read()).To(And(
			ContainSubstring(`User \"system:serviceaccount:guarded:operator\" cannot create resource \"tokenreviews\"`),
			ContainSubstring("system:auth-delegator"), ContainSubstring("resources: [tokenreviews], verbs: [create]")))

		grant("system:auth-delegator", "operator")
		Eventually(func(g Gomega) int {
			code, _ := ask("/metrics", scraper.BearerToken)(g)
			return code
		}).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
		code, text = ask("/metrics", stranger.BearerToken)(Default)
		Expect(code).To(Equal(http.StatusForbidden))
		Expect(text).To(ContainSubstring(`forbidden: User \"system:serviceaccount:guarded:stranger\" cannot get path \"/metrics\"`))
		code, text = ask("/debug/pprof/heap", scraper.BearerToken)(Default)
		Expect(code).To(Equal(http.StatusForbidden), text)
		code, text = ask("/metrics", "not-a-token")(Default)
		Expect(code).To(Equal(http.StatusUnauthorized), text)
		for _, token := range []string{operator.BearerToken, scraper.BearerToken, stranger.BearerToken, "not-a-token"} {
			Expect(log.read()).NotTo(ContainSubstring(token))
		}
	})
})

type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) write(_, args string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.WriteString(args + "\n")
}

func (l *lines) read() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
