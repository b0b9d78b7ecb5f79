// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	crenvtest "sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/flyball-dev/flyball/internal/keypair"
)

// operatorNamespace is where the operators keep what is their own, such as their lease.
const operatorNamespace = "operators"

// started is an operator whose program is started.
type started struct {
	foreign
	name    string
	program string   // the package of its program
	noOps   string   // the file with the line, if it makes writes that change nothing
	flags   string   // of the linker
	crds    []string // the CRDs in the copy
	args    []string
	env     []string
	// prepared returns more arguments and variables. Nil: there are none.
	prepared func(*testing.T) (args, env []string)
	// limit is the part of the peak that is the memory limit: 3 for a third. limitVariable is
	// set to the limit.
	limit         int64
	limitVariable string
	// objects are custom resources, for each of names. NAMESPACE in them is a new one.
	objects string
	names   []string
	// made is a kind of objects that the operator makes for them, with finalizers. Zero: none.
	made schema.GroupVersionKind
	// writes is a regular expression of writes, such as "PUT /path", that only reconciles make.
	writes string
}

// The programs of an operator.
const (
	asItIs    = "as it is"
	withLine  = "with the line"
	withNoOps = "with the line and OmitNoOps"
)

// built builds the programs, in a copy at a directory. All have the same libraries.
func (o started) built(t *testing.T) (at string, programs map[string]string) {
	t.Helper()
	programs = map[string]string{}
	o.kept = "started-"
	// A package that imports the bridge, but not the program, lifts the libraries.
	o.files = map[string]string{"lift/lift.go": "package lift\n\nimport _ \"" + theBridge + "\"\n"}
	o.packages = append(slices.Clone(o.packages), "./lift")
	at = o.copied(t)
	for _, program := range []string{asItIs, withLine, withNoOps} {
		switch {
		case program == withLine:
			o.adopt(t, at)
		case program == withNoOps && o.noOps == "":
			continue
		case program == withNoOps:
			swapIn(t, at, map[string][]swap{o.noOps: {omitsNoOps}})
		}
		programs[program] = filepath.Join(t.TempDir(), o.name)
		outputIn(t, at, "go", "build", "-mod=mod", "-ldflags=-s -w "+o.flags,
			"-o", programs[program], "./"+o.program)
	}
	return at, programs
}

// omitsNoOps sets OmitNoOps where the line is.
var omitsNoOps = swap{"bridge.Options(", `func(opts ctrl.Options) ctrl.Options {
	opts.NewClient = bridge.ClientOptions{OmitNoOps: true}.NewClient
	return bridge.Options(opts)
}(`, 1}

// adopt puts the line into the copy.
func (o started) adopt(t *testing.T, at string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "run", "./flyball", "adopt", "-n", "-C", at)
	cmd.Dir = filepath.Join("..", "..", "..", "cmd")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Logf("flyball adopt:\n%s", said)
}

// install installs the operator's CRDs, from its copy.
func (o started) install(t *testing.T, config *rest.Config, at string) {
	t.Helper()
	var from crenvtest.CRDInstallOptions
	for _, crd := range o.crds {
		from.Paths = append(from.Paths, filepath.Join(at, crd))
	}
	if _, err := crenvtest.InstallCRDs(config, from); err != nil {
		t.Fatal(err)
	}
}

// create creates the custom resources, and returns a function that removes them with the
// operator's leases.
func (o started) create(t *testing.T, config *rest.Config, number int) (remove func()) {
	t.Helper()
	c, err := crclient.New(config, crclient.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := fmt.Sprintf("guests-%s-%d", o.name, number)
	for _, name := range []string{operatorNamespace, namespace} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := c.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	var objects []*unstructured.Unstructured
	for _, name := range o.names {
		text := strings.NewReplacer("NAMESPACE", namespace, "NAME", name).Replace(o.objects)
		objects = append(objects, documents(t, text)...)
	}
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		ctx := context.WithoutCancel(t.Context())
		if !o.made.Empty() {
			made := &unstructured.UnstructuredList{}
			made.SetGroupVersionKind(o.made)
			if err := c.List(ctx, made, crclient.InNamespace(namespace)); err != nil {
				t.Error(err)
			}
			for i := range made.Items {
				objects = append(objects, &made.Items[i])
			}
		}
		for _, obj := range objects {
			none := crclient.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			for _, err := range []error{c.Patch(ctx, obj, none), c.Delete(ctx, obj)} {
				if crclient.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			}
		}
		for _, kind := range leftovers {
			for _, ns := range []string{namespace, operatorNamespace} {
				err := c.DeleteAllOf(ctx, kind, crclient.InNamespace(ns), crclient.GracePeriodSeconds(0))
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// leftovers are what operators have created, so that each start finds the same.
var leftovers = []crclient.Object{
	&coordinationv1.Lease{}, &corev1.Secret{}, &corev1.ConfigMap{}, &appsv1.StatefulSet{},
	&appsv1.Deployment{}, &policyv1.PodDisruptionBudget{}, &rbacv1.Role{}, &rbacv1.RoleBinding{},
	&corev1.ServiceAccount{}, &corev1.Event{},
}

// documents returns the objects of a text in YAML.
func documents(t *testing.T, text string) (all []*unstructured.Unstructured) {
	t.Helper()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, obj)
	}
}

// startedOperators are the operators whose starts are measured.
var startedOperators = []started{
	{
		name:    "eck",
		foreign: foreign{module: eck.module, packages: []string{"./cmd/..."}},
		program: "cmd",
		flags:   "-X github.com/elastic/cloud-on-k8s/v3/pkg/about.version=3.5.0",
		crds:    []string{"config/crds/v1/all-crds.yaml"},
		args:    []string{"manager", "--operator-namespace=" + operatorNamespace},
		limit:   2,
		names:   []string{"a", "b", "c"},
		objects: `
apiVersion: elasticsearch.k8s.elastic.co/v1
kind: Elasticsearch
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  version: 9.4.3
  nodeSets:
  - {name: default, count: 3, config: {node.store.allow_mmap: false}}
---
apiVersion: kibana.k8s.elastic.co/v1
kind: Kibana
metadata: {name: NAME, namespace: NAMESPACE}
spec:
  version: 9.4.3
  count: 1
  elasticsearchRef: {name: NAME}
`,
		writes: `^(POST|PUT|PATCH) .*/namespaces/guests-eck-[0-9]+/`,
	},
	{
		name:    "karpenter",
		foreign: foreign{module: karpenter.module, packages: []string{"./kwok/..."}},
		program: "kwok",
		crds:    []string{"pkg/apis/crds", "kwok/apis/crds"},
		env: []string{
			"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "SYSTEM_NAMESPACE=" + operatorNamespace,
			"LEADER_ELECTION_NAMESPACE=" + operatorNamespace,
		},
		limitVariable: "MEMORY_LIMIT",
		limit:         3,
		names:         []string{"a", "b"},
		objects: `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: NAME}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: NAME}
spec:
  template:
    spec:
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: NAME}
`,
		writes: `^(PUT|PATCH) /apis/karpenter.sh/v1/nodepools/`,
	},
	{
		name: "rabbitmq",
		foreign: foreign{
			module: rabbitMQ.module, packages: []string{"./cmd/..."},
			mod: []string{"-require=sigs.k8s.io/controller-runtime@v0.25.2"},
		},
		program: "cmd",
		noOps:   "cmd/main.go",
		crds:    []string{"config/crd/bases"},
		args:    []string{"-metrics-bind-address=0", "-health-probe-bind-address=0"},
		env:     []string{"OPERATOR_NAMESPACE=" + operatorNamespace},
		limit:   2,
		names:   []string{"a", "b", "c", "d", "e"},
		objects: `
apiVersion: rabbitmq.com/v1beta1
kind: RabbitmqCluster
metadata: {name: NAME, namespace: NAMESPACE}
`,
		writes: `^(POST|PUT|PATCH) .*/namespaces/guests-rabbitmq-[0-9]+/`,
	},
	{
		name: "kueue",
		foreign: foreign{
			module: kueue.module, without: kueue.without, packages: []string{"./cmd/kueue"},
			swaps: map[string][]swap{"cmd/kueue/main.go": {{
				`metricsCertPath := "/etc/kueue/metrics/certs"`,
				`metricsCertPath := os.Getenv("` + kueueCertificate + `")`, 1,
			}}},
		},
		program:  "cmd/kueue",
		crds:     []string{"config/components/crd/bases"},
		args:     []string{"--feature-gates=VisibilityOnDemand=false"}, // a server of its own
		prepared: kueueConfig,
		limit:    3,
		names:    []string{"a", "b"},
		made:     schema.GroupVersionKind{Group: "kueue.x-k8s.io", Version: "v1beta2", Kind: "Workload"},
		objects: `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: NAME}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: NAME, resources: [{name: cpu, nominalQuota: 9}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: NAME, namespace: NAMESPACE}
spec: {clusterQueue: NAME}
---
apiVersion: batch/v1
kind: Job
metadata: {name: NAME, namespace: NAMESPACE, labels: {kueue.x-k8s.io/queue-name: NAME}}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: a, resources: {requests: {cpu: 1}}}]
`,
		writes: `^(POST|PUT|PATCH) /apis/kueue.x-k8s.io/`,
	},
}

// kueueCertificate is a variable in the environment of Kueue, for a directory.
const kueueCertificate = "FLYBALL_GUESTS_CERTIFICATE"

// kueueConfig writes Kueue's configuration, with the certificate that in a cluster is mounted.
func kueueConfig(t *testing.T) (args, env []string) {
	t.Helper()
	dir := t.TempDir()
	by, err := keypair.NewAuthority(time.Now(), "guests")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := by.Server(time.Now(), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	for file, text := range map[string]string{
		filepath.Join(dir, "tls.crt"): string(pair.Cert), filepath.Join(dir, "tls.key"): string(pair.Key),
		config: `apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: ` + operatorNamespace + `
health: {healthProbeBindAddress: ":0"}
metrics: {bindAddress: "0"}
webhook: {port: 19443, certDir: ` + dir + `}
internalCertManagement: {enable: false}
leaderElection:
  leaderElect: true
  resourceName: kueue
  resourceNamespace: ` + operatorNamespace + `
integrations: {frameworks: [batch/job, pod]}
`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--config=" + config}, []string{kueueCertificate + "=" + dir}
}
