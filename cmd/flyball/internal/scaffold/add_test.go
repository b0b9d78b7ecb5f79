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
		{Addition{Dir: dir}.AddWebhook, []string{"config/operator.yaml", "main.go", "operator_test.go", "webhook.go", "webhook_test.go"}},
		{Addition{Dir: dir, Kind: "Backup", Children: []string{"Job", "Secret"}}.AddKind,
			[]string{"api/v1/backup.go", "backup.go", "backup_test.go", "config/crd.yaml", "config/operator.yaml", "config/sample.yaml", "main.go", "operator_test.go", "reconciler.go"}},
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
	replace := func(dir, name, old, by string) {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), old) {
			t.Fatalf("%s: %v, want it to have %q", name, err, old)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), old, by, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		change func(dir string)
		kind   string
		want   string
	}{
		{func(string) {}, "Database", "already"},
		{func(string) {}, "backup", "--kind Backup"},
		{func(string) {}, "Client", "choose another kind"},
		{func(dir string) { replace(dir, "reconciler.go", "return mgr.Add(c)", "return add(mgr, c)") }, "Backup", "mgr.Add(c)"},
		{func(dir string) { replace(dir, "main.go", "apiv1.AddToScheme(scheme)", "add(scheme)") }, "Backup", "apiv1.AddToScheme(scheme)"},
		{func(dir string) { replace(dir, "reconciler.go", "func mine() {}", "func  mine() {}") }, "Backup", "gofmt -w reconciler.go"},
		{func(dir string) { replace(dir, "reconciler.go", "func mine() {}", "func mine() {") }, "Backup", "reconciler.go"},
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
