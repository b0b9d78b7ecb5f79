// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"go/ast"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// addWebhook adds a validating webhook to the files of an operator: webhook.go, tests in
// the file of this name, and insertions into main.go, operator_test.go and
// config/operator.yaml.
func (p plan) addWebhook(all files, tests string) error {
	text, err := p.partFile("webhook/webhook.go", "webhook/builtin.go")
	if err != nil {
		return err
	}
	all["webhook.go"] = text
	if err := p.callWebhook(all, "validate"); err != nil {
		return err
	}
	text, err = p.partFile("webhook/operator_test.go", "webhook/builtin_test.go")
	if err == nil && all[tests] != nil {
		text, err = p.merge(tests, all[tests], text)
	}
	if err != nil {
		return err
	}
	all[tests] = text
	all["config/operator.yaml"], err = p.webhookManifests(all["config/operator.yaml"])
	return err
}

// partFile returns a part with the project's names, for a built-in kind with the declarations
// of another part; empty: there is none.
func (p plan) partFile(name, builtin string) ([]byte, error) {
	f, err := part(name)
	if err != nil {
		return nil, err
	}
	if p.Builtin && builtin != "" {
		other, err := part(builtin)
		if err != nil {
			return nil, err
		}
		f.Overlay(other)
	}
	text, err := f.Source()
	if err != nil {
		return nil, err
	}
	for _, step := range []func(*gotree.File) error{p.dropReplicas, p.rename, p.place, p.imports} {
		if text, err = gotree.Edit(name, text, step); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// insertion is text to insert before or after the statement of a function that has a call.
type insertion struct {
	function, call string
	before, after  string
}

// insert makes insertions; a missing place is an error that says what to write.
func insert(f *gotree.File, insertions []insertion) error {
	for _, i := range insertions {
		var at ast.Stmt
		if fn := f.Func(i.function); fn != nil {
			at = f.Calling(fn, i.call)
		}
		if at == nil {
			return fmt.Errorf("there is no statement with %s in a function %s; add one, or write this there yourself:\n%s%s", i.call, i.function, i.before, i.after)
		}
		f.Insert(at.Pos(), i.before)
		f.Insert(at.End(), i.after)
	}
	return nil
}

// callWebhook inserts into main.go and operator_test.go what serves webhooks, which validate
// or convert objects.
func (p plan) callWebhook(all files, verb string) error {
	changes := map[string]func(*gotree.File) error{
		"main.go":          func(f *gotree.File) error { return serveWebhook(f, verb) },
		"operator_test.go": testWebhook,
	}
	if bytes.Contains(all["simulated.go"], []byte("\t\tName: ")) {
		changes["simulated.go"] = p.simulateWebhook
	}
	for name, change := range changes {
		var err error
		if all[name], err = gotree.Edit(name, all[name], change); err != nil {
			return err
		}
	}
	return nil
}

func serveWebhook(f *gotree.File, verb string) error {
	parse := "manager.ParseFlags" // of modules written before there was that: flag.Parse
	if fn := f.Func("run"); fn != nil && f.Calling(fn, "flag.Parse") != nil {
		parse = "flag.Parse"
	}
	return insert(f, []insertion{
		{"run", parse,
			"webhooks := flag.Bool(\"webhooks\", false, \"" + verb + " objects; the API server must reach this process\")\n",
			"\nif *webhooks {\nopts.Webhooks = webhookOptions(opts.Webhooks)\n}"},
		{"operate", "setup(mgr)", "", "\naddWebhooks(mgr, opts)"},
	})
}

// simulateWebhook has the simulated cluster call the webhooks, in modules whose simulated.go is
// that of the template. Others are served by a deployed operator alone.
func (p plan) simulateWebhook(f *gotree.File) error {
	f.AppendText("//go:embed config/operator.yaml\nvar manifests []byte")
	return insert(f, []insertion{{"onSimulatedCluster", "embedded.Run",
		"cluster.Manifests = manifests\n" +
			"if certificate := opts.Webhooks.Managed; certificate != nil { // -webhooks\n" +
			"opts.Webhooks.Address = cmp.Or(opts.Webhooks.Address, \"127.0.0.1:9443\")\n" +
			"opts.Webhooks.DrainDelay = -1 // there is no Service whose clients must learn of the end\n" +
			"certificate.Namespace = \"" + p.operator + "-operator\"\n" +
			"cluster.WebhookAddress = opts.Webhooks.Address\n}\n", ""}})
}

func testWebhook(f *gotree.File) error {
	return insert(f, []insertion{
		{"TestControlPlane", "manager.New(opts)", "opts.Webhooks = callWebhooks(t, env)\n", ""},
		{"TestControlPlane", "setup(mgr)", "", "\naddWebhooks(mgr, opts)"},
	})
}

// merge appends the declarations of another file, and writes the imports of both.
func (p plan) merge(name string, text, other []byte) ([]byte, error) {
	from, err := gotree.Parse(name, other)
	if err != nil {
		return nil, err
	}
	text, err = gotree.Edit(name, text, func(f *gotree.File) error {
		for _, name := range from.Declared() {
			f.Append(from, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return gotree.Edit(name, text, p.imports)
}
