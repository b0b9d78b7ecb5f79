// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// session answers one command.
type session struct {
	settings
	out, problems io.Writer
	zone          *time.Location
	interval      time.Duration // of repetitions

	connected []*operator // the replicas that share objects, or one; none: not yet
	finder    *finder     // nil: there is no cluster
	stale     bool        // there are other replicas meanwhile
	said      seen        // which Pods were taken
}

func (s *session) config() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = s.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: s.context})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("read the kubeconfig: %w; or ask a program on this machine by --address", err)
	}
	namespace, _, err := loader.Namespace()
	return cfg, cmp.Or(namespace, "default"), err
}

// connect returns the program to ask, as its replicas that share its objects, or the only one that
// works.
func (s *session) connect(ctx context.Context) ([]*operator, error) {
	if s.stale {
		s.disconnect()
	}
	if s.connected != nil {
		return s.connected, nil
	}
	if s.address != "" {
		host := s.address
		if !strings.Contains(host, ":") {
			host += fmt.Sprintf(":%d", defaultPort)
		}
		s.connected = []*operator{newOperator(host, host, nil, func(ctx context.Context) (string, error) { return s.sent(ctx, nil, nil, "default") })}
		return s.connected, nil
	}
	cfg, namespace, err := s.config()
	if err != nil {
		return nil, err
	}
	if s.finder, err = newFinder(cfg, namespace); err != nil {
		return nil, err
	}
	found, err := s.finder.find(ctx, s.operator, s.selector)
	if err != nil {
		return nil, err
	}
	var said []string
	for _, one := range found {
		said = append(said, fmt.Sprintf("%s, port %d", one, cmp.Or(s.port, portOf(one.pod))))
	}
	s.say(strings.Join(said, "\n"))
	for _, one := range found {
		o, err := s.reach(cfg, one)
		if err != nil {
			return nil, err
		}
		s.connected = append(s.connected, o)
	}
	return s.connected, nil
}

// say says once which Pods are asked.
func (s *session) say(text string) {
	if s.said == nil {
		s.said = seen{}
	}
	if s.said.isNew(text, "") {
		fmt.Fprintln(s.problems, textlog.VisibleLines(text))
	}
}

// reach returns the program in a Pod.
func (s *session) reach(cfg *rest.Config, c candidate) (*operator, error) {
	port := cmp.Or(s.port, portOf(c.pod))
	forwards, err := newForwarder(cfg, c.pod.Namespace, c.pod.Name, port)
	if err != nil {
		return nil, err
	}
	name := c.pod.Namespace + "/" + c.pod.Name
	// A server on loopback answers to its own names alone.
	o := newOperator("Pod "+name, fmt.Sprintf("localhost:%d", port), forwards.dial,
		func(ctx context.Context) (string, error) { return s.sent(ctx, cfg, s.finder, c.pod.Namespace) })
	o.pod, o.member, o.forwards = name, c.member, forwards
	return o, nil
}

func (s *session) disconnect() {
	for _, o := range s.connected {
		o.close()
	}
	s.connected, s.stale = nil, false
}

// sent returns the token for an operator in a namespace. The kubeconfig's own is only for Pods of
// its cluster that the user has named: whoever gets it can act as the user.
func (s *session) sent(ctx context.Context, cfg *rest.Config, f *finder, namespace string) (string, error) {
	switch {
	case s.token != "":
		return s.token, nil
	case s.account == "" && cfg == nil:
		return "", nil
	case s.account == "" && s.operator == "" && s.selector == "":
		return "", errors.New("that of the kubeconfig is sent only to an operator that you name by --operator or -l; or request one by --as-service-account")
	case s.account == "":
		return bearerToken(ctx, cfg)
	}
	if f == nil {
		cfg, own, err := s.config()
		if err != nil {
			return "", err
		}
		if f, err = newFinder(cfg, own); err != nil {
			return "", err
		}
		namespace = own
	}
	in, name, found := strings.Cut(s.account, "/")
	if !found {
		in, name = namespace, s.account
	}
	return f.tokenFor(ctx, in, name)
}

func (s *session) wide() bool { return s.output == "wide" }

// status shows the overview.
func (s *session) status(ctx context.Context, _ []string) (view, error) {
	answers, err := s.overviews(ctx)
	if err != nil {
		return view{}, err
	}
	all := merged(answers)
	raw := rawOf(answers, "overview", func(a answer) json.RawMessage { return a.raw })
	return view{raw, func(c clock, printed seen) string {
		hidden := c
		hidden.hidden = true
		if !printed.isNew("status", status(all, hidden, s.wide())) {
			return ""
		}
		if text := status(all, c, s.wide()); printed == nil {
			return text
		} else {
			return fmt.Sprintf("--- %s\n%s\n", all.Now.In(c.zone).Format(time.TimeOnly), text)
		}
	}}, nil
}

// informers shows each list and watch.
func (s *session) informers(ctx context.Context, _ []string) (view, error) {
	answers, err := s.overviews(ctx)
	if err != nil {
		return view{}, err
	}
	all := merged(answers)
	raw := rawOf(answers, "informers", func(a answer) json.RawMessage {
		var parts struct {
			Informers json.RawMessage `json:"informers"`
		}
		_ = decode(a.raw, &parts) // it has been decoded before
		return parts.Informers
	})
	return view{raw, func(c clock, printed seen) string {
		c.now = all.Now
		hidden := c
		hidden.hidden = true
		if !printed.isNew("informers", informers(all, true, hidden)) {
			return ""
		}
		return informers(all, true, c)
	}}, nil
}

// keys shows the keys of one controller, or of all.
func (s *session) keys(ctx context.Context, args []string) (view, error) {
	answers, err := s.overviews(ctx)
	if err != nil {
		return view{}, err
	}
	all := merged(answers)
	var names []string
	for _, c := range all.Controllers {
		if len(args) == 0 || c.Name == args[0] {
			names = append(names, c.Name)
		}
	}
	if len(args) > 0 && len(names) == 0 {
		return view{}, fmt.Errorf("there is no controller %q; there are %s", args[0], strings.Join(controllerNames(all), ", "))
	}
	pages := []keyPage{}
	for _, name := range names {
		q := query{filter: s.filter, state: s.state, sort: s.sort, limit: s.limit, namespace: s.namespace}
		page, err := keysOfAll(ctx, answers, name, q)
		if isMissing(err) && len(args) == 0 {
			continue // it does not record its runs
		}
		if err != nil {
			return view{}, err
		}
		pages = append(pages, page)
	}
	return view{pages, func(c clock, printed seen) string {
		text := keyTable(pages, len(args) == 0, c, s.wide(), printed)
		if printed == nil && isNothing(pages) {
			return "No keys found.\n"
		}
		for _, page := range pages {
			if page.Next > 0 && printed == nil {
				text += fmt.Sprintf("%s of controller %s of %d that match; --limit shows more.\n", count(len(page.Keys), "key"), page.Controller, page.Matched)
			}
		}
		return text
	}}, nil
}

func controllerNames(all overview) (out []string) {
	for _, c := range all.Controllers {
		out = append(out, c.Name)
	}
	return out
}

// question asks for an object: one of keys, of a controller with a source of the kind. An empty
// kind means any.
type question struct {
	kind string
	keys []string
}

// questions are what the arguments of why can mean, the likeliest first.
func questions(args []string, namespace string) []question {
	named := func(kind, name string) question {
		if strings.Contains(name, "/") {
			return question{kind, []string{name}}
		}
		return question{kind, []string{namespace + "/" + name, name}}
	}
	if len(args) == 2 {
		return []question{named(args[0], args[1])}
	}
	kind, name, found := strings.Cut(args[0], "/")
	if !found {
		return []question{named("", args[0])}
	}
	return []question{{"", []string{args[0]}}, named(kind, name)}
}

// why shows the last runs of an object in each controller that has its key.
func (s *session) why(ctx context.Context, args []string) (view, error) {
	answers, err := s.overviews(ctx)
	if err != nil {
		return view{}, err
	}
	all := inEffect(answers).overview
	namespace := s.namespace
	if namespace == "" && s.address == "" {
		if _, namespace, err = s.config(); err != nil {
			return view{}, err
		}
	}
	asked := questions(args, cmp.Or(namespace, "default"))
	for _, q := range asked {
		raws, told, err := s.ask(ctx, answers, all, q)
		if err != nil || len(told) > 0 {
			return view{raws, func(c clock, printed seen) string {
				var parts []string
				for _, h := range told {
					if text := story(h, c, s.wide(), printed); text != "" {
						parts = append(parts, text)
					}
				}
				return strings.Join(parts, "\n")
			}}, err
		}
	}
	q := asked[0]
	for _, other := range asked[1:] { // a kind, or else it was a namespace
		if slices.ContainsFunc(all.Controllers, func(c controller) bool { return has(c, other.kind) }) {
			q = other
		}
	}
	return view{}, s.unknown(ctx, answers, all, q)
}

// ask returns what is known about the keys of a question.
func (s *session) ask(ctx context.Context, answers []answer, all overview, q question) (raws []json.RawMessage, told []history, err error) {
	for _, c := range all.Controllers {
		if !has(c, q.kind) {
			continue
		}
		keys := q.keys
		if s.all {
			if keys, err = s.inAll(ctx, answers, c.Name, q); err != nil {
				return nil, nil, err
			}
		}
		for _, key := range keys {
			raw, one, err := s.history(ctx, answers, c, key)
			switch {
			case err == nil:
				raws, told = append(raws, raw), append(told, one)
			case !isMissing(err):
				return nil, nil, err
			}
		}
	}
	return raws, told, nil
}

const suggestions = 5

// inAll returns the keys of a controller with the name of a question, in all namespaces.
func (s *session) inAll(ctx context.Context, answers []answer, controller string, q question) (out []string, err error) {
	name := q.keys[0][strings.LastIndex(q.keys[0], "/")+1:]
	page, err := keysOfAll(ctx, answers, controller, query{filter: "(^|/)" + regexp.QuoteMeta(name) + "$"})
	if isMissing(err) {
		return nil, nil
	}
	for _, raw := range page.Keys {
		var row keyRow
		if err := decode(raw, &row); err != nil {
			return nil, err
		}
		out = append(out, row.Key)
	}
	return out, err
}

// has reports whether a kind is one of a controller's sources.
func has(c controller, kind string) bool {
	if kind == "" {
		return true
	}
	return slices.ContainsFunc(c.Sources, func(o origin) bool {
		return o.Kind != "" && slices.Contains(plurals(o.Kind), strings.ToLower(kind))
	})
}

// unknown says what is known in place of what was asked for.
func (s *session) unknown(ctx context.Context, answers []answer, all overview, q question) error {
	var kinds, near []string
	for _, c := range all.Controllers {
		for _, from := range c.Sources {
			if from.Kind != "" && !slices.Contains(kinds, from.Kind) {
				kinds = append(kinds, from.Kind)
			}
		}
		if !has(c, q.kind) {
			continue
		}
		found, err := s.inAll(ctx, answers, c.Name, q)
		if err != nil {
			return err
		}
		near = append(near, found...)
	}
	slices.Sort(near)
	near = slices.Compact(near)
	near = near[:min(len(near), suggestions)]
	known := func(c controller) bool { return has(c, q.kind) }
	switch {
	case !slices.ContainsFunc(all.Controllers, known):
		return fmt.Errorf("no controller has a source of the kind %q; there are %s", q.kind, strings.Join(kinds, ", "))
	case len(near) > 0:
		return fmt.Errorf("no controller has the key %q; do you mean %s?", q.keys[0], strings.Join(near, ", "))
	}
	return fmt.Errorf("no controller has the key %q in its queue or among its recorded runs; kubectl flyball keys lists all", q.keys[0])
}

func isNothing(pages []keyPage) bool {
	for _, page := range pages {
		if len(page.Keys) > 0 {
			return false
		}
	}
	return true
}

// plurals are the words that mean a kind: its own, its resource, and both with the group.
func plurals(kind string) (out []string) {
	name, group, _ := strings.Cut(strings.ToLower(kind), ".")
	for _, word := range []string{name, name + "s", name + "es", strings.TrimSuffix(name, "y") + "ies"} {
		out = append(out, word)
		if group != "" {
			out = append(out, word+"."+group)
		}
	}
	return out
}

// encoded returns an answer as indented JSON, or as YAML.
func encoded(raw any, format string) (string, error) {
	text, err := json.Marshal(raw)
	if err != nil {
		return "", err
	}
	if format == "yaml" {
		text, err = yaml.JSONToYAML(text)
		return textlog.VisibleLines(string(text)), err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, "", "  ")
	out.WriteString("\n")
	return string(textlog.VisibleJSON(out.Bytes())), err
}
