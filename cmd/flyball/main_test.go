// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/commandline"
)

var whole = flag.Bool("whole", false, "write three modules, and run their tests with all seeds and on a real API server")

// The guide's commands work: those for a clone from this one, and those for a release with the
// state of this clone in its place.
func TestNew_TheGuideWorks_Q1(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds an operator")
	}
	guide, err := os.ReadFile("../../docs/start.md")
	if err != nil {
		t.Fatal(err)
	}
	const flyball = "go run github.com/flyball-dev/flyball/cmd/flyball@latest "
	dir, counts := filepath.Join(t.TempDir(), "database"), map[string]int{}
	released := "" // what follows flyball new for a release
	for line := range strings.Lines(string(guide)) {
		command, isCommand := strings.CutPrefix(strings.TrimSpace(line), flyball)
		command, isFromClone := strings.CutPrefix(command, "go run ./cmd/flyball new ")
		command, isTest := strings.CutPrefix(command, "go test -short ")
		switch {
		case !strings.HasPrefix(line, "    "):
		case isCommand && strings.HasPrefix(command, "new "):
			released = strings.TrimPrefix(command, "new ")
		case isFromClone:
			if command != released+" --dir ../database --replace ." {
				t.Errorf("from a clone the guide has flyball new %s, for a release %s; want the same module", command, released)
			}
			goIn(t, "../..", append([]string{"run", "./cmd/flyball", "new"}, words(command, dir)...)...)
			targets(t, dir)
			counts["new"]++
		case isCommand:
			args := append(strings.Fields(command), "--dir", dir)
			mustRun(t, args)
			counts[args[0]]++
		case isTest:
			goIn(t, dir, slices.Concat([]string{"test"}, strings.Fields(command), depth())...)
			counts["test"]++
		case strings.TrimSpace(line) == "go run . -simulate":
			simulate(t, dir)
			counts["run"]++
		}
	}
	if counts["new"] != 1 || counts["add"] != 2 || counts["test"] != 3 || counts["run"] != 1 {
		t.Errorf("the guide has the commands %v, want one of new and run, two of add, and three of test", counts)
	}
	goIn(t, dir, "vet", "./...")
	checkCRD(t, dir)
	if *whole {
		changeVersion(t, dir)
	}
	if text, err := exec.CommandContext(t.Context(), "gofmt", "-l", dir).CombinedOutput(); err != nil || len(text) > 0 {
		t.Errorf("gofmt -l: %v\n%s", err, text)
	}
}

// targets types what the Makefile of a fresh module has, with the commands of this clone: what
// is written from the code is there already.
func targets(t *testing.T, dir string) {
	t.Helper()
	before := map[string]string{}
	for _, name := range []string{"config/crd.yaml", "config/operator.yaml"} {
		before[name] = read(t, filepath.Join(dir, name))
	}
	for _, target := range []string{"crd", "rights", "chart", "bundle"} {
		cmd := exec.CommandContext(t.Context(), "make", target)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, text)
		}
	}
	for name, text := range before {
		if now := read(t, filepath.Join(dir, name)); now != text {
			t.Errorf("make crd rights changes %s of a fresh module; the first line is now %q", name, firstOther(text, now))
		}
	}
	for _, name := range []string{"dist/chart/Chart.yaml", "dist/bundle/bundle/metadata/annotations.yaml"} {
		read(t, filepath.Join(dir, name))
	}
}

// firstOther returns the first line of now that differs from that of before.
func firstOther(before, now string) string {
	old := strings.Split(before, "\n")
	for i, line := range strings.Split(now, "\n") {
		if i >= len(old) || old[i] != line {
			return line
		}
	}
	return ""
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// README's command for a clone writes a module whose commands are those of the clone.
func TestNew_FromACloneAsREADMESays_Q1(t *testing.T) {
	_, start, _ := strings.Cut(read(t, "../../README.md"), "\n    go run ./cmd/flyball ")
	command, _, found := strings.Cut(start, "\n")
	dir := filepath.Join(t.TempDir(), "database")
	t.Chdir("../..")
	mustRun(t, words(command, dir))
	clone, err := os.Getwd()
	if err != nil || !found {
		t.Fatalf("%v; README has a command: %v", err, found)
	}
	for _, workspace := range []string{"", "off", filepath.Join(dir, "go.work")} { // the user's
		t.Setenv("GOWORK", workspace)
		cmd := exec.CommandContext(t.Context(), "make", "--dry-run", "crd", "image", "chart", "bundle")
		cmd.Dir = dir
		output, err := cmd.CombinedOutput()
		text := string(output)
		if n := strings.Count(text, "GOWORK='"+clone+"/go.work'"); err != nil || n != 4 ||
			strings.Contains(text, "/flyball@") {
			t.Errorf("make would run %d commands of the clone, %v; want four, and none of another "+
				"version:\n%s", n, err, text)
		}
		if n := strings.Count(text, " -exec \"env 'GOWORK="+workspace+"'\" "); n != 4 {
			t.Errorf("%d commands would have GOWORK=%s, want four:\n%s", n, workspace, text)
		}
	}
}

// words are those of a command of the guides, with a module in place of theirs.
func words(command, dir string) []string {
	all := strings.Fields(command)
	for i, word := range all {
		all[i] = strings.ReplaceAll(word, "../database", dir) // which may have a space
	}
	return all
}

// changeVersion gives the added version another field for the image, and one that the stored
// version has nothing for; then it makes that version the hub. Both is as docs/kinds.md says,
// and the tests pass on both servers.
func changeVersion(t *testing.T, dir string) {
	t.Helper()
	crd := func() { goIn(t, "..", "run", "./flyball", "crds", "-C", dir, "-o", "config/crd.yaml", "./api/...") }
	edit(t, dir, "api/v2/database.go", "\tImage string `json:\"image\"`\n", "\tPicture string `json:\"picture\"`\n\t// Class of the machines.\n\tClass string `json:\"class,omitempty\"`\n")
	edit(t, dir, "api/v2/database_conversion.go",
		"return apiv1.DatabaseSpec{\n\t\tImage:    from.Image,", "return apiv1.DatabaseSpec{\n\t\tImage:    from.Picture,",
		"return DatabaseSpec{\n\t\tImage:    from.Image,", "return DatabaseSpec{\n\t\tPicture:  from.Image,")
	edit(t, dir, "database_v2_test.go", "resourcetest.Options{}", "resourcetest.Options{Kept: []string{\"spec.class\"}}")
	crd()
	goIn(t, dir, "test", "-count=1", "-run", "V2|ControlPlane", ".")

	edit(t, dir, "api/v1/database.go", "// +kubebuilder:storageversion\n", "")
	edit(t, dir, "api/v2/database.go", "// +flyball:conversion", "// +kubebuilder:storageversion\n// +flyball:conversion")
	edit(t, dir, "api/v2/database_conversion.go", "(GroupVersion, apiv1.GroupVersion, databaseToV1, databaseFromV1)", "(apiv1.GroupVersion, GroupVersion, databaseFromV1, databaseToV1)")
	for _, name := range []string{"reconciler.go", "webhook.go", "operator_test.go"} {
		edit(t, dir, name, "apiv1", "apiv2", "api/v1\"", "api/v2\"", ".Spec.Image", ".Spec.Picture", "DatabaseSpec{Image:", "DatabaseSpec{Picture:")
	}
	edit(t, dir, "database_v2_test.go", ".FromHub", ".OtherWay", ".ToHub", ".FromHub", ".OtherWay", ".ToHub", "{Kept: []string{\"spec.class\"}}", "{}")
	edit(t, dir, "config/operator.yaml", "-v1-database", "-v2-database", "apiVersions: [v1]", "apiVersions: [v2]")
	crd()
	goIn(t, dir, "test", "-vet=all", "-count=1", ".")
}

// edit replaces texts in a file by others, wherever they are. At least one must be there.
func edit(t *testing.T, dir, name string, pairs ...string) {
	t.Helper()
	path := filepath.Join(dir, name)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(before)
	for i := 0; i < len(pairs); i += 2 {
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	if text == string(before) {
		t.Fatalf("%s has none of %q:\n%s", name, pairs, text)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestNew_ModulesPassTheirTests_Q1(t *testing.T) {
	if !*whole {
		t.Skip("it builds three more operators; make scaffold runs it")
	}
	for name, args := range map[string]string{
		"without a CRD":     "-kind=Namespace example.com/me/defaults.v2 --no-crd --group defaults.example.com -children ConfigMap,ServiceAccount --webhook",
		"without replicas":  "github.com/me/dns --kind DNSRecord --children ConfigMap,CronJob",
		"with an end":       "example.com/me/move --kind Migration --children ConfigMap,Job",
		"with six children": "github.com/me/orders/v2 --kind OrderPolicy --children Deployment,Service,ConfigMap,Secret,Job,ServiceAccount --replicas 3",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "module")
			mustRun(t, slices.Concat([]string{"new", "--dir", dir, "--replace", "../.."}, strings.Fields(args)))
			if name == "without replicas" {
				mustRun(t, []string{"add", "version", "--dir", dir, "--version", "v1alpha1"})
			}
			checkCRD(t, dir)
			goIn(t, dir, "build", "-tags", "production", "-o", os.DevNull, ".")
			goIn(t, dir, slices.Concat([]string{"test", "-vet=all", "./..."}, depth())...)
		})
	}
}

// depth are the flags that make a module's tests shorter, or none.
func depth() []string {
	if *whole {
		return []string{"-count=1"}
	}
	return []string{"-short", "-sim.seeds=5"}
}

func mustRun(t *testing.T, args []string) {
	t.Helper()
	var out, problems bytes.Buffer
	if err := run(args, &out, &problems); err != nil || problems.Len() > 0 {
		t.Fatalf("flyball %s: %v\n%s", strings.Join(args, " "), err, &problems)
	}
	if !strings.Contains(out.String(), "  main.go\n") {
		t.Errorf("flyball %s prints %s, want the files", strings.Join(args, " "), &out)
	}
}

// checkCRD compares the CRD with the Go types, if the module has some.
func checkCRD(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(dir, "api")); err == nil {
		goIn(t, "..", "run", "./flyball", "crds", "-C", dir, "-o", "config/crd.yaml", "-check", "./api/...")
	}
}

// goIn runs the go command in a module. It finds modules as the user's does: a fresh machine has
// downloaded none.
func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	workspace := "off"
	if dir == "../.." {
		workspace = "" // the clone's
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK="+workspace, "GOFLAGS=-mod=readonly")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// A kind that is unusual is written, with a warning.
func TestNew_WarnsOfAnUnusualKind_Q3(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "module")
	var out, problems bytes.Buffer
	err := run([]string{"new", "example.com/me/a", "--kind", "Workshops", "--dir", dir, "--replace", "../.."}, &out, &problems)
	if err != nil || !strings.Contains(problems.String(), "--kind Workshop,") || !strings.Contains(out.String(), "  main.go\n") {
		t.Errorf("%v; want the module and a warning that names Workshop:\n%s%s", err, &out, &problems)
	}
	problems.Reset()
	if err := run([]string{"add", "kind", "--kind", "Pod", "--dir", dir}, &out, &problems); err != nil || !strings.Contains(problems.String(), "--kind MyPod") {
		t.Errorf("%v; want the kind and a warning that names MyPod:\n%s", err, &problems)
	}
}

func TestRun_SaysWhatToWrite_Q3(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct{ args, want string }{
		{"make", "flyball new MODULE"},
		{"new", "--replace"},
		{"new --replace . example.com/a --kind B", "not a clone"},
		{"new --kind Database --children Service, Deployment", "domain name"},
		{"new example.com/a --king B", "no flag -king; do you mean -kind?"},
		{"add", "flyball add kind"},
		{"add nothing", "flyball add kind"},
		{"add version --version v2", "no go.mod"},
		{"add kind Backup", "--kind"},
		{"add replicas", "no go.mod"},
		{"add replicas many", "flyball add replicas 3"},
		{"add replicas 3 4", "flyball add replicas 3"},
		{"new example.com/a --kind Database --replicas 1", "2 to 512"},
		{"add kind --kind Backup", "no go.mod"},
		{"new example.com/a kind B", "-kind"},
	} {
		err := run(strings.Fields(c.args), &bytes.Buffer{}, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("flyball %s: %v, want an error with %q", c.args, err, c.want)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is there, want nothing", left, err)
	}
}

// Whoever asks for help gets it, and no error.
func TestCommands_HelpIsNoError_Q3(t *testing.T) {
	for _, line := range []string{"crds -help", "pack -help", "pack help", "pack image -h", "pack chart --help"} {
		var out, messages bytes.Buffer
		command, args := others(strings.Fields(line))
		if code := command(t.Context(), args, &out, &messages); code != 0 || !strings.Contains(messages.String(), "usage: flyball ") {
			t.Errorf("flyball %s: exit code %d, want 0 and the usage:\n%s", line, code, &messages)
		}
	}
	for _, line := range []string{"new -help", "add kind -help", "help", "-h", ""} {
		var out, messages bytes.Buffer
		if err := run(strings.Fields(line), &out, &messages); commandline.ExitCode(err) != 0 {
			t.Errorf("flyball %s: %v", line, err)
		}
	}
}

// Commands with exit codes of their own are reached.
func TestOthers_AdoptIsOne(t *testing.T) {
	command, args := others([]string{"adopt", "-C", t.TempDir()})
	if command == nil {
		t.Fatal("flyball adopt is not a command")
	}
	var out bytes.Buffer
	if code := command(t.Context(), args, &out, &out); code != 1 || !strings.Contains(out.String(), "go.mod") {
		t.Errorf("in an empty directory flyball adopt exits with %d, want 1 and an error about go.mod\n%s", code, &out)
	}
}
