// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/adopt"
	"github.com/flyball-dev/flyball/cmd/flyball/internal/crds"
	"github.com/flyball-dev/flyball/cmd/flyball/internal/doctor"
	"github.com/flyball-dev/flyball/cmd/flyball/internal/pack"
	"github.com/flyball-dev/flyball/cmd/flyball/internal/scaffold"
	"github.com/flyball-dev/flyball/internal/commandline"
)

func main() {
	if command, others := others(os.Args[1:]); command != nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		os.Exit(command(ctx, others, os.Stdout, os.Stderr))
	}
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	if code := commandline.ExitCode(err); code != 0 {
		fmt.Fprintln(os.Stderr, "flyball:", strings.ReplaceAll(err.Error(), "\n", "\n         "))
		os.Exit(code)
	}
}

// others returns the command that args name if it has its own exit codes, and its arguments.
func others(args []string) (func(ctx context.Context, args []string, out, problems io.Writer) int, []string) {
	switch {
	case len(args) > 0 && args[0] == "adopt":
		return adopt.Command{Version: version(), RunGo: goCommand}.Run, args[1:]
	case len(args) > 0 && args[0] == "crds":
		return crds.Run, args[1:]
	case len(args) > 0 && args[0] == "doctor":
		return doctor.Run, args[1:]
	case len(args) > 0 && args[0] == "pack":
		return pack.Run, args[1:]
	}
	return nil, nil
}

// run is main with explicit arguments and outputs.
func run(args []string, out, problems io.Writer) error {
	command := "help"
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "new":
		return runNew(args, out, problems)
	case "add":
		return runAdd(args, out, problems)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(out, usage)
		return nil
	}
	return commandline.Misusef("there is no command %q; write flyball new MODULE --kind KIND, flyball add kind, webhook, version, replicas or shard, flyball adopt, flyball doctor, flyball crds, or flyball pack", command)
}

const usage = `flyball writes the module of an operator, adds to it, edits one that is written
with controller-runtime, and makes what is generated from it:

  flyball new example.com/me/database --kind Database
  flyball add kind --kind Backup --children Job
  flyball add webhook --kind Database
  flyball add version --kind Database --version v2
  flyball add replicas 3
  flyball add shard --name a
  flyball adopt -C ../operator
  flyball doctor -crds config/crd -samples config/samples -- ./my-operator
  flyball crds -o config/crd.yaml ./api/...
  flyball pack image, chart, bundle or sbom

flyball new -help, flyball add kind -help, flyball crds -help and so on list the flags.
`

func runAdd(args []string, out, problems io.Writer) error {
	what := ""
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	var a scaffold.Addition
	var childKinds string
	flags := flag.NewFlagSet("flyball add "+what, flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.StringVar(&a.Dir, "dir", ".", "`directory` of the module")
	most, give := 0, "kinds by --kind and --children, separated by commas without spaces"
	if what != "replicas" {
		flags.StringVar(&a.Kind, "kind", "", "the `kind` to add, or to add a webhook or a version for")
	}
	switch what {
	case "replicas":
		a.Replicas, most, give = 3, 1, "one number of replicas, such as flyball add replicas 3"
	case "kind":
		flags.StringVar(&childKinds, "children", "", "`kinds` that the operator keeps for each object, separated by commas (default: Deployment)")
	case "webhook":
	case "version":
		flags.StringVar(&a.Version, "version", "", "the `version` to add, such as v2 or v1beta1; the stored one stays")
	case "shard":
		flags.StringVar(&a.Shard, "name", "", "`name` of the shard: the value of the label of its objects")
	default:
		return commandline.Misusef("%q cannot be added; write flyball add kind --kind KIND, flyball add webhook, flyball add version --version VERSION, flyball add replicas NUMBER, or flyball add shard --name NAME", what)
	}
	others, err := commandline.Arguments(flags, args, most, give)
	if err != nil {
		return err
	}
	if len(others) == 1 {
		if a.Replicas, err = strconv.Atoi(others[0]); err != nil {
			return commandline.Misusef("%q is not a number of replicas; write %s", others[0], give)
		}
	}
	a.Children = list(childKinds)
	add := map[string]func() ([]string, error){"kind": a.AddKind, "webhook": a.AddWebhook, "version": a.AddVersion, "replicas": a.AddReplicas, "shard": a.AddShard}[what]
	changed, err := add()
	if err != nil {
		return err
	}
	if what == "kind" {
		warn(problems, a.Kind)
	}
	for _, name := range changed {
		fmt.Fprintln(out, "  "+name)
	}
	return nil
}

// warn prints what speaks against a kind that has been written nevertheless.
func warn(problems io.Writer, kind string) {
	if doubt := scaffold.Doubt(kind); doubt != "" {
		fmt.Fprintln(problems, "flyball: warning:", doubt)
	}
}

// list splits a flag's value at its commas. Empty: nil.
func list(value string) []string {
	if value == "" {
		return nil
	}
	all := strings.Split(value, ",")
	for i, item := range all {
		all[i] = strings.TrimSpace(item)
	}
	return all
}

const newUsage = `usage: flyball new MODULE --kind KIND [flags]

The module requires the version of Flyball that this program was built from. In a clone, such as
before there is a release, give the clone instead, which then also has the commands of the
module's Makefile:

  go run ./cmd/flyball new example.com/me/database --kind Database --dir ../database --replace .

`

func runNew(args []string, out, problems io.Writer) error {
	var p scaffold.Project
	var children string
	flags := flag.NewFlagSet("flyball new", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.Usage = func() {
		fmt.Fprint(problems, newUsage)
		flags.PrintDefaults()
	}
	flags.StringVar(&p.Kind, "kind", "", "`kind` of the objects that the operator acts on, such as Database")
	flags.StringVar(&p.Group, "group", "", "API `group` of the kind (default: the host of MODULE)")
	flags.StringVar(&children, "children", "", "`kinds` that the operator keeps for each object, separated by commas (default: Deployment, or with --no-crd ConfigMap)")
	flags.BoolVar(&p.Webhook, "webhook", false, "add a validating webhook")
	flags.BoolVar(&p.Builtin, "no-crd", false, "act on a built-in kind, without a CRD")
	flags.IntVar(&p.Replicas, "replicas", 0, "`number` of replicas that share the objects (default: one does all the work)")
	flags.StringVar(&p.Dir, "dir", "", "`directory` to write into, new or empty (default: the last element of MODULE)")
	flags.StringVar(&p.Replace, "replace", "", "`directory` of a clone of Flyball to build with, in place of a released version")
	modules, err := commandline.Arguments(flags, args, 1, "one module path, and kinds separated by commas without spaces")
	if err != nil {
		return err
	}
	if len(modules) == 1 {
		p.Module = modules[0]
	}
	p.Children = list(children)
	p.Version = version()
	written, err := p.Write()
	if err != nil {
		return err
	}
	if !p.Builtin {
		warn(problems, p.Kind)
	}
	fmt.Fprintf(out, "%s has the module %s; its API group is %s\n", written.Dir, p.Module, written.Group)
	for _, name := range written.Files {
		fmt.Fprintln(out, "  "+name)
	}
	if err := complete(written.Dir, p.Replace != "", problems); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nnext:\n  cd %s\n  go run . -simulate   # on a simulated cluster\n  go test -short ./... # without -short also on a real API server\n", written.Dir)
	return nil
}

// version returns the version of Flyball that this program was built from. Empty: none that
// another module could require.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || strings.Contains(info.Main.Version, "+dirty") || info.Main.Version == "(devel)" {
		return ""
	}
	return info.Main.Version
}

// complete lets the go command complete go.mod and go.sum. With a clone, they are
// complete.
func complete(dir string, replaced bool, problems io.Writer) error {
	if replaced {
		return nil
	}
	cmd := command(context.Background(), dir, "mod", "tidy")
	cmd.Stdout, cmd.Stderr = problems, problems
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the files are written, but go mod tidy in %s: %w; run it again", dir, err)
	}
	return nil
}

// goCommand runs the go command. Its error has what that prints, but not what it downloads.
func goCommand(ctx context.Context, dir string, args ...string) error {
	text, err := command(ctx, dir, args...).CombinedOutput()
	if err == nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "go: downloading ") {
			err = fmt.Errorf("%w\n%s", err, strings.TrimRight(line, "\r\n"))
		}
	}
	return err
}

// command is the go command in the module of a directory.
func command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("GO"), "go"), args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	return cmd
}
