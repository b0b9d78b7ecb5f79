// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/webhook"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	webv1beta1 "github.com/flyball-dev/flyball/examples/website/api/v1beta1"
)

// setupAll does what main does with -webhooks.
func setupAll(mgr *manager.Manager) error {
	addWebhooks(mgr)
	return setup(mgr)
}

// bothVersions writes the CRD of a cluster that serves the previous version too, and
// returns its path.
func bothVersions(t *testing.T) string {
	t.Helper()
	ops, err := os.ReadFile("deploy/conversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patch jsonpatch.Patch
	text, err := yaml.YAMLToJSON(crd)
	if err == nil {
		ops, err = yaml.YAMLToJSON(ops)
	}
	if err == nil {
		err = json.Unmarshal(ops, &patch)
	}
	if err == nil {
		text, err = patch.Apply(text)
	}
	file := filepath.Join(t.TempDir(), "crd.json")
	if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return file
}

// webhooked is simulated, with all that is deployed.
func webhooked(t *testing.T) kit.Config {
	cfg := simulated(t)
	cfg.Scheme = testScheme()
	cfg.CRDs, cfg.Webhooks = []string{bothVersions(t)}, []string{"deploy/webhooks.yaml"}
	cfg.Namespaces = []string{"website"}
	cfg.Manager.Webhooks = webhookOptions(webhook.Options{})
	cfg.Manager.Webhooks.Managed.Namespace = "website"
	return cfg
}

// The webhooks are called over the simulated network, so faults of a process affect its
// webhooks too.
func TestSimulation_WebhooksAreAskedWhateverGoesWrong(t *testing.T) {
	cfg := webhooked(t)
	cfg.Seeds = 5
	kit.Test(t, cfg, func(w *kit.World) {
		w.Run(setupAll)
		hosted(w)
	})
}

// A standby answers as the leader does.
func TestSimulation_WebhooksOfAnyReplicaAreAsked(t *testing.T) {
	cfg := webhooked(t)
	cfg.Seeds = 2
	cfg.Manager.LeaderElection = &manager.LeaderElection{ID: "website.example.flyball.dev", Namespace: "default"}
	cfg.Unguarded = []string{"Secret", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "CustomResourceDefinition"}
	cfg.Faults = kit.Swarm(kit.Crash(time.Second), kit.Pause(10*time.Second), kit.Partition(10*time.Second), kit.Cut())
	kit.Test(t, cfg, func(w *kit.World) {
		w.RunAs("replica-a", setupAll)
		w.RunAs("replica-b", setupAll)
		hosted(w)
	})
}

// hosted changes a Website's host, and verifies that it is stored as the webhooks write it
// and is the same in both versions.
func hosted(w *kit.World) {
	name := metav1.ObjectMeta{Namespace: "default", Name: "site"}
	site, old := &webv1.Website{ObjectMeta: name}, &webv1beta1.Website{ObjectMeta: name}
	want := ""
	w.Settled(func() error {
		switch {
		case !w.Get(site) || !w.Get(old):
			return errors.New("the Website is gone")
		case site.Spec.Host != want || old.Spec.Host != want:
			return fmt.Errorf("its host is %q, and %q in the former version, want %q", site.Spec.Host, old.Spec.Host, want)
		case old.Spec.Page != site.Spec.Content:
			return fmt.Errorf("its page is %q, and %q in the former version", site.Spec.Content, old.Spec.Page)
		}
		return isServed(w, site)
	})
	old.Spec.Page, old.Spec.Host, want = "<p>", "Old.Example.com.", "old.example.com"
	w.Create(old)
	for i := range 4 {
		w.Sleep(time.Duration(w.Draw("pause", 5)) * time.Second)
		host := fmt.Sprintf("Www%d.Example.com", i)
		w.Edit(site, func() { site.Spec.Host, site.Spec.Content = host, host })
		want = strings.ToLower(host)
	}
}
