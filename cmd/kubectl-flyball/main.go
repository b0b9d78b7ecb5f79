// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/flyball-dev/flyball/internal/commandline"
	"github.com/flyball-dev/flyball/internal/textlog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	s := &session{out: os.Stdout, problems: os.Stderr, zone: time.Local, interval: 2 * time.Second}
	err := s.run(ctx, os.Args[1:])
	stop()
	if code := commandline.ExitCode(err); code != 0 {
		fmt.Fprintln(os.Stderr, "kubectl flyball:", textlog.VisibleLines(err.Error()))
		os.Exit(code)
	}
}

const usage = `kubectl flyball shows what an operator does, and why each key was reconciled:

  kubectl flyball status                what is wrong, the controllers and the informers
  kubectl flyball keys [CONTROLLER]     the keys, the last reconciled first
  kubectl flyball why KIND NAME         the last reconciles of an object, as a story;
  kubectl flyball why NAMESPACE/NAME    also KIND/NAME
  kubectl flyball informers             each list and watch
  kubectl flyball watch                 the status, whenever it has changed, until ctrl-c
  kubectl flyball record [1m]           a recording of the next minute, which can be replayed

  kubectl flyball run CONTROLLER KEY          reconciles a key now
  kubectl flyball pause CONTROLLER [KEY]      reconciles a controller or key no more, until
  kubectl flyball resume CONTROLLER [KEY]     it is resumed

The operator is the only Pod that holds a Lease, or the Pods that share one, or those that
--operator or -l name, or a program on this machine at --address. kubectl flyball COMMAND -help lists the flags.
`

// settings are the flags.
type settings struct {
	output, namespace, kubeconfig, context, address, operator, selector string
	token, account, filter, state, sort, file                           string
	redact                                                              []string
	port, limit                                                         int
	watch, all                                                          bool
}

// bind adds the flags of a command.
func (s *settings) bind(flags *flag.FlagSet, command string) {
	if command == "record" {
		flags.StringVar(&s.file, "o", "", "`file` to write, whose name ends in .tar.zst or .tar.gz (default: flyball-TIME.tar.zst)")
		flags.StringVar(&s.file, "output", "", "the same as -o")
		flags.Func("redact", "a `field` to leave out, as ConfigMap:data or Website.web.example.com:spec.password; may be repeated", func(field string) error {
			s.redact = append(s.redact, field)
			return nil
		})
	} else {
		flags.StringVar(&s.output, "o", "", "`format` of the output: json, yaml or wide (default: text)")
		flags.StringVar(&s.output, "output", "", "the same as -o")
	}
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "`file` with the cluster (default: as kubectl finds it)")
	flags.StringVar(&s.context, "context", "", "`context` of the kubeconfig (default: the current one)")
	flags.StringVar(&s.operator, "operator", "", "[NAMESPACE/]NAME of the Lease, Deployment or Pod of the `operator`")
	flags.StringVar(&s.selector, "l", "", "`labels` of the operator's Pod")
	flags.StringVar(&s.selector, "selector", "", "the same as -l")
	flags.IntVar(&s.port, "port", 0, "`port` of the Pod's metrics (default: that of a container which is named metrics, or of -metrics-bind-address, or 8080)")
	flags.StringVar(&s.address, "address", "", "`host:port` of the metrics of a program on this machine, which is asked without a cluster")
	flags.StringVar(&s.token, "token", "", "`token` for guarded metrics (default: that of the kubeconfig, once the operator asks for one)")
	flags.StringVar(&s.account, "as-service-account", "", "request a token for the ServiceAccount `[NAMESPACE/]NAME` (default namespace: the Pod's)")
	const namespace = "`namespace` of the keys (default: all; for why that of the context)"
	flags.StringVar(&s.namespace, "n", "", namespace)
	flags.StringVar(&s.namespace, "namespace", "", "the same as -n")
	flags.BoolVar(&s.all, "A", false, "keys of all namespaces")
	flags.BoolVar(&s.all, "all-namespaces", false, "the same as -A")
	if command != "watch" && command != "record" && !slices.Contains(actions, command) {
		flags.BoolVar(&s.watch, "watch", false, "print what changes, until ctrl-c")
		flags.BoolVar(&s.watch, "w", false, "the same as -watch")
	}
	if command == "keys" {
		flags.StringVar(&s.filter, "filter", "", "regular `expression` that matches a part of the key")
		flags.StringVar(&s.state, "state", "", "`state` of the key: ready, held, delayed, idle, failing and others")
		flags.StringVar(&s.sort, "sort", "", "`order`: recent, key, failures or age (default: recent)")
		flags.IntVar(&s.limit, "limit", 100, "the `number` of keys of each controller; 0: all")
	}
}

func (s *settings) misuse() error {
	switch {
	case !slices.Contains([]string{"", "json", "yaml", "wide"}, s.output):
		return commandline.Misusef("-o is %q; write json, yaml or wide", s.output)
	case s.limit < 0 || s.port < 0 || s.port > 65535:
		return commandline.Misusef("--limit and --port are whole numbers from 0, and a port is at most 65535")
	case s.address != "" && s.port != 0:
		return commandline.Misusef("--port is that of a Pod; with --address leave it out")
	}
	for _, two := range [][2]string{{s.operator, s.selector}, {s.address, s.operator}, {s.address, s.selector}} {
		if two[0] != "" && two[1] != "" {
			return commandline.Misusef("--address, --operator and -l each name the operator; leave out all but one")
		}
	}
	if s.token != "" && s.account != "" {
		return commandline.Misusef("--token and --as-service-account both say what to send; leave one out")
	}
	if s.namespace != "" && s.all {
		return commandline.Misusef("-n is one namespace and -A all; leave one out")
	}
	return nil
}

// actions are the commands that change something.
var actions = []string{"run", "pause", "resume"}

// commands say how many arguments each takes, and what to write in place of more.
var commands = map[string]struct {
	least, most int
	give        string
	show        func(*session, context.Context, []string) (view, error)
}{
	"status":    {0, 0, "flags alone", (*session).status},
	"watch":     {0, 0, "flags alone", (*session).status},
	"informers": {0, 0, "flags alone", (*session).informers},
	"keys":      {0, 1, "the name of one controller", (*session).keys},
	"why":       {1, 2, "KIND NAME or NAMESPACE/NAME", (*session).why},
	"record":    {0, 1, "how long, such as 10m", nil},
	"run":       {2, 2, "CONTROLLER NAMESPACE/NAME", act("run")},
	"pause":     {1, 2, "CONTROLLER, or CONTROLLER NAMESPACE/NAME", act("pause")},
	"resume":    {1, 2, "CONTROLLER, or CONTROLLER NAMESPACE/NAME", act("resume")},
}

// run is main with explicit arguments.
func (s *session) run(ctx context.Context, args []string) error {
	name := "help"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	command, known := commands[name]
	switch {
	case name == "help" || name == "-h" || name == "-help" || name == "--help":
		fmt.Fprint(s.out, usage)
		return nil
	case !known:
		return commandline.Misusef("there is no command %q; write kubectl flyball status, keys, why, informers, watch, record, run, pause or resume", name)
	}
	flags := flag.NewFlagSet("kubectl flyball "+name, flag.ContinueOnError)
	flags.SetOutput(s.problems)
	s.bind(flags, name)
	args, err := commandline.Arguments(flags, args, command.most, command.give)
	if err == nil {
		err = s.misuse()
	}
	if err == nil && len(args) < command.least {
		err = commandline.Misusef("kubectl flyball %s lacks arguments. Give %s", name, command.give)
	}
	if err != nil {
		return err
	}
	defer s.disconnect()
	if name == "record" {
		return s.record(ctx, args)
	}
	show := func(ctx context.Context) (view, error) { return command.show(s, ctx, args) }
	if s.watch || name == "watch" {
		return s.repeat(ctx, show)
	}
	v, err := show(ctx)
	if err != nil {
		return err
	}
	return s.print(v, nil)
}

// repeat prints what changes, until ctx ends. Once there was an answer, errors are printed: an
// operator may be replaced.
func (s *session) repeat(ctx context.Context, show func(context.Context) (view, error)) error {
	printed, complaint, answered := seen{}, "", false
	for {
		v, err := show(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !answered:
			return err
		case err != nil:
			if complaint != err.Error() {
				fmt.Fprintln(s.problems, textlog.VisibleLines(err.Error()))
			}
			complaint = err.Error()
			s.disconnect()
		default:
			complaint, answered = "", true
			if err := s.print(v, printed); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.interval):
		}
	}
}

// view is an answer, as JSON and as text.
type view struct {
	raw  any
	text func(clock, seen) string
}

// print prints a view. printed: what is there of it is left out.
func (s *session) print(v view, printed seen) error {
	text := v.text(clock{now: time.Now(), zone: s.zone}, printed)
	if s.output == "json" || s.output == "yaml" {
		if text == "" && printed != nil {
			return nil
		}
		var err error
		if text, err = encoded(v.raw, s.output); err != nil {
			return err
		}
	} else {
		text = textlog.VisibleLines(text)
	}
	_, err := io.WriteString(s.out, text)
	return err
}
