// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/webhook"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "webhook on a real control plane")
}

var env *envtest.Environment

var _ = BeforeSuite(func(ctx context.Context) {
	crds, err := envtest.ParseCRDs(strings.NewReader(siteCRD + fleetCRD))
	Expect(err).NotTo(HaveOccurred())
	env, err = envtest.Start(ctx, envtest.Options{CRDObjects: crds, APIServerArgs: showsCertificate()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
})

// siteCRD has two versions and stores the second. The conversion is set once a server
// runs.
const siteCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Site, plural: sites, singular: site, listKind: SiteList}
  versions:
  - name: v1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {replicas: {type: integer}, host: {type: string}}}}}}
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {scale: {type: object, properties: {replicas: {type: integer}, least: {type: integer}}}, host: {type: string}}}}}}
`

const fleetCRD = `
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fleets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Fleet, plural: fleets, singular: fleet, listKind: FleetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {members: {type: array, items: {type: object, properties: {name: {type: string}, weight: {type: integer}, zone: {type: string}}}}}}}}}
`

func freeAddress() string {
	GinkgoHelper()
	address, err := localserver.FreeAddress()
	Expect(err).NotTo(HaveOccurred())
	return address
}

// hooks returns a server that judges ConfigMaps and converts Sites, at an address.
func hooks(address string, managed webhook.Managed, options ...func(*webhook.Options)) *webhook.Server {
	managed.Namespace, managed.Service = "default", "hooks"
	managed.Names = []string{"127.0.0.1"}
	managed.Validating, managed.Mutating, managed.CRDs = []string{"hooks"}, []string{"hooks"}, []string{"sites.example.dev"}
	opts := webhook.Options{Address: address, Managed: &managed, DrainDelay: -1}
	for _, set := range options {
		set(&opts)
	}
	s := webhook.New(env.Config(), testScheme(), opts)
	webhook.Validate(s, "", func(_ context.Context, req *webhook.Request, old, obj *corev1.ConfigMap) error {
		switch {
		case obj == nil && old.Data["keep"] != "":
			return fmt.Errorf("%s is to be kept", req.Key())
		case obj == nil:
			return nil
		case obj.Data["deny"] != "":
			return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, obj.Name, nil)
		case obj.Data["panic"] != "":
			panic("asked to")
		}
		req.Warn("seen by the webhook, dry run %v", req.IsDryRun())
		return nil
	})
	webhook.Mutate(s, "", func(_ context.Context, _ *webhook.Request, cm *corev1.ConfigMap) error {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, "defaulted", "yes")
		return nil
	})
	webhook.Convert(s, siteSpoke())
	return s
}

func serve(s *webhook.Server) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).WithTimeout(time.Minute).Should(Receive(BeNil()))
	})
	Eventually(s.Started()).WithTimeout(time.Minute).Should(BeClosed())
}

// configure makes the API server call the webhook at address about the ConfigMaps of
// namespaces with the label asked.
func configure(ctx context.Context, api kubernetes.Interface, address string) {
	GinkgoHelper()
	at := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{URL: new("https://" + address + path)}
	}
	rules := func(ops ...admissionregistrationv1.OperationType) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{Operations: ops, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"},
		}}}
	}
	asked := &metav1.LabelSelector{MatchLabels: map[string]string{"asked": "yes"}}
	_, err := api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "validate.example.dev", ClientConfig: at("/validate--v1-configmap"), Rules: rules("CREATE", "UPDATE", "DELETE"),
			ObjectSelector: asked, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = api.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hooks"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "mutate.example.dev", ClientConfig: at("/mutate--v1-configmap"), Rules: rules("CREATE", "UPDATE"),
			ObjectSelector: asked, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	patch := fmt.Sprintf(`{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://%s/convert"}}}}}`, address)
	_, err = crds().Patch(ctx, "sites.example.dev", "application/merge-patch+json", []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, "hooks", metav1.DeleteOptions{})).To(Succeed())
		Expect(api.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(ctx, "hooks", metav1.DeleteOptions{})).To(Succeed())
		_, err := crds().Patch(ctx, "sites.example.dev", "application/merge-patch+json", []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(api.CoreV1().Secrets("default").Delete(ctx, "hooks-webhook-cert", metav1.DeleteOptions{})).To(Succeed())
	})
}

func crds() dynamic.ResourceInterface {
	return anything().Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

func anything() dynamic.Interface {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(env.Config())
	Expect(err).NotTo(HaveOccurred())
	return client
}

type told struct {
	mu struct {
		sync.Mutex
		texts []string
	}
}

func (t *told) HandleWarningHeader(_ int, _ string, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.texts = append(t.mu.texts, text)
}

func (t *told) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.texts
}

func client(warnings rest.WarningHandler) *kubernetes.Clientset {
	GinkgoHelper()
	cfg := env.Config()
	cfg.WarningHandler, cfg.QPS = warnings, -1
	api, err := kubernetes.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	return api
}

func asked(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"asked": "yes"}}, Data: data}
}

var _ = Describe("A webhook server with certificates of its own", func() {
	It("is asked by a real API server, whose patience decides about faults", func(ctx context.Context) {
		warnings := &told{}
		api := client(warnings)
		address := freeAddress()
		configure(ctx, api, address)
		serve(hooks(address, webhook.Managed{}))
		maps := api.CoreV1().ConfigMaps("default")
		Eventually(func() error {
			_, err := maps.Create(ctx, asked("probe", nil), metav1.CreateOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), "the bundle is written into the configurations")

		By("mutating and warning")
		got, err := maps.Create(ctx, asked("one", map[string]string{"keep": "x"}), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Labels).To(HaveKeyWithValue("defaulted", "yes"))
		Expect(warnings.all()).To(ContainElement("seen by the webhook, dry run false"))

		By("a dry run")
		_, err = maps.Create(ctx, asked("dry", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings.all()).To(ContainElement("seen by the webhook, dry run true"))

		By("denying")
		_, err = maps.Create(ctx, asked("two", map[string]string{"deny": "x"}), metav1.CreateOptions{})
		Expect(apierrors.IsInvalid(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "validate.example.dev" denied the request: `)))
		err = maps.Delete(ctx, "one", metav1.DeleteOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(ContainSubstring("default/one is to be kept")))

		By("panicking, which is no verdict")
		_, err = maps.Create(ctx, asked("three", map[string]string{"panic": "x"}), metav1.CreateOptions{})
		Expect(apierrors.IsInternalError(err)).To(BeTrue(), "got %v", err)
		Expect(err).To(MatchError(And(ContainSubstring("failed calling webhook"), ContainSubstring("panic in the webhook: asked to"))))
	})

	It("converts the objects of a CRD", func(ctx context.Context) {
		api := client(rest.NoWarnings{})
		address := freeAddress()
		configure(ctx, api, address)
		serve(hooks(address, webhook.Managed{}))
		v1 := anything().Resource(schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "sites"}).Namespace("default")
		v2 := anything().Resource(schema.GroupVersionResource{Group: "example.dev", Version: "v2", Resource: "sites"}).Namespace("default")
		site := func(version, name, spec string) *unstructured.Unstructured {
			u := &unstructured.Unstructured{}
			Expect(json.Unmarshal(fmt.Appendf(nil, `{"apiVersion":"example.dev/%s","kind":"Site","metadata":{"name":%q,"labels":{"a":"b"}},"spec":%s}`, version, name, spec), u)).To(Succeed())
			return u
		}
		Eventually(func() error {
			_, err := v1.Create(ctx, site("v1", "one", `{"replicas":3,"host":"h"}`), metav1.CreateOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed())
		for i := range 20 {
			_, err := v2.Create(ctx, site("v2", fmt.Sprintf("two-%02d", i), fmt.Sprintf(`{"scale":{"replicas":%d,"least":1}}`, i)), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		got, err := v2.Get(ctx, "one", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Object["spec"]).To(Equal(map[string]any{"scale": map[string]any{"replicas": int64(3)}, "host": "h"}))
		Expect(got.GetLabels()).To(Equal(map[string]string{"a": "b"}))
		list, err := v1.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(21))
		for i, item := range list.Items[1:] {
			Expect(item.GetName()).To(Equal(fmt.Sprintf("two-%02d", i)))
			Expect(item.Object["spec"]).To(Equal(map[string]any{"replicas": int64(i)}))
			Expect(item.GetAnnotations()).To(HaveKeyWithValue(leastAnnotation, "1"))
		}
		_, err = v1.Create(ctx, site("v1", "bad", `{"host":"broken"}`), metav1.CreateOptions{})
		Expect(err).To(MatchError(ContainSubstring("convert object 0 of 1 (Site default/bad) to example.dev/v2: no such host")))
	})

	It("keeps what an older Go type does not know in elements that it moves and changes (H2)", func(ctx context.Context) {
		api := client(rest.NoWarnings{})
		address := freeAddress()
		configure(ctx, api, address)
		configurations := api.AdmissionregistrationV1().MutatingWebhookConfigurations()
		hook, err := configurations.Get(ctx, "hooks", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		hook.Webhooks = append(hook.Webhooks, *hook.Webhooks[0].DeepCopy())
		hook.Webhooks[1].Name = "fleets.example.dev"
		hook.Webhooks[1].ClientConfig.URL = new("https://" + address + "/mutate-example-dev-v1-fleet")
		hook.Webhooks[1].Rules[0].Rule = admissionregistrationv1.Rule{
			APIGroups: []string{"example.dev"}, APIVersions: []string{"v1"}, Resources: []string{"fleets"},
		}
		hook.Webhooks[1].ObjectSelector = nil
		_, err = configurations.Update(ctx, hook, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
		s := hooks(address, webhook.Managed{})
		webhook.Mutate(s, "", func(_ context.Context, _ *webhook.Request, f *fleet) error {
			slices.SortFunc(f.Spec.Members, func(a, b member) int { return strings.Compare(a.Name, b.Name) })
			for i := range f.Spec.Members {
				f.Spec.Members[i].Weight = max(1, f.Spec.Members[i].Weight)
			}
			if m := f.Spec.Members; len(m) == 2 && m[0].Name == m[1].Name {
				f.Spec.Members = []member{{Name: m[0].Name, Weight: 9}}
			}
			return nil
		})
		serve(s)
		fleets := anything().Resource(schema.GroupVersionResource{Group: "example.dev", Version: "v1", Resource: "fleets"}).Namespace("default")
		create := func(name, members string) (*unstructured.Unstructured, error) {
			u := &unstructured.Unstructured{}
			Expect(json.Unmarshal(fmt.Appendf(nil, `{"apiVersion":"example.dev/v1","kind":"Fleet","metadata":{"name":%q},"spec":{"members":%s}}`, name, members), u)).To(Succeed())
			return fleets.Create(ctx, u, metav1.CreateOptions{})
		}
		Eventually(func() error { _, err := create("probe", `[]`); return err }).WithTimeout(time.Minute).Should(Succeed())
		got, err := create("moved", `[{"name":"c","weight":3,"zone":"C"},{"name":"a","weight":0,"zone":"A"},{"name":"b","weight":0,"zone":"B"}]`)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Object["spec"]).To(Equal(map[string]any{"members": []any{
			map[string]any{"name": "a", "weight": int64(1), "zone": "A"},
			map[string]any{"name": "b", "weight": int64(1), "zone": "B"},
			map[string]any{"name": "c", "weight": int64(3), "zone": "C"},
		}}))
		_, err = create("joined", `[{"name":"a","weight":1,"zone":"A"},{"name":"a","weight":2,"zone":"B"}]`)
		Expect(err).To(MatchError(ContainSubstring("spec.members")), "whose zone it is is not certain")
	})

	It("rotates authority and certificates while two replicas are asked, and refuses no write", func(ctx context.Context) {
		api := client(rest.NoWarnings{})
		address := freeAddress()
		configure(ctx, api, address)
		// A minute is the shortest lifetime. The authority is renewed within seconds.
		short := webhook.Managed{Namespace: "default", Service: "hooks", Names: []string{"127.0.0.1"}, Lifetime: time.Minute, AuthorityLifetime: 3 * time.Minute}
		data, err := webhook.DataOf(time.Now().Add(-115*time.Second), short)
		Expect(err).NotTo(HaveOccurred())
		secrets := api.CoreV1().Secrets("default")
		_, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "hooks-webhook-cert"}, Type: corev1.SecretTypeTLS, Data: data,
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		first, second := hooks(address, short), hooks(freeAddress(), short)
		serve(first)
		serve(second)
		maps := api.CoreV1().ConfigMaps("default")
		Eventually(func() error {
			_, err := maps.Create(ctx, asked("writes", nil), metav1.CreateOptions{})
			return err
		}).WithTimeout(time.Minute).Should(Succeed())

		certificates := map[time.Time]bool{}
		rotated := false
		writes, until := 0, time.Now().Add(3*time.Minute)
		for ; !rotated || len(certificates) < 2; writes++ {
			Expect(time.Now()).To(BeTemporally("<", until), "there was no rotation to see")
			cm, err := maps.Get(ctx, "writes", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			cm.Data = map[string]string{"n": fmt.Sprint(writes)}
			_, err = maps.Update(ctx, cm, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred(), "write %d, after certificates until %v", writes, certificates)
			certificates[first.Snapshot().NotAfter] = true
			if writes%100 == 0 {
				secret, err := secrets.Get(ctx, "hooks-webhook-cert", metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				rotated = !bytes.Equal(secret.Data["signer.crt"], data["signer.crt"])
			}
		}
		GinkgoWriter.Printf("%d writes over %d certificates of two authorities\n", writes, len(certificates))
		Eventually(func() time.Time { return second.Snapshot().NotAfter }).WithTimeout(30*time.Second).Should(
			Equal(first.Snapshot().NotAfter), "the replicas agree")
	})
})
