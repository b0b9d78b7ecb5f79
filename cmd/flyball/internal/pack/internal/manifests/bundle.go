// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// BundleOptions of a bundle.
type BundleOptions struct {
	Name        string // of the package; empty: that of the Deployment
	Version     string // a semantic version
	Channel     string
	Description string
	SampleFile  string // with sample objects; empty: none
	MergeFile   string // with fields of the ClusterServiceVersion; empty: none
}

// bundle is being made.
type bundle struct {
	base     *Rendered
	opts     BundleOptions
	objects  []Object // beside the ClusterServiceVersion
	webhooks []any
	consumed map[string]bool // objects that the ClusterServiceVersion stands for
	warnings []string
}

// Bundle is the result.
type Bundle struct {
	Files    map[string][]byte
	Warnings []string // what a person should know
	labels   [][2]string
}

// NewBundle makes a bundle. It changes the base.
func NewBundle(b *Rendered, opts BundleOptions) (*Bundle, error) {
	opts.Name = cmp.Or(opts.Name, b.Deployment.Name())
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`).MatchString(opts.Name) {
		return nil, fmt.Errorf("%q is no name of a package: it has lower-case letters, digits and dashes; give another with -name", opts.Name)
	}
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9._]*[a-z0-9])?$`).MatchString(opts.Channel) {
		return nil, fmt.Errorf("%q is no name of a channel; write -channel stable", opts.Channel)
	}
	if !regexp.MustCompile(`^[-.0-9a-z]*[0-9a-z]$`).MatchString(opts.Version) {
		return nil, fmt.Errorf("version %s: the ClusterServiceVersion is named after it, so it has lower-case letters, digits, dashes and dots, and no +; give another with -version", opts.Version)
	}
	m := &bundle{base: b, opts: opts, consumed: map[string]bool{}}
	if err := m.findWebhooks(); err != nil {
		return nil, err
	}
	granted, err := m.permissions()
	if err != nil {
		return nil, err
	}
	if err := m.others(); err != nil {
		return nil, err
	}
	csv, err := m.clusterServiceVersion(granted)
	if err != nil {
		return nil, err
	}
	out := &Bundle{Files: map[string][]byte{}, labels: m.about()}
	if err := m.write(out.Files, csv); err != nil {
		return nil, err
	}
	out.Warnings = m.warnings
	return out, nil
}

func (m *bundle) warn(format string, args ...any) {
	m.warnings = append(m.warnings, fmt.Sprintf(format, args...))
}

// installed are the kinds that OLM installs from a bundle, and whether they have a
// namespace.
var installed = map[string]bool{
	"ClusterRole": false, "ClusterRoleBinding": false, "ConfigMap": true, "ConsoleCLIDownload": false, "ConsoleLink": false,
	"ConsoleQuickStart": false, "ConsoleYAMLSample": false, "CustomResourceDefinition": false, "NetworkPolicy": true,
	"PodDisruptionBudget": true, "PriorityClass": false, "PrometheusRule": true, "Role": true, "RoleBinding": true, "Secret": true,
	"Service": true, "ServiceAccount": true, "ServiceMonitor": true, "VerticalPodAutoscaler": true,
}

// others collects the objects that stay beside the ClusterServiceVersion.
func (m *bundle) others() error {
	accounts := map[string]bool{}
	for _, d := range m.base.Of(Apps, "Deployment") {
		accounts[String(d, "spec", "template", "spec", "serviceAccountName")] = true
	}
	var problems []error
	for _, o := range m.base.Objects {
		namespaced, known := installed[o.Kind()]
		switch {
		case m.consumed[o.String()] || o.Is(Apps, "Deployment"):
		case o.Is(Core, "Namespace") && o.Name() == m.base.Namespace:
		case o.Is(Core, "ServiceAccount") && o.Namespace() == m.base.Namespace && accounts[o.Name()]:
			if len(Map(o, "metadata", "annotations")) > 0 {
				m.warn("OLM creates %s without its annotations", o)
			}
		case !known:
			problems = append(problems, fmt.Errorf("OLM installs no %s: leave %s out in a kustomize overlay, and give that", o.Kind(), o))
		case namespaced && o.Namespace() != m.base.Namespace:
			problems = append(problems, fmt.Errorf("OLM installs into one namespace, and %s is not in the operator's; leave it out in a kustomize overlay, and give that", o))
		default:
			delete(Map(o, "metadata"), "namespace")
			if !o.Is(Extensions, "CustomResourceDefinition") { // whose conversion OLM sets
				m.named(o)
			}
			m.objects = append(m.objects, o)
		}
	}
	return errors.Join(problems...)
}

// named warns of an object that names the namespace of the base, which OLM does not change.
func (m *bundle) named(o Object) {
	text, err := json.Marshal(o)
	if err != nil {
		return
	}
	for _, place := range []string{"." + m.base.Namespace + ".svc", `"namespace":"` + m.base.Namespace + `"`, `"matchNames":["` + m.base.Namespace + `"]`} {
		if strings.Contains(string(text), place) {
			m.warn("%s names the namespace %s, and OLM may install the operator in another", o, m.base.Namespace)
			return
		}
	}
}

// grants are the rules of a ServiceAccount, in the operator's namespace and in the cluster.
type grants struct {
	account       string
	rules         []any
	inAll         []any
	roleOf, allOf []string // the roles that they come from
}

// permissions takes the rules of the base's roles for each ServiceAccount of its namespace.
func (m *bundle) permissions() ([]*grants, error) {
	var all []*grants
	of := func(account string) *grants {
		i := slices.IndexFunc(all, func(g *grants) bool { return g.account == account })
		if i < 0 {
			i, all = len(all), append(all, &grants{account: account})
		}
		return all[i]
	}
	var problems []error
	for _, binding := range m.base.Objects {
		cluster := binding.Is(RBAC, "ClusterRoleBinding")
		if !cluster && !binding.Is(RBAC, "RoleBinding") {
			continue
		}
		accounts, others := m.subjects(binding)
		if len(accounts) == 0 {
			continue // it stays as it is
		}
		if !cluster && binding.Namespace() != m.base.Namespace {
			problems = append(problems, fmt.Errorf("%s grants rights in a namespace that is not the operator's, which OLM cannot; use a ClusterRole", binding))
			continue
		}
		role := m.role(binding)
		if role == nil {
			problems = append(problems, fmt.Errorf("%s grants the %s %s, which is not in the base, and OLM grants rules; write them into a role of the base", binding, String(binding, "roleRef", "kind"), String(binding, "roleRef", "name")))
			continue
		}
		if role["aggregationRule"] != nil {
			problems = append(problems, fmt.Errorf("%s has rules that the server aggregates, and OLM grants rules; write them out", role))
			continue
		}
		for _, account := range accounts {
			g := of(account)
			if cluster {
				g.inAll, g.allOf = append(g.inAll, List(role, "rules")...), append(g.allOf, role.Name())
			} else {
				g.rules, g.roleOf = append(g.rules, List(role, "rules")...), append(g.roleOf, role.Name())
			}
		}
		if len(others) == 0 {
			m.consumed[binding.String()], m.consumed[role.String()] = true, true
		} else {
			binding["subjects"] = others
		}
	}
	for _, binding := range slices.Concat(m.base.Of(RBAC, "ClusterRoleBinding"), m.base.Of(RBAC, "RoleBinding")) {
		if role := m.role(binding); role != nil && !m.consumed[binding.String()] {
			delete(m.consumed, role.String()) // others have it, too
		}
	}
	return all, errors.Join(problems...)
}

// subjects returns the ServiceAccounts of the operator's namespace, and the other subjects.
func (m *bundle) subjects(binding Object) (accounts []string, others []any) {
	for _, s := range List(binding, "subjects") {
		subject, _ := s.(map[string]any)
		if String(subject, "kind") == "ServiceAccount" && String(subject, "namespace") == m.base.Namespace {
			accounts = append(accounts, String(subject, "name"))
		} else {
			others = append(others, s)
		}
	}
	return accounts, others
}

// role returns the role of a binding, if the base has it.
func (m *bundle) role(binding Object) Object {
	kind := String(binding, "roleRef", "kind")
	for _, o := range m.base.Of(RBAC, kind) {
		if o.Name() == String(binding, "roleRef", "name") && (kind == "ClusterRole" || o.Namespace() == binding.Namespace()) {
			return o
		}
	}
	return nil
}

// write adds the files.
func (m *bundle) write(files map[string][]byte, csv Object) error {
	put := func(name string, object any) error {
		text, err := yaml.Marshal(object)
		files[name] = text
		return err
	}
	if err := put("bundle/manifests/"+m.opts.Name+".clusterserviceversion.yaml", csv); err != nil {
		return err
	}
	for _, o := range m.objects {
		name := fmt.Sprintf("bundle/manifests/%s_%s.yaml", strings.ReplaceAll(o.Name(), ":", "-"), strings.ToLower(o.Kind()))
		if _, taken := files[name]; taken {
			return fmt.Errorf("two objects of the base are a %s with the name %s; rename one", o.Kind(), o.Name())
		}
		if err := put(name, o); err != nil {
			return err
		}
	}
	var annotations, dockerfile strings.Builder
	annotations.WriteString("annotations:\n")
	dockerfile.WriteString("# Build it in this directory.\nFROM scratch\n\n")
	for _, a := range m.about() {
		text, err := yaml.Marshal(a[1]) // a channel such as 1.0 is no number
		if err != nil {
			return err
		}
		fmt.Fprintf(&annotations, "  %s: %s", a[0], text)
		fmt.Fprintf(&dockerfile, "LABEL %s=%s\n", a[0], a[1])
	}
	dockerfile.WriteString("\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\nCOPY bundle/tests/scorecard /tests/scorecard/\n")
	files["bundle/metadata/annotations.yaml"] = []byte(annotations.String())
	files["bundle.Dockerfile"] = []byte(dockerfile.String())
	return put("bundle/tests/scorecard/config.yaml", scorecard())
}

// about are the annotations of the bundle, and the labels of its image.
func (m *bundle) about() [][2]string {
	const in = "operators.operatorframework.io."
	return [][2]string{
		{in + "bundle.mediatype.v1", "registry+v1"}, {in + "bundle.manifests.v1", "manifests/"}, {in + "bundle.metadata.v1", "metadata/"},
		{in + "bundle.package.v1", m.opts.Name}, {in + "bundle.channels.v1", m.opts.Channel}, {in + "bundle.channel.default.v1", m.opts.Channel},
		{in + "test.mediatype.v1", "scorecard+v1"}, {in + "test.config.v1", "tests/scorecard/"},
	}
}

// Labels are those of the bundle's image.
func (b *Bundle) Labels() map[string]string {
	out := map[string]string{}
	for _, a := range b.labels {
		out[a[0]] = a[1]
	}
	return out
}

// scorecard is the configuration of operator-sdk's tests.
func scorecard() any {
	var tests []any
	for _, test := range []string{"basic-check-spec", "olm-bundle-validation", "olm-crds-have-validation", "olm-crds-have-resources", "olm-spec-descriptors", "olm-status-descriptors"} {
		suite, _, _ := strings.Cut(test, "-")
		tests = append(tests, map[string]any{
			"entrypoint": []any{"scorecard-test", test}, "image": "quay.io/operator-framework/scorecard-test:v1.41.1",
			"labels": map[string]any{"suite": suite, "test": test + "-test"},
		})
	}
	return map[string]any{
		"apiVersion": "scorecard.operatorframework.io/v1alpha3", "kind": "Configuration",
		"metadata": map[string]any{"name": "config"},
		"stages":   []any{map[string]any{"parallel": true, "tests": tests}},
	}
}

// samples returns the sample objects of the owned kinds as JSON.
func (m *bundle) samples() (string, error) {
	found := []any{}
	if m.opts.SampleFile != "" {
		objects, err := Documents(m.opts.SampleFile)
		if err != nil {
			return "", err
		}
		var groups []string
		for _, o := range m.base.Of(Extensions, "CustomResourceDefinition") {
			groups = append(groups, String(o, "spec", "group"))
		}
		for _, o := range objects {
			if slices.Contains(groups, o.Group()) {
				delete(Map(o, "metadata"), "namespace")
				found = append(found, o)
			}
		}
	}
	text, err := json.MarshalIndent(found, "", "  ")
	return string(text), err
}
