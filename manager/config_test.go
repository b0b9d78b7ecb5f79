// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/webhook"
)

// program binds our flags and has its own.
type program struct {
	opts    manager.Options
	fs      *flag.FlagSet
	demo    bool
	count   int
	name    string
	refusal error // result of -strict
}

func newProgram() *program {
	p := &program{fs: flag.NewFlagSet("x", flag.ContinueOnError), name: "old"}
	p.fs.SetOutput(io.Discard)
	p.opts.BindFlags(p.fs)
	p.fs.BoolVar(&p.demo, "demo", false, "walk through a sample")
	p.fs.IntVar(&p.count, "count", 1, "`number` of samples")
	p.fs.StringVar(&p.name, "name", "old", "`name` of the sample")
	p.fs.Func("strict", "`word` that is refused", func(string) error { return p.refusal })
	return p
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "options.yaml")
	must(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

// These names have other meanings in the environment.
var withoutVariable = []string{"kubeconfig", "context", "as", "as-group", "user-agent", "profiling", "shard", "v"}

// Every flag accepts the same value from a file, its variable and the command line, in
// increasing precedence.
func TestConfig_EachFlagFromFileVariableAndFlag(t *testing.T) {
	variable := regexp.MustCompile(`or \$([A-Z_]+)\)$`)
	var names []string
	newProgram().fs.VisitAll(func(f *flag.Flag) {
		if f.Name != "config" && f.Name != "strict" {
			names = append(names, f.Name)
		}
	})
	of := flag.NewFlagSet("the manager's", flag.ContinueOnError)
	new(manager.Options).BindFlags(of)
	if len(names) < 10 {
		t.Fatalf("the flags are %v; this test looks at nothing", names)
	}
	for _, name := range names {
		value := func(p *program) string { return p.fs.Lookup(name).Value.String() }
		// given returns a sample as the flag formats it.
		given := func(sample string) string {
			p := newProgram()
			if err := p.fs.Parse([]string{"-" + name + "=" + sample}); err != nil {
				return value(newProgram())
			}
			return value(p)
		}
		var samples []string // three valid values that differ from each other and the default
		for _, try := range []string{"7", "8", "9", "a", "b", "c", "7s", "8s", "9s", "true", "false"} {
			if given(try) != value(newProgram()) {
				samples = append(samples, try)
			}
		}
		if len(samples) < 3 && !slices.Equal(samples, []string{"true"}) && !slices.Equal(samples, []string{"false"}) {
			t.Errorf("-%s takes %v of the samples; have this test try others", name, samples)
			continue
		}
		inFile, inVariable, onLine := samples[0], samples[min(1, len(samples)-1)], samples[min(2, len(samples)-1)]
		config := "-config=" + file(t, name+": "+inFile)
		expect := func(who, want string, args ...string) {
			t.Helper()
			p := newProgram()
			must(t, p.fs.Parse(args))
			if got := value(p); got != given(want) {
				t.Errorf("-%s with %s: got %q, want %q", name, who, got, given(want))
			}
		}
		expect("a file", inFile, config)
		expect("a flag after the file", onLine, config, "-"+name+"="+onLine)
		expect("a flag before the file", onLine, "-"+name+"="+onLine, config)
		env := variable.FindStringSubmatch(newProgram().fs.Lookup(name).Usage)
		if without := slices.Contains(withoutVariable, name); of.Lookup(name) != nil && without != (env == nil) {
			t.Errorf("-%s has the variable %q, and to have none is %t", name, env, without)
		}
		if env != nil {
			t.Setenv(env[1], inVariable)
			expect("a variable and a file", inVariable, config)
			expect("all three", onLine, config, "-"+name+"="+onLine)
			must(t, os.Unsetenv(env[1]))
		}
	}
}

func TestConfig_ReachesAllThatTheFlagsReach(t *testing.T) {
	p := newProgram()
	must(t, p.fs.Parse([]string{"-count=5", "-config", file(t, `# a comment
watch-namespaces: [prod, "1e3"]
as-group:
- a
- b
leader-elect: true
leader-election-id: 007 # as it is written
leader-election-namespace: no
graceful-shutdown-timeout: 7s
metrics-bind-address: 0
demo: true
count: 3
name: "yes"
`)}))
	o := p.opts
	if !slices.Equal(o.Informers.Namespaces, []string{"prod", "1e3"}) || !slices.Equal(o.Impersonate.Groups, []string{"a", "b"}) {
		t.Errorf("lists are %q and %q", o.Informers.Namespaces, o.Impersonate.Groups)
	}
	if e := o.LeaderElection; e == nil || e.Off || e.ID != "007" || e.Namespace != "no" || o.GracePeriod != 7*time.Second || o.MetricsAddress != "0" {
		t.Errorf("got %+v, election %+v", o, e)
	}
	if !p.demo || p.count != 5 || p.name != "yes" {
		t.Errorf("the program's own are %v, %d, %q, want true, 5 of the command line, yes", p.demo, p.count, p.name)
	}
}

// An error names file and line, and none of the file applies.
func TestConfig_WhatIsWrongIsNamedAndNothingCounts(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "it is empty; write lines such as",
		"# nothing\n":                            "it is empty",
		"---\n":                                  "it sets nothing",
		"{}":                                     "it sets nothing",
		"- v\n":                                  "line 1: this is a list; write lines such as",
		"v=3":                                    "line 1: this is text; write lines such as",
		"name: x\nv: [":                          "line 2: did not find expected node content",
		"name: x\n\tv: 3":                        "line 2: found a tab character",
		"name: \xff":                             "invalid",
		"name: x\nv: 3\nname: y":                 "line 3: name: it is already in line 1; remove one of the two",
		"name: x\n---\nv: 3":                     "there is a second document in it; write one, without ---",
		"name: x\n---\nv: [":                     "there is a second document in it",
		"name: x\nmetric-bind-address: x":        "line 2: metric-bind-address: no flag of this name can be set by a file; -help lists those that can",
		"name: x\n-v: 3":                         "line 2: -v: no flag of this name",
		"name: x\nconfig: other.yaml":            "line 2: config: no flag of this name",
		"name: x\n? [a]\n: 3":                    "line 2: this names no flag",
		"name: x\n<<: {v: 3}":                    "line 2: this names no flag",
		"name: x\nv: much":                       `line 2: v: strconv.Atoi: parsing "much": invalid syntax (-v: verbosity level of the log`,
		"name: x\nv:":                            "line 2: v: it has no value; write one, or leave the line out",
		"name: x\nv: [3]":                        "line 2: v: this is a list; write one value",
		"name: x\nv: {a: 3}":                     "line 2: v: this is a mapping; write one value",
		"name: &n x\ncontext: *n":                "line 2: context: *n stands for another value; write the value",
		"name: x\nleader-elect: yes":             `line 2: leader-elect: "yes" is text; write true or false`,
		"name: x\nleader-elect: 1":               `line 2: leader-elect: "1" is a number; write true or false`,
		"name: x\ncontext: true":                 `line 2: context: true is a truth value; write "true" if you mean the text`,
		"name: x\nwatch-namespaces: [a, [b]]":    "line 2: watch-namespaces: an item is a list; write text",
		"name: x\nwatch-namespaces: [a, ~]":      "line 2: watch-namespaces: an item is nothing",
		"name: x\nwatch-namespaces: [a, true]":   "line 2: watch-namespaces: an item is a truth value; write text, in quotes",
		"name: x\nwatch-namespaces: [a, 'b,c']":  `line 2: watch-namespaces: the item "b,c" is not one name`,
		"name: x\ngraceful-shutdown-timeout: 30": `line 2: graceful-shutdown-timeout: time: missing unit in duration "30" (-graceful-shutdown-timeout: time limit of a stop`,
		"name: x\ncontext: y\ncount: many\ndemo: true": "line 3: count: parse error (-count: number of samples)",
		"context: y\nname: x\ncount: 3\nstrict: no":    "line 4: strict: not today (-strict: word that is refused)",
		"v: 3\nname: [a]\nx: y\nv: 4":                  "line 4: v: it is already in line 1",
		"context: y\nname: [a]\nx: y":                  "line 2: name: this is a list; write one value (-name: name of the sample)\nline 3: x: no flag",
		"name: " + strings.Repeat("x", 1<<20):          "is larger than 1024 KiB",
	} {
		p := newProgram()
		p.refusal = errors.New("not today")
		name := file(t, text)
		err := p.fs.Parse([]string{"-config", name})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%.60q: %.300v, want an error of the file with %q", text, err, want)
		}
		if p.opts.Context != "" || p.opts.Verbosity != 0 || p.name != "old" || p.count != 1 || p.demo {
			t.Errorf("%.60q: context %q, v %d, name %q, count %d, demo %v are set by a file that was refused",
				text, p.opts.Context, p.opts.Verbosity, p.name, p.count, p.demo)
		}
	}
}

func TestConfig_FilesThatCannotBeRead(t *testing.T) {
	for name, want := range map[string]string{
		filepath.Join(t.TempDir(), "gone.yaml"): "gone.yaml: no such file or directory; name a YAML file of flags and their values",
		t.TempDir():                             "is a directory; name a YAML file",
		"":                                      "name a file, or leave -config out",
	} {
		if err := newProgram().fs.Parse([]string{"-config=" + name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-config=%s: %v, want an error with %q", name, err, want)
		}
	}
	one, two := file(t, "v: 1"), file(t, "v: 2")
	if err := newProgram().fs.Parse([]string{"-config", one, "-config", two}); err == nil || !strings.Contains(err.Error(), one+" has been given by -config already") {
		t.Errorf("two files: %v, want an error that names the first", err)
	}
}

// Values that the command line or a variable overrides are still validated.
func TestConfig_ValuesThatDoNotCountAreStillJudged(t *testing.T) {
	t.Setenv("WATCH_NAMESPACE", "prod")
	p := newProgram()
	err := p.fs.Parse([]string{"-v=1", "-config", file(t, "v: much\nwatch-namespaces: [[a]]")})
	if err == nil || !strings.Contains(err.Error(), "line 1: v:") || !strings.Contains(err.Error(), "line 2: watch-namespaces:") {
		t.Errorf("got %v, want both lines", err)
	}
}

func TestConfig_OfTheProgramIsItsOwn(t *testing.T) {
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	own := fs.String("config", "", "of the program")
	theirs := fs.String("kubeconfig", "", "of another library")
	var o manager.Options
	o.BindFlags(fs)
	must(t, fs.Parse([]string{"-config", "/is/not/there"}))
	if *own != "/is/not/there" {
		t.Errorf("-config is %q", *own)
	}
	fs = flag.NewFlagSet("x", flag.ContinueOnError)
	fs.StringVar(theirs, "kubeconfig", "", "of another library")
	o = manager.Options{}
	o.BindFlags(fs)
	must(t, fs.Parse([]string{"-config", file(t, "kubeconfig: k")}))
	must(t, o.Complete())
	if *theirs != "k" || o.Kubeconfig != "k" {
		t.Errorf("theirs is %q, ours %q, want both from the file", *theirs, o.Kubeconfig)
	}
}

// defaults returns the default of each flag: the values that a manager then has, and
// descriptions of what it then does.
func defaults(t *testing.T) map[string]string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir()) // where no certificates are mounted
	o := manager.Options{LeaderElection: &manager.LeaderElection{ID: "x", Namespace: "ns"}}
	must(t, o.Complete())
	elect := o.LeaderElection
	if elect.RenewDeadline*3 != elect.LeaseDuration*2 || elect.RetryPeriod*5 != elect.RenewDeadline {
		t.Errorf("the durations of an election are %+v, want them in the proportions that -help tells", elect)
	}
	m := newManager(t, manager.Options{Webhooks: webhook.Options{Address: "127.0.0.1:0", DrainDelay: -1}})
	hooks := m.Webhooks()
	stop, wait := run(t, m)
	<-hooks.Started()
	certificate := regexp.MustCompile(`open (.*)/tls\.crt`).FindStringSubmatch(fmt.Sprint(hooks.Check(t.Context())))
	if certificate == nil {
		t.Fatalf("Check = %v, which says not where a certificate is looked for", hooks.Check(t.Context()))
	}
	stop()
	must(t, wait())
	return map[string]string{
		"kubeconfig":                  "$KUBECONFIG, then in-cluster, then ~/.kube/config",
		"context":                     "its current one",
		"as":                          "none",
		"as-group":                    "those that the server assigns to the user",
		"user-agent":                  "the program's name and version",
		"metrics-bind-address":        o.MetricsAddress,
		"metrics-secure":              fmt.Sprint(o.MetricsServing.Secure),
		"metrics-cert-path":           "self-signed, in memory",
		"metrics-guard":               fmt.Sprint(o.MetricsServing.Guard),
		"profiling":                   fmt.Sprint(o.MetricsServing.Profiling),
		"health-probe-bind-address":   ":8081 in a Pod, 127.0.0.1:8081 elsewhere",
		"webhook-bind-address":        ":9443",
		"webhook-cert-path":           certificate[1],
		"webhook-drain-delay":         newManager(t, manager.Options{}).Webhooks().Snapshot().DrainDelay.String(),
		"install-crds":                fmt.Sprint(!o.KeepCRDs),
		"watch-namespaces":            "all",
		"leader-elect":                "false",
		"leader-election-id":          "none",
		"leader-election-namespace":   "the Pod's",
		"leader-elect-lease-duration": elect.LeaseDuration.String(),
		"leader-elect-renew-deadline": "two thirds of the lease duration",
		"leader-elect-retry-period":   "a fifth of the renew deadline",
		"graceful-shutdown-timeout":   o.GracePeriod.String(),
		"shard":                       "the objects without the label",
		"shards":                      "0",
		"shard-by":                    "uid",
		"stuck-after":                 newManager(t, manager.Options{}).StuckAfter().String(),
		"log-format":                  "text",
		"log-level":                   "info",
		"v":                           fmt.Sprint(o.Verbosity),
		"config":                      "none",
		"allowed-hosts":               "localhost and loopback addresses",
	}
}

func TestConfig_HelpShowsEveryDefault(t *testing.T) {
	want := defaults(t)
	fs := flag.NewFlagSet("x", flag.ContinueOnError)
	var o manager.Options
	o.BindFlags(fs)
	shown := regexp.MustCompile(`\(default:? "?([^")]*)"?\)`)
	fs.VisitAll(func(f *flag.Flag) {
		one, text := flag.NewFlagSet("x", flag.ContinueOnError), bytes.Buffer{}
		one.SetOutput(&text)
		one.Var(f.Value, f.Name, f.Usage)
		one.PrintDefaults()
		said := shown.FindAllStringSubmatch(text.String(), -1)
		if len(said) != 1 || said[0][1] != want[f.Name] {
			t.Errorf("want the default %q, once, in %s", want[f.Name], text.String())
		}
		delete(want, f.Name)
	})
	for name := range want {
		t.Errorf("there is no flag -%s", name)
	}
}
