// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"slices"
	"strings"
	"testing"
)

// allowedImports says which packages of ours a package may import. Each may also import internal
// ones, and kube, the vocabulary of all. A package that is not in the table fails the test.
// Under examples and hack everything is allowed.
var allowedImports = map[string][]string{
	".":                     {},
	"workqueue":             {},
	"kube":                  {},
	"informer":              {"informer/listwatch", "informer/state"},
	"informer/state":        {"informer/listwatch"},
	"informer/listwatch":    {},
	"informer/compact":      {"informer", "informer/internal/compact"},
	"informer/informertest": {"informer", "informer/listwatch"},
	"source":                {"informer"},
	"source/sourcetest":     {"source"},
	"reconcile":             {"informer", "source", "workqueue"},
	"client":                {},
	"webhook":               {"resource/builtin"},
	"manager":               {"informer/state", "client", "informer", "reconcile", "resource/builtin", "source", "webhook"},
	"manager/internal/crdinstall": {"client", "internal/sleep", "internal/manifest", "internal/textlog",
		"internal/decodelimit"},
	"manager/internal/election": {"informer", "internal/codec", "internal/effects", "internal/ownership", "internal/simhook", "internal/textlog", "internal/writegate"},
	"manager/internal/recorder": {"internal/codec", "internal/sleep", "internal/simhook", "internal/textlog"},
	"manager/internal/serving": {"internal/keypair", "internal/codec", "internal/redact", "internal/sleep",
		"internal/simhook", "internal/textlog"},

	"bridge/clientgo":                    {"informer", "informer/listwatch", "source"},
	"bridge/clientgo/internal/lifecycle": {"informer"},
	"bridge/clientgo/factory":            {"informer", "bridge/clientgo"},
	"bridge/clientgo/byresource":         {"informer", "bridge/clientgo"},
	"bridge/clientgo/queues":             {"workqueue"},

	"bridge/controllerruntime":       {"informer/state", "informer", "informer/compact", "bridge/clientgo", "workqueue", "bridge/clientgo/queues", "manager/console", "reconcile", "source"}, // a module of its own
	"bridge/controllerruntime/adopt": {"bridge/controllerruntime", "informer", "manager", "reconcile", "source"},
	"bridge/controllerruntime/zoo":   {}, // tests alone

	"cmd/flyball":                   {}, // with what is below it, a module of its own
	"cmd/flyball/internal/adopt":    {"cmd/flyball/internal/gotree", "internal/commandline"},
	"cmd/flyball/internal/doctor":   {"internal/commandline", "simulate/doctor"},
	"cmd/flyball/internal/gotree":   {},
	"cmd/flyball/internal/scaffold": {"cmd/flyball/internal/gotree"},
	"cmd/flyball/internal/crds": {"internal/commandline", "internal/decodelimit", "internal/editdistance",
		"internal/jsontree"},
	"cmd/flyball/internal/pack":                    {"cmd/flyball/internal/pack/internal/manifests", "internal/commandline"},
	"cmd/flyball/internal/pack/internal/manifests": {"internal/jsontree"},

	"cmd/kubectl-flyball": {"client", "internal/commandline", "internal/shards", "internal/textlog"},

	"resource":              {},
	"resource/resourcetest": {"resource"},
	"resource/builtin":      {},
	"rights":                {},
	"envtest":               {},
	"simulate":              {}, // a module of its own; a server, so it knows no client
	"integration":           {}, // tests alone

	// The packages of the informer, from the bottom up.
	"informer/internal/base":      {},
	"informer/internal/encoding":  {"internal/jsonspan", "internal/decodelimit", "internal/shards"},
	"informer/internal/compact":   {"informer/internal/encoding", "internal/deque"},
	"informer/internal/fixture":   {"informer/internal/compact", "informer/listwatch", "internal/sleep"}, // tests alone
	"informer/internal/fields":    {"internal/editdistance"},
	"informer/internal/share":     {},
	"informer/internal/protoplan": {"informer/internal/fields", "informer/internal/share", "internal/decodelimit"},
	"informer/internal/pacing":    {"internal/simhook"},
	"informer/internal/jsonplan": {"informer/internal/fields", "informer/internal/share", "internal/decodelimit",
		"internal/jsonspan"},
	"informer/internal/headroom": {"internal/sleep"},
	"informer/internal/restclient": {"informer/internal/base", "informer/internal/encoding",
		"informer/internal/fields", "informer/internal/pacing", "informer/internal/headroom",
		"informer/internal/jsonplan", "informer/internal/protoplan", "informer/internal/share", "informer/listwatch",
		"internal/bodylimit", "internal/redact", "internal/decodelimit", "internal/jsonspan", "internal/simhook", "internal/textlog"},
	"informer/internal/schemas":  {"informer/internal/pacing", "informer/internal/restclient", "internal/simhook", "internal/textlog"},
	"informer/internal/store":    {"informer/state", "informer/internal/base", "informer/internal/compact", "internal/deque"},
	"informer/internal/steps":    {"informer/state", "informer/internal/base", "informer/internal/pacing", "informer/internal/headroom"},
	"informer/internal/mutation": {"informer/internal/base", "informer/internal/compact", "informer/internal/store", "internal/deque", "internal/fielddiff", "internal/simhook", "internal/textlog"},
	"informer/internal/delivery": {"informer/internal/base", "informer/internal/compact", "informer/internal/mutation", "informer/internal/store", "informer/state",
		"internal/deque", "internal/simhook", "internal/stacks", "internal/textlog"},
	"informer/internal/reflector": {"informer/internal/base", "informer/internal/pacing",
		"informer/internal/restclient", "informer/internal/steps", "informer/listwatch", "informer/state",
		"informer/internal/compact", "informer/internal/encoding", "informer/internal/headroom",
		"informer/internal/schemas", "informer/internal/store", "internal/shards", "internal/simhook", "internal/textlog"},

	"internal/testing/logtest": {"client", "informer", "internal/textlog", "manager", "reconcile", "source"}, // tests alone: a program to listen to
	"internal/testing/habits":  {"client", "informer", "manager", "reconcile", "source"},                     // tests alone

	"internal/commandline":   {"internal/editdistance"},
	"internal/applied":       {"internal/jsonspan"},
	"internal/origin":        {},
	"internal/effects":       {"internal/bodylimit", "internal/contextvalues", "internal/redact", "internal/decodelimit", "internal/jsonspan", "internal/recording"},
	"internal/contextvalues": {"internal/recording", "internal/shards", "internal/simhook"},
	"internal/ownership": {"informer", "internal/codec", "internal/contextvalues", "internal/effects", "internal/shards", "internal/simhook", "internal/textlog",
		"internal/writegate", "reconcile"},
	"internal/testing/sharehistory": {"internal/shards"}, // tests alone
	"internal/recording":            {"internal/redact", "internal/sleep"},
	"internal/fielddiff":            {"internal/redact"},
	"manager/internal/inspect":      {"informer/state", "internal/redact", "internal/shards", "reconcile", "source", "workqueue"},
	"manager/internal/actions":      {"internal/textlog", "manager/internal/inspect", "reconcile"},
	"manager/console":               {"internal/shards", "internal/sleep", "manager/internal/inspect"},
	"internal/health":               {"informer/state", "informer", "internal/simhook", "internal/stacks", "internal/textlog", "reconcile"},
	"internal/metrics": {"informer/state", "internal/histogram", "internal/contextvalues", "reconcile", "webhook",
		"workqueue"},
	"internal/ownevents":   {"internal/contextvalues"},
	"internal/decodelimit": {"internal/jsonspan"},
	"internal/writegate":   {"internal/effects", "reconcile"},

	// The packages of the simulated server. Those without a row import no other.
	"simulate/internal/defaults":  {"simulate/internal/object"},
	"simulate/internal/object":    {"internal/jsontree"},
	"simulate/internal/revisions": {"simulate/internal/object"},
	"simulate/internal/refusal":   {},
	"simulate/internal/store": {"internal/filelock", "simulate/internal/object", "simulate/internal/revisions",
		"simulate/internal/refusal"},
	"simulate/internal/wire":      {"simulate/internal/models", "simulate/internal/revisions"},
	"simulate/internal/ownership": {"simulate/internal/object"},
	"simulate/internal/kinds": {"simulate/internal/defaults", "simulate/internal/crdrules", "internal/jsontree",
		"simulate/internal/models", "simulate/internal/object", "simulate/internal/ownership",
		"simulate/internal/revisions", "simulate/internal/validation"},
	"simulate/internal/fieldmanager": {"internal/jsontree", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/ownership", "simulate/internal/refusal", "simulate/internal/wire"},
	"simulate/internal/encode": {"internal/jsontree", "simulate/internal/kinds", "simulate/internal/object",
		"internal/deque", "simulate/internal/models", "simulate/internal/revisions", "simulate/internal/wire"},
	"simulate/internal/access": {"internal/jsontree", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/revisions"},
	"simulate/internal/webhooks": {"simulate/internal/access", "simulate/internal/crdrules",
		"simulate/internal/decode", "simulate/internal/encode", "simulate/internal/seededrand",
		"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/refusal"},
	"simulate/internal/faults": {"simulate/internal/access", "simulate/internal/encode", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/refusal", "simulate/internal/revisions", "simulate/internal/webhooks"},
	"simulate/internal/pipe":      {},
	"simulate/internal/discovery": {"simulate/internal/encode", "simulate/internal/kinds", "simulate/internal/models", "simulate/internal/refusal"},
	"simulate/internal/serve": {"simulate/internal/access", "simulate/internal/decode", "simulate/internal/encode",
		"simulate/internal/faults", "simulate/internal/fieldmanager", "simulate/internal/kinds",
		"simulate/internal/object", "simulate/internal/ownership", "simulate/internal/read",
		"simulate/internal/refusal", "simulate/internal/revisions",
		"simulate/internal/write"},
	"simulate/internal/read": {"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/refusal",
		"simulate/internal/revisions", "simulate/internal/store"},
	"simulate/internal/write": {"simulate/internal/access", "simulate/internal/decode",
		"simulate/internal/defaults", "simulate/internal/fieldmanager", "internal/jsontree",
		"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/refusal",
		"simulate/internal/revisions", "simulate/internal/validation", "simulate/internal/webhooks",
		"simulate/internal/crdrules", "simulate/internal/seededrand", "simulate/internal/models"},
	"simulate/internal/decode": {"internal/jsontree", "simulate/internal/defaults", "simulate/internal/models",
		"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/ownership",
		"simulate/internal/refusal"},
	"simulate/internal/actors": {"simulate/internal/defaults", "internal/jsontree",
		"simulate/internal/seededrand", "simulate/internal/object", "simulate/internal/revisions", "internal/simhook"},
	"simulate/internal/validation": {"simulate/internal/defaults", "simulate/internal/crdrules"},

	"simulate/embedded":                     {"simulate"},
	"simulate/cmd/apiserver":                {"simulate", "simulate/embedded"},
	"simulate/simtest":                      {"client", "simulate"},
	"simulate/conformance":                  {},                 // tests alone
	"simulate/internal/fixture":             {"simulate"},       // tests alone
	"simulate/internal/transcript":          {"internal/sleep"}, // knows servers by HTTP alone
	"simulate/internal/transcript/recorded": {},                 // tests alone
	"simulate/doctor":                       {"client", "manager", "simulate", "simulate/embedded", "simulate/kit"},
	"simulate/internal/aim":                 {"simulate"},
	"simulate/kit":                          {"client", "informer", "informer/compact", "manager", "rights", "simulate"},
	"simulate/kit/internal/replay":          {"internal/contextvalues", "internal/effects", "internal/recording", "internal/simhook", "manager", "simulate"},
	"simulate/kit/zoo":                      {}, // tests alone
}

// alone are packages that must not know of Kubernetes at all.
var alone = []string{"workqueue"}

func TestHouse_EachAllowedImportIsNeeded(t *testing.T) {
	needed, hasCode := map[[2]string]bool{}, map[string]bool{}
	for _, f := range sources(t) {
		hasCode[f.dir] = hasCode[f.dir] || !f.isTest() && f.base() != "doc.go"
	}
	for _, f := range sources(t) {
		for _, imp := range f.imports() {
			if ours, ok := strings.CutPrefix(imp, module+"/"); ok && (!f.isTest() || !hasCode[f.dir]) {
				needed[[2]string{f.dir, ours}] = true
			}
		}
	}
	for dir, allowed := range allowedImports {
		for _, to := range allowed {
			if !needed[[2]string{dir, to}] {
				t.Errorf("package %s does not import %s; remove it from the table in internal/house/imports_test.go", dir, to)
			}
		}
	}
}

func TestHouse_ImportsAreAllowed(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest() {
			for _, imp := range f.imports() {
				if f.isLibrary() && !within(f.dir, "bridge") && !within(f.dir, "cmd/kubectl-flyball") && (under(imp, "simulate") || under(imp, "examples")) {
					t.Errorf("%s: imports %s, a module that the root must not need, not even in tests", f.path, imp)
				}
			}
			continue
		}
		if !f.isLibrary() && !within(f.dir, "simulate") {
			continue
		}
		allowed, ruled := allowedImports[f.dir]
		if !ruled && !isInternal(f.dir) {
			t.Errorf("%s: package %s is not in the table; decide what it may import and write it into internal/house/imports_test.go", f.path, f.dir)
		}
		for _, imp := range f.imports() {
			ours, isOurs := strings.CutPrefix(imp, module+"/")
			if isOurs && ours != "kube" && !slices.Contains(allowed, ours) && (!isInternal(ours) || isInternal(f.dir)) {
				t.Errorf("%s: imports %s, which the table in internal/house/imports_test.go does not allow", f.path, ours)
			}
			if slices.Contains(alone, f.dir) && strings.Contains(imp, "k8s.io/") {
				t.Errorf("%s: imports %s; package %s stands alone", f.path, imp, f.dir)
			}
		}
	}
}
