// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

const (
	operatorNamespace = "website"
	operatorUser      = "system:serviceaccount:website:website"
)

// The manifests of deploy are applied to a control plane of their own, and the image's
// program runs as they say.
var (
	_ = Describe("deploy", Ordered, func() { deployed(false) })
	_ = Describe("deploy where lists are streams", Ordered, func() { deployed(true) })
)

// deployed runs the whole story, with or without a server that streams lists.
func deployed(streams bool) {
	var (
		own        *envtest.Environment
		admin      *client.Client
		network    *serviceNetwork
		log        auditLog
		kubeconfig string // of the operator's ServiceAccount
		deployment = &appsv1.Deployment{}
		container  corev1.Container
		rights     []right
		replicas   []*replica
	)
	kubectl := func(ctx context.Context, args ...string) string {
		GinkgoHelper()
		out, err := own.Kubectl(ctx, args...)
		Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(string(out))
	}
	run := func(name string) *replica {
		GinkgoHelper()
		r := startReplica(name, kubeconfig, container.Args)
		replicas = append(replicas, r)
		return r
	}
	ready := func(r *replica) {
		GinkgoHelper()
		Eventually(func() int { return r.probe(container.ReadinessProbe, container) }).WithTimeout(time.Minute).Should(Equal(http.StatusOK), r.name)
		Expect(r.probe(container.LivenessProbe, container)).To(Equal(http.StatusOK), r.name)
	}
	// serves waits until n replicas serve a Website.
	serves := func(ctx context.Context, key kube.Key, n int) {
		GinkgoHelper()
		Eventually(func() (string, error) {
			var site webv1.Website
			err := admin.Get(ctx, key, &site)
			if err != nil || len(site.Status.Conditions) == 0 || site.Status.ObservedGeneration != site.Generation {
				return "", err
			}
			return fmt.Sprint(site.Status.Conditions[0].Status, " ", site.Status.ReadyReplicas), nil
		}).WithTimeout(30 * time.Second).Should(Equal(fmt.Sprint("True ", n)))
	}
	sample := kube.Key{Namespace: "default", Name: "sample"}
	whole := func(text string, story any) {
		if !streams {
			It(text, story)
		}
	}

	BeforeAll(func(ctx context.Context) {
		dir := GinkgoT().TempDir()
		log = auditLog(filepath.Join(dir, "audit.log"))
		network = newServiceNetwork(dir)
		policy, egress := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "egress.yaml")
		Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
		Expect(os.WriteFile(egress, []byte(network.egress()), 0o600)).To(Succeed())
		args := map[string][]string{
			"audit-policy-file": {policy}, "audit-log-path": {string(log)},
			"egress-selector-config-file": {egress},
			"enable-admission-plugins":    {"OwnerReferencesPermissionEnforcement"},
		}
		if !streams { // informers list before they watch, and need both permissions
			args["feature-gates"] = []string{"WatchList=false"}
		}
		var err error
		own, err = envtest.Start(ctx, envtest.Options{APIServerArgs: args})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(own.Stop()).To(Succeed()) })
		admin, err = client.New(own.Config(), testScheme(), client.Options{})
		Expect(err).NotTo(HaveOccurred())

		// No other process acts as the controller manager.
		opts := testOptions()
		opts.Config = own.Config()
		mgr, err := manager.New(opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(bareControlPlane(mgr)).To(Succeed())
		runs, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- mgr.Run(runs) }()
		DeferCleanup(func() {
			stop()
			Eventually(done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
		})
	})

	AfterEach(func() {
		if !CurrentSpecReport().Failed() {
			return
		}
		for _, r := range replicas {
			GinkgoWriter.Printf("---- %s\n%s\n", r.name, r.output())
		}
		GinkgoWriter.Println("---- refused:", strings.Join(log.refused(), "\n"))
	})
	AfterAll(func() {
		for _, r := range replicas {
			_ = r.cmd.Process.Kill() // usually it has ended
			<-r.done
		}
	})

	It("is taken by the server without a warning", func(ctx context.Context) {
		kubectl(ctx, "apply", "--server-side", "--warnings-as-errors", "-k", "deploy")
		// The namespace exists now; its labels decide how Pods are admitted.
		kubectl(ctx, "apply", "--server-side", "--warnings-as-errors", "--dry-run=server", "-k", "deploy")
		Expect(admin.Get(ctx, kube.Key{Namespace: operatorNamespace, Name: "website"}, deployment)).To(Succeed())
		Expect(deployment.Spec.Template.Spec.Containers).To(HaveLen(1))
		container = deployment.Spec.Template.Spec.Containers[0]

		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "operator", Labels: deployment.Spec.Template.Labels},
			Spec:       deployment.Spec.Template.Spec,
		}
		Expect(admin.Create(ctx, kube.Copy(pod), client.DryRun{})).To(Succeed(), "Pods of the Deployment are restricted ones")
		pod.Spec.SecurityContext.RunAsNonRoot = new(false)
		Expect(admin.Create(ctx, pod, client.DryRun{})).To(MatchError(ContainSubstring("violates PodSecurity")), "and others are refused")
	})

	whole("fits together", func(ctx context.Context) {
		program, err := imageProgram()
		Expect(err).NotTo(HaveOccurred())
		out, _ := exec.CommandContext(ctx, program, "-help").CombinedOutput() // its usage message says that help is not a run
		for _, arg := range container.Args {
			name, _, _ := strings.Cut(arg, "=")
			Expect(string(out)).To(MatchRegexp(`(?m)^  `+regexp.QuoteMeta(name)+`\b`), "the program has the flag")
		}
		var served []string
		for _, arg := range asInPod(container.Args) {
			if m := listens.FindStringSubmatch(arg); m != nil {
				served = append(served, m[2])
			}
		}
		var ports []string
		for _, p := range container.Ports {
			ports = append(ports, fmt.Sprint(p.ContainerPort))
		}
		Expect(ports).To(ConsistOf(served), "the container's ports are those that the program listens on")
		grace := regexp.MustCompile(`-graceful-shutdown-timeout=(\S+)`).FindStringSubmatch(strings.Join(container.Args, " "))
		Expect(grace).NotTo(BeNil())
		patience, err := time.ParseDuration(grace[1])
		Expect(err).NotTo(HaveOccurred())
		Expect(*deployment.Spec.Template.Spec.TerminationGracePeriodSeconds).To(BeNumerically(">=", (patience+10*time.Second).Seconds()),
			"the kubelet's patience outlasts the program's and the release of the lease")

		// The server lacks this kind: verify only that the manifest exists and names the
		// Service's port.
		monitor := kubectl(ctx, "kustomize", overlay("components: [%s]", "deploy/prometheus"))
		var metrics corev1.Service
		Expect(admin.Get(ctx, kube.Key{Namespace: operatorNamespace, Name: "website-metrics"}, &metrics)).To(Succeed())
		Expect(monitor).To(MatchRegexp(`(?m)^ +port: ` + metrics.Spec.Ports[0].Name + `$`))
	})

	It("has only rights that are bound to the operator", func(ctx context.Context) {
		for _, page := range pages([]byte(kubectl(ctx, "kustomize", "deploy"))) {
			var role rbacv1.ClusterRole // a Role has the same fields
			Expect(yaml.Unmarshal([]byte(page), &role)).To(Succeed())
			if (role.Kind == "Role" || role.Kind == "ClusterRole") && role.Name == "website" {
				rights = append(rights, rightsOf(fmt.Sprintf("%s %q", role.Kind, role.Name), role.Namespace, role.Rules)...)
			}
		}
		Expect(len(rights)).To(BeNumerically(">", 20))
	})

	It("runs", func(ctx context.Context) {
		cfg, err := own.TokenUser(ctx, operatorNamespace, "website")
		Expect(err).NotTo(HaveOccurred())
		kubeconfig, err = own.WriteKubeconfig("operator", cfg)
		Expect(err).NotTo(HaveOccurred())
		first := run("first")
		network.serves(admin, deployment, first)
		first.says("Leader elected")
		ready(first)
		second := run("second")
		second.says("Waiting to become the leader")
		ready(second)
		network.serves(admin, deployment, second, first)
	})

	It("serves Websites that its webhooks have judged", func(ctx context.Context) {
		Eventually(func() error {
			_, err := own.Kubectl(ctx, "apply", "-f", "config/sample.yaml")
			return err
		}).WithTimeout(time.Minute).Should(Succeed(), "the server is told whom to trust, and reaches the Service")
		serves(ctx, sample, 2)
		kubectl(ctx, "patch", "website", "sample", "--type=merge", "-p", `{"spec":{"host":"WWW.Example.com."}}`)
		Expect(kubectl(ctx, "get", "website", "sample", "-o", "jsonpath={.spec.host}")).To(Equal("www.example.com"))
		Eventually(func() error {
			return admin.Create(ctx, &webv1.Website{
				ObjectMeta: metav1.ObjectMeta{Namespace: sample.Namespace, Name: "second"},
				Spec:       webv1.WebsiteSpec{Content: "x", Host: "www.example.com"},
			}, client.DryRun{})
		}).WithTimeout(20*time.Second).Should(MatchError(ContainSubstring(
			`admission webhook "validate.websites.example.flyball.dev" denied the request: Website.example.flyball.dev "second" is invalid: `+
				`spec.host: Invalid value: "www.example.com": Website default/sample has this host`)), "once the first is in the cache")
	})

	whole("serves Websites in their former version", func(ctx context.Context) {
		page := func() (string, error) {
			out, err := own.Kubectl(ctx, "get", "websites.v1beta1.example.flyball.dev", "sample", "-o", "jsonpath={.spec.page}")
			return string(out), err
		}
		Eventually(page).WithTimeout(time.Minute).Should(ContainSubstring("It balances."))
		kubectl(ctx, "patch", "websites.v1beta1.example.flyball.dev", "sample", "--type=merge", "-p", `{"spec":{"page":"<p>"}}`)
		Expect(kubectl(ctx, "get", "website", "sample", "-o", "jsonpath={.spec.content}")).To(Equal("<p>"))
	})

	whole("follows a Website, counts up its events, and prunes what it does not want", func(ctx context.Context) {
		for n := 3; n <= 5; n++ {
			kubectl(ctx, "patch", "website", "sample", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
			serves(ctx, sample, n)
		}
		n := 5
		Eventually(func() string { // replicas that appear before the operator looks again cause no event
			n = 3 + (n+1)%3
			kubectl(ctx, "patch", "website", "sample", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"replicas":%d}}`, n))
			serves(ctx, sample, n)
			return kubectl(ctx, "get", "events.events.k8s.io", "-o", `jsonpath={.items[?(@.series.count>1)].reason}`)
		}).WithTimeout(time.Minute).WithPolling(300 * time.Millisecond).Should(ContainSubstring("Serving"))

		var site webv1.Website
		Expect(admin.Get(ctx, sample, &site)).To(Succeed())
		for _, child := range childrenOf(&site) {
			child.SetName("surplus")
			child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&site, webv1.GroupVersion.WithKind("Website"))})
			Expect(admin.Apply(ctx, child, client.FieldOwner(fieldOwner))).To(Succeed(), "as the operator would have")
		}
		Eventually(func() string {
			return kubectl(ctx, "get", "configmaps,services,deployments", "--field-selector=metadata.name=surplus", "-o", "name")
		}).WithTimeout(30 * time.Second).Should(BeEmpty())
	})

	whole("mends the Secret of its certificate", func(ctx context.Context) {
		spoiled := kubectl(ctx, "patch", "secret", "website-webhooks-webhook-cert", "-n", operatorNamespace, "--type=merge", "-p", `{"data":{"tls.crt":""}}`, "-o", "jsonpath={.metadata.resourceVersion}")
		Eventually(func() string {
			return kubectl(ctx, "get", "secret", "website-webhooks-webhook-cert", "-n", operatorNamespace, "-o", `jsonpath={.metadata.resourceVersion} {.data.tls\.crt}`)
		}).WithTimeout(time.Minute).Should(And(Not(HavePrefix(spoiled)), MatchRegexp(` .+`)))
	})

	whole("shows its metrics to those who may see them", func(ctx context.Context) {
		var service corev1.Service
		Expect(admin.Get(ctx, kube.Key{Namespace: operatorNamespace, Name: "website-metrics"}, &service)).To(Succeed())
		at, err := network.behind(ctx, fmt.Sprintf("%s:%d", service.Spec.ClusterIP, service.Spec.Ports[0].Port))
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, "create", "clusterrolebinding", "scraper", "--clusterrole=website-metrics-reader", "--serviceaccount=monitoring:scraper")
		for name, want := range map[string]int{"": http.StatusUnauthorized, "stranger": http.StatusForbidden, "scraper": http.StatusOK} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+at+"/metrics", nil)
			Expect(err).NotTo(HaveOccurred())
			if name != "" {
				user, err := own.TokenUser(ctx, "monitoring", name)
				Expect(err).NotTo(HaveOccurred())
				request.Header.Set("Authorization", "Bearer "+user.BearerToken)
			}
			// The certificate is created in memory.
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
			resp, err := (&http.Client{Transport: transport}).Do(request)
			Expect(err).NotTo(HaveOccurred())
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.StatusCode).To(Equal(want), "%q: %s", name, text)
			Expect(strings.Contains(string(text), "controller_runtime_reconcile_total")).To(Equal(want == http.StatusOK))
		}
	})

	whole("goes on when the one that works is told to stop", func(ctx context.Context) {
		first, second := replicas[0], replicas[1]
		first.stops()
		second.says("Leader elected")
		network.serves(admin, deployment, second)
		kubectl(ctx, "patch", "website", "sample", "--type=merge", "-p", `{"spec":{"replicas":1}}`)
		serves(ctx, sample, 1)
		kubectl(ctx, "delete", "website", "sample", "--timeout=30s")
		Eventually(func() string {
			return kubectl(ctx, "get", "websites,services,deployments,configmaps", "-l", "example.flyball.dev/website=sample", "-o", "name")
		}).WithTimeout(30 * time.Second).Should(BeEmpty())
		second.stops()
	})

	It("had all rights that it needs", func() {
		Expect(log.refused()).To(BeEmpty())
	})

	if streams {
		It("has read all by streams", func() {
			leads, refused, listed := false, map[string]bool{}, map[string]bool{}
			for _, a := range log.requests() {
				switch {
				case a.ObjectRef.Resource == "leases":
					leads = leads || a.Verb == "create"
				case a.Verb == "watch" && a.ResponseStatus.Code >= http.StatusTooManyRequests: // while its storage starts
					refused[a.ObjectRef.Resource] = true
				case a.Verb == "list" && a.ResponseStatus.Code == http.StatusOK: // a new leader asks once what is stored
					Expect(leads).To(BeTrue(), a.String())
					Expect(listed[a.RequestURI] && !refused[a.ObjectRef.Resource]).To(BeFalse(), a.String())
					listed[a.RequestURI] = true
				}
			}
			Expect(log.requests()).To(ContainElement(HaveField("RequestURI", ContainSubstring("sendInitialEvents=true"))))
		})
	}

	whole("has used all rights that it has", func() {
		Expect(log.unused(rights)).To(ConsistOf(
			// No request shows this right: an admission plugin requires it where an owner
			// is set. The next spec removes it.
			`ClusterRole "website": update websites/finalizers.example.flyball.dev`,
		))
	})

	whole("cannot do without the right that no request shows", func(ctx context.Context) {
		role := kubectl(ctx, "get", "clusterrole", "website", "-o", "json")
		var had rbacv1.ClusterRole
		Expect(yaml.Unmarshal([]byte(role), &had)).To(Succeed())
		for i, rule := range had.Rules {
			if rule.Resources[0] == "websites/finalizers" {
				kubectl(ctx, "patch", "clusterrole", "website", "--type=json", "-p", fmt.Sprintf(`[{"op":"remove","path":"/rules/%d"}]`, i))
			}
		}
		third := run("third")
		network.serves(admin, deployment, third)
		third.says("Leader elected")
		ready(third)
		kubectl(ctx, "apply", "-f", "config/sample.yaml")
		Eventually(log.refused).WithTimeout(30 * time.Second).Should(ContainElement(
			ContainSubstring("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on")))
	})
}

// overlay creates a directory with a kustomization that contains line, formatted with the
// path of a directory of this example.
func overlay(line, path string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	here, err := os.Getwd()
	Expect(err).NotTo(HaveOccurred())
	to, err := filepath.Rel(dir, filepath.Join(here, path))
	Expect(err).NotTo(HaveOccurred())
	text := "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + fmt.Sprintf(line, to) + "\n"
	Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)).To(Succeed())
	return dir
}
