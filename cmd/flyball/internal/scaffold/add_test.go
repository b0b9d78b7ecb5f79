// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// written writes a project into a directory, with a comment of a person in each Go file.
func written(t *testing.T, p Project) string {
	t.Helper()
	p.Dir, p.Version = filepath.Join(t.TempDir(), "module"), "v1.2.3"
	w, err := p.Write()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range w.Files {
		if isGo(name) {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = bytes.Replace(text, []byte("\nimport"), []byte("\n// A person's remark.\n\nimport"), 1)
			text = append(text, "\n// mine is a person's.\nfunc mine() {}\n"...)
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p.Dir
}

func everything(t *testing.T, dir string) files {
	t.Helper()
	all := files{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(dir)+"/")] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAddition_LeavesEveryLine_Q5(t *testing.T) {
	dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
	for _, c := range []struct {
		add  func() ([]string, error)
		want []string
	}{
		{Addition{Dir: dir}.AddWebhook, []string{"config/operator.yaml", "main.go", "operator_test.go", "simulated.go", "webhook.go", "webhook_test.go"}},
		{Addition{Dir: dir, Kind: "Backup", Children: []string{"Job", "Secret"}}.AddKind,
			[]string{"api/v1/backup.go", "backup.go", "backup_test.go", "config/crd.yaml", "config/operator.yaml", "config/sample.yaml", "main.go", "operator_test.go", "reconciler.go"}},
		{Addition{Dir: dir, Kind: "Database", Version: "v2"}.AddVersion,
			[]string{"api/v1/database.go", "api/v2/database.go", "api/v2/database_conversion.go", "config/crd.yaml", "config/operator.yaml", "conversion.go", "database_v2_test.go", "main.go", "operator_test.go", "simulated.go", "webhook.go", "webhook_test.go"}},
		{Addition{Dir: dir, Kind: "Backup", Version: "v2"}.AddVersion,
			[]string{"api/v1/backup.go", "api/v2/backup.go", "api/v2/backup_conversion.go", "backup_v2_test.go", "config/crd.yaml", "config/operator.yaml", "conversion.go", "main.go", "operator_test.go"}},
		{Addition{Dir: dir, Kind: "Database", Version: "v1beta1"}.AddVersion,
			[]string{"api/v1beta1/database.go", "api/v1beta1/database_conversion.go", "config/crd.yaml", "conversion.go", "database_v1beta1_test.go", "main.go", "operator_test.go"}},
	} {
		before := everything(t, dir)
		changed, err := c.add()
		if err != nil {
			t.Fatal(err)
		}
		after := everything(t, dir)
		if !slices.Equal(changed, c.want) {
			t.Errorf("%v have changed, want %v", changed, c.want)
		}
		for name, text := range before {
			if line := lost(text, after[name]); line != "" {
				t.Errorf("%s has lost the line %q:\n%s", name, line, after[name])
			}
			if same := bytes.Equal(text, after[name]); same == slices.Contains(changed, name) {
				t.Errorf("%s is unchanged: %v, and the list of changed files is %v", name, same, changed)
			}
		}
	}
}

func TestAddition_ThatCannotBeMadeChangesNothing_Q5(t *testing.T) {
	for _, c := range []struct {
		change func(dir string)
		kind   string
		want   string
	}{
		{func(string) {}, "Database", "already"},
		{func(string) {}, "backup", "--kind Backup"},
		{func(string) {}, "Client", "choose another kind"},
		{func(dir string) { replaceIn(t, dir, "reconciler.go", "return mgr.Add(c)", "panic(c)") }, "Backup", "setupBackups(mgr)"},
		{func(dir string) {
			replaceIn(t, dir, "reconciler.go", "func setup(mgr *manager.Manager) error {",
				"func setup(mgr *manager.Manager) error { return setupWith(mgr, mgr) }\n\n"+
					"func setupWith(_ *manager.Manager, own interface{ Add(manager.Runnable) error }) error {\n\tmgr := own")
		}, "Backup", "setupBackups(mgr)"},
		{func(dir string) { replaceIn(t, dir, "main.go", "apiv1.AddToScheme(scheme)", "add(scheme)") }, "Backup", "apiv1.AddToScheme(scheme)"},
		{func(dir string) { replaceIn(t, dir, "reconciler.go", "func mine() {}", "func  mine() {}") }, "Backup", "gofmt -w reconciler.go"},
		{func(dir string) { replaceIn(t, dir, "reconciler.go", "func mine() {}", "func mine() {") }, "Backup", "reconciler.go"},
		{func(dir string) {
			if err := os.WriteFile(filepath.Join(dir, "backup.go"), []byte("package main\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "Backup", "backup.go is there already"},
		{func(dir string) {
			if err := os.Remove(filepath.Join(dir, "operator_test.go")); err != nil {
				t.Fatal(err)
			}
		}, "Backup", "no operator_test.go"},
	} {
		dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
		c.change(dir)
		before := everything(t, dir)
		if changed, err := (Addition{Dir: dir, Kind: c.kind}).AddKind(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("add %s: %v, %v, want an error with %q", c.kind, changed, err, c.want)
		}
		compare(t, everything(t, dir), before, "the module before")
	}
}

// The call of a further kind has its place when people have divided setup, as examples/website.
func TestAddition_KindAfterSetupIsDivided_Q5(t *testing.T) {
	for _, body := range []string{
		"return add(mgr, c)",
		"return mgr.Add(controllerOf(mgr, c))",
		"return errors.Join(mgr.Add(c), mgr.AddReadyCheck(\"x\", check))",
	} {
		for _, divided := range []struct{ from, with, argument string }{
			{"", "", "mgr"},
			{"setupWith(mgr, nil)", "m *manager.Manager, _ any", "m"},
			{"setupWith(nil, mgr)", "_ any, m *manager.Manager", "m"},
			{"setupWith(nil, mgr)", "_, m *manager.Manager", "m"},
		} {
			dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
			replaceIn(t, dir, "reconciler.go", "return mgr.Add(c)", body)
			if divided.from != "" {
				replaceIn(t, dir, "reconciler.go", "func setup(mgr *manager.Manager) error {",
					"func setup(mgr *manager.Manager) error { return "+divided.from+" }\n\n"+
						"func setupWith("+divided.with+") error {\n\tmgr := m")
			}
			if _, err := (Addition{Dir: dir, Kind: "Backup"}).AddKind(); err != nil {
				t.Errorf("%s, divided: %q: %v", body, divided.with, err)
				continue
			}
			want := "\tif err := setupBackups(" + divided.argument + "); err != nil {\n\t\treturn err\n\t}\n\t" + body
			if text := string(everything(t, dir)["reconciler.go"]); !strings.Contains(text, want) {
				t.Errorf("reconciler.go has no\n%s\nin\n%s", want, text)
			}
		}
	}
}

// A module that was written before manager.ParseFlags, and before its simulated cluster could call
// webhooks, gets a webhook too.
func TestAddition_WebhookToAnOlderModule_Q5(t *testing.T) {
	dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
	replaceIn(t, dir, "main.go", "if err := manager.ParseFlags(flag.CommandLine, os.Args[1:]); err != nil {\n\t\treturn err\n\t}", "flag.Parse()")
	replaceIn(t, dir, "simulated.go", "Name: \"database-operator\", ", "")
	changed, err := Addition{Dir: dir}.AddWebhook()
	if want := []string{"config/operator.yaml", "main.go", "operator_test.go", "webhook.go", "webhook_test.go"}; err != nil || !slices.Equal(changed, want) {
		t.Errorf("%v have changed, %v; want %v", changed, err, want)
	}
	if text := string(everything(t, dir)["main.go"]); !strings.Contains(text, "\tflag.Parse()\n\tif *webhooks {\n") {
		t.Errorf("the flag is not read after flag.Parse:\n%s", text)
	}
}

// A shard is added, and then another.
func TestAddition_Shards_Q5(t *testing.T) {
	dir := written(t, Project{Module: "example.com/me/database", Kind: "Database", Webhook: true})
	for _, c := range []struct {
		name string
		want []string
	}{
		{"a", []string{"config/operator.yaml", "main.go", "shard_test.go"}},
		{"b", []string{"config/operator.yaml"}},
	} {
		before := everything(t, dir)
		changed, err := Addition{Dir: dir, Shard: c.name}.AddShard()
		if err != nil || !slices.Equal(changed, c.want) {
			t.Fatalf("%v have changed, %v, want %v", changed, err, c.want)
		}
		for name, text := range before {
			if line := lost(text, everything(t, dir)[name]); line != "" {
				t.Errorf("%s has lost the line %q", name, line)
			}
		}
	}
	all := everything(t, dir)
	manifests := string(all["config/operator.yaml"])
	for _, c := range []struct {
		text  string
		times int
	}{
		{"kind: Deployment\n", 3},
		{"app.kubernetes.io/name: database-operator\n", 3}, // the operator's Deployment twice, and its Service
		{"app.kubernetes.io/name: database-operator-a\n", 2},
		{"            - -leader-elect\n            - -shard=b\n", 1},
		{"- -webhooks\n", 1},
		{"resourceNames: [database-operator-b]\n", 1},
		{"serviceAccountName: database-operator\n", 3},
	} {
		if got := strings.Count(manifests, c.text); got != c.times {
			t.Errorf("config/operator.yaml has %q %d times, want %d:\n%s", c.text, got, c.times, manifests)
		}
	}
	if want := `Sharding: &manager.Sharding{Label: "example.com/shard", Kinds: []runtime.Object{&apiv1.Database{}}},`; !strings.Contains(string(all["main.go"]), want) {
		t.Errorf("main.go has no %s", want)
	}
	for _, c := range []struct{ name, want string }{
		{"", "give --name"}, {"A_b", "give --name"}, {"b", "another --name"},
	} {
		if _, err := (Addition{Dir: dir, Shard: c.name}).AddShard(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("shard %q: %v, want an error with %q", c.name, err, c.want)
		}
		compare(t, everything(t, dir), all, "the module before")
	}
}

// What replicas add is the same for a fresh module and for one that is there.
func TestAddition_Replicas_Q5(t *testing.T) {
	for _, webhook := range []bool{false, true} {
		dir := written(t, Project{Module: "example.com/me/database", Kind: "Database", Webhook: webhook})
		before := everything(t, dir)
		changed, err := Addition{Dir: dir, Replicas: 5}.AddReplicas()
		if want := []string{"config/autoscaler.yaml", "config/operator.yaml", "operator_test.go", "replicas_test.go"}; err != nil || !slices.Equal(changed, want) {
			t.Fatalf("%v have changed, %v, want %v", changed, err, want)
		}
		all := everything(t, dir)
		for name, text := range before {
			if line := lost(text, all[name]); line != "" && name != "config/operator.yaml" {
				t.Errorf("%s has lost the line %q", name, line)
			}
		}
		manifests := string(all["config/operator.yaml"])
		for _, c := range []struct {
			text  string
			times int
		}{
			{"  replicas: 5\n", 1},
			{"  replicas: 1\n", 0},
			{"            - -leader-elect\n            - -shards=64 #", 1},
			{"fieldPath: status.podIP\n", 1},
			{"resources: [leases]\n    verbs: [get, list, watch, create, update, delete]\n", 1},
			{"resources: [leases]\n", 1},
			{"kind: PodDisruptionBudget\n", 1},
			{"      topologySpreadConstraints:\n", 1},
			{"      maxUnavailable: 1\n      maxSurge: 1\n", 1},
		} {
			if got := strings.Count(manifests, c.text); got != c.times {
				t.Errorf("config/operator.yaml has %q %d times, want %d:\n%s", c.text, got, c.times, manifests)
			}
		}
		if text := string(all["config/autoscaler.yaml"]); !strings.Contains(text, "maxReplicas: 8 ") {
			t.Errorf("the autoscaler is not for 64 shards:\n%s", text)
		}
		fresh := everything(t, written(t, Project{Module: "example.com/me/database", Kind: "Database", Webhook: webhook, Replicas: 5}))
		for _, name := range []string{"config/autoscaler.yaml", "config/operator.yaml"} {
			if string(fresh[name]) != string(all[name]) {
				t.Errorf("flyball new --replicas 5 writes another %s:\n%s\nthan flyball add replicas 5:\n%s", name, fresh[name], all[name])
			}
		}
		if _, err := (Addition{Dir: dir, Replicas: 6}).AddReplicas(); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a second time: %v, want an error that says what to change", err)
		}
		compare(t, everything(t, dir), all, "the module before")
		if _, err := (Addition{Dir: dir, Shard: "a"}).AddShard(); err != nil {
			t.Errorf("a shard by label beside replicas: %v", err)
		}
	}
}

// Rights that people have changed stay, and so does all that would have to be united with what
// is added.
func TestAddition_ReplicasOfEditedManifests_Q5(t *testing.T) {
	for _, c := range []struct{ old, by, want string }{
		{"            - -leader-elect\n", "            - -leader-elect=true\n", "- -leader-elect"},
		{"  replicas: 1\n", "", "replicas: 1"},
		{"          args:\n", "          env:\n            - name: A\n              value: b\n          args:\n", "env:"},
	} {
		dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
		replaceIn(t, dir, "config/operator.yaml", c.old, c.by)
		before := everything(t, dir)
		changed, err := Addition{Dir: dir, Replicas: 3}.AddReplicas()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v have changed, %v; want an error with %q", c.by, changed, err, c.want)
		}
		compare(t, everything(t, dir), before, "the module before")
	}
	dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
	replaceIn(t, dir, "config/operator.yaml", "    verbs: [get, watch, update]\n", "    verbs: [get, watch, update, patch]\n")
	replaceIn(t, dir, "config/operator.yaml", "  replicas: 1\n", "  replicas: 2\n")
	if _, err := (Addition{Dir: dir, Replicas: 3}).AddReplicas(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"[get, watch, update, patch]", "  replicas: 3\n", "[get, list, watch, create, update, delete]"} {
		if text := string(everything(t, dir)["config/operator.yaml"]); strings.Count(text, want) != 1 {
			t.Errorf("config/operator.yaml has not once %q:\n%s", want, text)
		}
	}
}

// A Deployment that people have changed is not copied into one that acts on the same objects,
// or whose Pods the operator's Service would select.
func TestAddition_ShardOfAnEditedDeployment_Q5(t *testing.T) {
	for _, c := range []struct{ old, by, want string }{
		{"            - -leader-elect\n", "            - -leader-elect=true\n", "- -leader-elect"},
		{"    matchLabels:\n      app.kubernetes.io/name: database-operator\n", "    matchLabels:\n      app: database\n", "app.kubernetes.io/name: database-operator"},
	} {
		dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
		replaceIn(t, dir, "config/operator.yaml", c.old, c.by)
		before := everything(t, dir)
		if changed, err := (Addition{Dir: dir, Shard: "a"}).AddShard(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v have changed, %v; want an error with %q", c.by, changed, err, c.want)
		}
		compare(t, everything(t, dir), before, "the module before")
	}
}

// A Deployment before the operator's is another program's. Items of a list may be as far to
// the left as its name.
func TestAddition_ShardIsThatOfTheOperator_Q5(t *testing.T) {
	dir := written(t, Project{Module: "example.com/me/database", Kind: "Database", Webhook: true})
	replaceIn(t, dir, "config/operator.yaml", "apiVersion: apps/v1\nkind: Deployment\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  namespace: x\n  name: proxy\n---\napiVersion: apps/v1\nkind: Deployment\n")
	replaceIn(t, dir, "config/operator.yaml", "          ports:\n            - name: webhooks\n              containerPort: 9443\n",
		"          ports:\n          - name: webhooks\n            containerPort: 9443\n")
	if _, err := (Addition{Dir: dir, Shard: "a"}).AddShard(); err != nil {
		t.Fatal(err)
	}
	manifests := string(everything(t, dir)["config/operator.yaml"])
	for text, times := range map[string]int{"name: proxy\n": 1, "  name: database-operator-a\n": 1, "- name: webhooks\n": 1} {
		if got := strings.Count(manifests, text); got != times {
			t.Errorf("config/operator.yaml has %q %d times, want %d:\n%s", text, got, times, manifests)
		}
	}
}

func replaceIn(t *testing.T, dir, name, old, by string) {
	t.Helper()
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%s: %v, want it to have %q", name, err, old)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, by, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What is stored stays, and so do the versions that controllers use.
func TestAddition_AVersionLeavesTheStoredOne_Q6(t *testing.T) {
	for _, webhook := range []bool{false, true} {
		dir := written(t, Project{Module: "example.com/me/database", Kind: "Database", Webhook: webhook})
		for _, version := range []string{"v2", "v1alpha1"} {
			if _, err := (Addition{Dir: dir, Version: version}).AddVersion(); err != nil {
				t.Fatal(err)
			}
		}
		all := everything(t, dir)
		crd := string(all["config/crd.yaml"])
		for _, want := range []string{"    name: v1\n", "    name: v2\n", "    name: v1alpha1\n"} {
			if strings.Count(crd, want) != 1 {
				t.Errorf("config/crd.yaml has %q %d times, want once", want, strings.Count(crd, want))
			}
		}
		if first, _, _ := strings.Cut(crd, "    storage: true\n"); strings.Count(crd, "storage: true") != 1 || strings.Count(crd, "served: true") != 3 || !strings.HasSuffix(first[:strings.LastIndex(first, "    schema:\n")], "    name: v1\n") {
			t.Errorf("three versions are served, and v1 alone is stored: want that of\n%s", crd)
		}
		if text := string(all["reconciler.go"]); strings.Contains(text, "v2") {
			t.Errorf("the reconciler has another version:\n%s", text)
		}
		if text := string(all["conversion.go"]); strings.Count(text, "webhook.Convert(") != 1 || strings.Count(text, "webhook.Spoke(") != 2 || strings.Count(text, `"databases.example.com"`) != 1 {
			t.Errorf("one call converts two versions of one definition: want that of\n%s", text)
		}
		if text := string(all["config/operator.yaml"]); strings.Count(text, "[customresourcedefinitions]") != 1 || strings.Count(text, "kind: Service\n") != 1 {
			t.Errorf("there is one Service, and one right to write the definition: want that of\n%s", text)
		}
	}
}

func TestAddition_VersionThatCannotBeMadeChangesNothing_Q5(t *testing.T) {
	for _, c := range []struct {
		change        func(dir string)
		kind, version string
		want          string
	}{
		{nil, "", "", "--version v2"},
		{nil, "", "func", "--version v2"},
		{nil, "", "2", "--version v2"},
		{nil, "", "v0", "--version v2"},
		{nil, "", "v1gamma1", "--version v2"},
		{nil, "", "V2", "--version v2"},
		{nil, "", "v2beta", "--version v2"},
		{nil, "", "../v2", "--version v2"},
		{nil, "", "v1", "has the version v1 already"},
		{nil, "Backup", "v2", "no kind Backup"},
		{nil, "backup", "v2", "--kind Backup"},
		{func(dir string) {
			replaceIn(t, dir, "api/v1/database.go", "\nimport", "\n//go:generate flyball crds -o ../../config/crd.yaml .\n\nimport")
		}, "", "v2", "../..."},
		{func(dir string) { replaceIn(t, dir, "main.go", "apiv1.AddToScheme(scheme)", "add(scheme)") }, "", "v2", "apiv1.AddToScheme(scheme)"},
		{func(dir string) { replaceIn(t, dir, "operator_test.go", "stop();", "end();") }, "", "v2", "checkDatabaseV2(t, admin)"},
		{func(dir string) { replaceIn(t, dir, "config/crd.yaml", "name: databases.", "name: others.") }, "", "v2", "make crd"},
		{func(dir string) { replaceIn(t, dir, "webhook.go", "func addWebhooks", "func moreWebhooks") }, "", "v2", "addWebhooks"},
		{func(dir string) { replaceIn(t, dir, "webhook.go", "return given\n", "panic(given)\n") }, "", "v2", "end it in a return"},
		{func(dir string) { replaceIn(t, dir, "operator_test.go", "func callWebhooks", "func moreWebhooks") }, "", "v2", "callWebhooks"},
		{func(dir string) {
			if err := os.Mkdir(filepath.Join(dir, "api", "v2"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "api", "v2", "database.go"), []byte("package v2\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "", "v2", "api/v2/database.go is there already"},
	} {
		dir := written(t, Project{Module: "example.com/me/database", Kind: "Database", Webhook: true})
		if c.change != nil {
			c.change(dir)
		}
		before := everything(t, dir)
		if changed, err := (Addition{Dir: dir, Kind: c.kind, Version: c.version}).AddVersion(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("add version %s of %s: %v, %v, want an error with %q", c.version, c.kind, changed, err, c.want)
		}
		compare(t, everything(t, dir), before, "the module before")
	}
}

// The second run finds the version, and an operator without a CRD has none.
func TestAddition_VersionIsAddedOnce_Q5(t *testing.T) {
	dir := written(t, Project{Module: "example.com/me/database", Kind: "Database"})
	add := Addition{Dir: dir, Version: "v2"}.AddVersion
	if _, err := add(); err != nil {
		t.Fatal(err)
	}
	before := everything(t, dir)
	if _, err := add(); err == nil || !strings.Contains(err.Error(), "has the version v2 already") {
		t.Errorf("the second run: %v, want an error about the version", err)
	}
	compare(t, everything(t, dir), before, "the first run")

	builtin := written(t, Project{Module: "example.com/me/sync", Kind: "Namespace", Builtin: true})
	before = everything(t, builtin)
	if _, err := (Addition{Dir: builtin, Version: "v2"}).AddVersion(); err == nil || !strings.Contains(err.Error(), "with a CRD") {
		t.Errorf("without a CRD: %v, want an error about that", err)
	}
	compare(t, everything(t, builtin), before, "the module before")
}
