// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

var _ = Describe("webhooks", func() {
	It("of a manager are called by the API server", func(ctx context.Context) {
		env := start(ctx, envtest.Options{Webhooks: []string{"testdata/webhooks"}})
		mgr, err := manager.New(manager.Options{
			Config:         env.Config(),
			MetricsAddress: "0",
			HealthAddress:  "0",
			Webhooks:       webhook.Options{Address: env.Webhooks().Address(), CertDir: env.Webhooks().CertDir, DrainDelay: -1},
		})
		Expect(err).NotTo(HaveOccurred())
		webhook.Mutate(mgr.Webhooks(), "", func(_ context.Context, _ *webhook.Request, cm *corev1.ConfigMap) error {
			metav1.SetMetaDataLabel(&cm.ObjectMeta, "defaulted", "yes")
			return nil
		})
		webhook.Validate(mgr.Webhooks(), "", func(_ context.Context, _ *webhook.Request, _, cm *corev1.ConfigMap) error {
			if cm.Data["deny"] != "" {
				return errors.New("it asks to be denied")
			}
			return nil
		})
		run, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- mgr.Run(run) }()
		DeferCleanup(func() {
			stop()
			Eventually(done).Should(Receive(BeNil()))
		})
		Eventually(func() error { return mgr.Webhooks().Check(ctx) }).Should(Succeed())

		configMaps := clientset(env.Config()).CoreV1().ConfigMaps("default")
		asked := metav1.ObjectMeta{Name: "asked", Labels: map[string]string{"asked": "yes"}}
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: asked, Data: map[string]string{"deny": "yes"}}, metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("it asks to be denied")))
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the verdict is the webhook's: %v", err)
		got, err := configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: asked}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Labels).To(HaveKeyWithValue("defaulted", "yes"))
	}, NodeTimeout(5*time.Minute))

	It("are in effect when the call that installs them returns, and nothing else is (E1)", func(ctx context.Context) {
		env := start(ctx, envtest.Options{})
		client := clientset(env.Config())
		configMaps := client.CoreV1().ConfigMaps("default")
		text, err := os.ReadFile("testdata/webhooks/webhooks.yaml")
		Expect(err).NotTo(HaveOccurred())
		kinds := strings.Split(string(text), "---\n")[1:]
		path := filepath.Join(GinkgoT().TempDir(), "webhooks.yaml")
		for i := range 10 {
			yes := fmt.Sprintf("yes-%d", i)
			mine := strings.NewReplacer("name: validate\n", "name: "+yes+"\n", "name: mutate\n", "name: "+yes+"\n", `"yes"`, `"`+yes+`"`)
			Expect(os.WriteFile(path, []byte(mine.Replace(kinds[i%2])), 0o600)).To(Succeed())
			Expect(env.InstallWebhooks(ctx, path)).To(Succeed())
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: yes, Labels: map[string]string{"asked": yes}}}
			_, err = configMaps.Create(ctx, cm, metav1.CreateOptions{})
			Expect(err).To(MatchError(ContainSubstring("failed calling webhook")), "no program serves")
		}
		Expect(env.InstallWebhooks(ctx, path)).To(Succeed(), "what is there already is changed")
		validating, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(validating.Items).To(HaveLen(5), "no probe is left")
		_, err = configMaps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred(), "an object that no rule matches")
	}, NodeTimeout(5*time.Minute))
})
