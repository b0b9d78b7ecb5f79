// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
)

func TestChecks_ReadyOnceWhatIsWrittenIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, opts manager.Options) {
		api, err := discovery.NewDiscoveryClientForConfig(opts.Config)
		if err != nil {
			t.Fatal(err)
		}
		admin, err := client.New(opts.Config, opts.Scheme, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		definition := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": "websites.example.flyball.dev"},
		}}
		withSubresources := func(subresources map[string]any) {
			t.Helper()
			patch := client.JSONPatch(client.JSONOp{Op: "replace", Path: "/spec/versions/0/subresources", Value: subresources})
			if err := admin.Patch(t.Context(), definition, patch); err != nil {
				t.Fatal(err)
			}
		}
		check := &servedOnce{api: api, resource: "websites/status"}
		withSubresources(map[string]any{})
		if err := check.ask(t.Context()); err == nil || !strings.Contains(err.Error(), "websites/status is not served in example.flyball.dev/v1") {
			t.Errorf("without the subresource: %v, want an error that says what is missing", err)
		}
		withSubresources(map[string]any{"status": map[string]any{}})
		if err := check.ask(t.Context()); err != nil {
			t.Errorf("with it: %v, want ready", err)
		}
		if err := admin.Delete(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
		if err := check.ask(t.Context()); err != nil {
			t.Errorf("later: %v, want no question any more", err)
		}
	})
}

func TestProcess_IsReadyByItsOwnCheckToo(t *testing.T) {
	m := newMachine(t)
	address := freePort(t)
	p := m.start(t, "-health-probe-bind-address", address)
	if _, err := p.sites.Create(t.Context(), p.sample, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.waitReady(t) // so it listens
	resp, err := http.Get("http://" + address + "/readyz?verbose")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(text), "[+]websites/status ok\n") {
		t.Errorf("%v, %d, want the check among those that passed:\n%s", err, resp.StatusCode, text)
	}
	p.stop(t, os.Interrupt)
	m.clean(t)
}
