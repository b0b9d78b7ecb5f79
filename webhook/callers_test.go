// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/webhook"
)

func TestRun_AnswersThoseWhoShowACertificate_H8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		certificate, key, bundle, err := webhook.Pair(time.Now(), 24*time.Hour, "hooks.default.svc")
		must(t, err)
		writePair(t, dir, certificate, key)
		ours, err := keypair.NewAuthority(time.Now(), "ours")
		must(t, err)
		other, err := keypair.NewAuthority(time.Now(), "other")
		must(t, err)
		s := newServer(t, webhook.Options{CertDir: dir, DrainDelay: -1, ClientCAs: ours.Pool(), ClientNames: []string{"the-api-server"}})
		webhook.Validate(s, "", nothing[*corev1.ConfigMap])
		webhook.Mutate(s, "", func(context.Context, *webhook.Request, *corev1.ConfigMap) error { return nil })
		webhook.Convert(s, siteSpoke())
		must(t, s.Err())
		network := newWire()
		s.ListenWith(network)
		stop := run(t, s)
		admission := review(t, ofConfigMap(admissionv1.Create, "null", "{}"))
		conversion := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"42","desiredAPIVersion":"example.dev/v2","objects":[]}}`
		for _, c := range []struct {
			name, body, path string
			by               *keypair.Authority // nil: no certificate
			cn               string
			code             int // 0: no connection
			text             string
		}{
			{"the API server", admission, configMapPath, ours, "the-api-server", 200, ""},
			{"the API server", admission, "/mutate--v1-configmap", ours, "the-api-server", 200, ""},
			{"nobody", admission, configMapPath, nil, "", 401, "presented no certificate"},
			{"nobody", admission, "/mutate--v1-configmap", nil, "", 401, "presented no certificate"},
			{"a kubelet", admission, configMapPath, ours, "system:node:a", 401, `is for \"system:node:a\"`},
			{"somebody else's", admission, configMapPath, other, "the-api-server", 0, ""},
			{"nobody, to convert", conversion, "/convert", nil, "", 200, ""},
		} {
			client := network.client(pool(t, bundle))
			if c.by != nil {
				pair, err := c.by.Client(time.Now(), c.cn)
				must(t, err)
				shown, err := tls.X509KeyPair(pair.Cert, pair.Key)
				must(t, err)
				client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown, nil }
			}
			code, text, err := call(t.Context(), client, c.path, c.body)
			if code != c.code || (err == nil) != (c.code != 0) || !strings.Contains(text, c.text) {
				t.Errorf("%s at %s: %d %.300s %v, want %d with %q", c.name, c.path, code, text, err, c.code, c.text)
			}
		}
		must(t, stop())
	})
}

// apiServers signs the certificate that the suite's API server presents to webhooks.
var apiServers *keypair.Authority

// showsCertificate returns flags of an API server with an AdmissionConfiguration that
// sets a certificate for all webhooks.
func showsCertificate() map[string][]string {
	GinkgoHelper()
	var err error
	apiServers, err = keypair.NewAuthority(time.Now(), "webhook clients")
	Expect(err).NotTo(HaveOccurred())
	pair, err := apiServers.Client(time.Now(), "the-api-server")
	Expect(err).NotTo(HaveOccurred())
	dir := GinkgoT().TempDir()
	path := func(name string, content string) string {
		file := filepath.Join(dir, name)
		Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		return file
	}
	kubeconfig := path("kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {client-certificate: %q, client-key: %q}\n",
		path("tls.crt", string(pair.Cert)), path("tls.key", string(pair.Key))))
	plugin := "- name: %s\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %q}\n"
	return map[string][]string{"admission-control-config-file": {path("admission.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"+
		fmt.Sprintf(plugin, "ValidatingAdmissionWebhook", kubeconfig)+fmt.Sprintf(plugin, "MutatingAdmissionWebhook", kubeconfig))}}
}

var _ = Describe("A webhook server with Options.ClientCAs", func() {
	It("answers an API server that shows its certificate, and converts without", func(ctx context.Context) {
		api, address := client(nil), freeAddress()
		configure(ctx, api, address)
		serve(hooks(address, webhook.Managed{}, func(o *webhook.Options) {
			o.ClientCAs, o.ClientNames = apiServers.Pool(), []string{"the-api-server"}
		}))
		maps := api.CoreV1().ConfigMaps("default")
		Eventually(func() error {
			_, err := maps.Create(ctx, asked("shown", nil), metav1.CreateOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), "the API server shows its certificate")
		got, err := maps.Get(ctx, "shown", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Labels).To(HaveKeyWithValue("defaulted", "yes"))
		Expect(maps.Delete(ctx, "shown", metav1.DeleteOptions{})).To(Succeed())
		versions := schema.GroupVersionResource{Group: "example.dev", Version: "v2", Resource: "sites"}
		site := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.dev/v2", "kind": "Site", "metadata": map[string]any{"name": "converted"}, "spec": map[string]any{"host": "a"}}}
		_, err = anything().Resource(versions).Namespace("default").Create(ctx, site, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(anything().Resource(versions).Namespace("default").Delete(ctx, "converted", metav1.DeleteOptions{})).To(Succeed())
		})
		sites := anything().Resource(schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "sites"}).Namespace("default")
		Eventually(func() error {
			_, err := sites.Get(ctx, "converted", metav1.GetOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), "a conversion is asked for without a certificate")
	})

	It("refuses an API server that shows another name", func(ctx context.Context) {
		api, address := client(nil), freeAddress()
		configure(ctx, api, address)
		serve(hooks(address, webhook.Managed{}, func(o *webhook.Options) {
			o.ClientCAs, o.ClientNames = apiServers.Pool(), []string{"another"}
		}))
		Eventually(func() string {
			_, err := api.CoreV1().ConfigMaps("default").Create(ctx, asked("refused", nil), metav1.CreateOptions{})
			if err == nil {
				return "it was answered"
			}
			return err.Error()
		}).WithTimeout(time.Minute).Should(ContainSubstring(`is for "the-api-server", which is not among webhook.Options.ClientNames`))
	})
})
