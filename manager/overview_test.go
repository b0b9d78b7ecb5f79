// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/webhook"
)

// The overview has what the process sends and serves, and no key.
func TestManager_OverviewHasTraffic(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
	}))
	t.Cleanup(server.Close)
	now, dir := time.Now(), t.TempDir()
	authority, err := keypair.NewAuthority(now, "shop")
	must(t, err)
	pair, err := authority.Server(now, "hooks.shop.svc")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), pair.Cert, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), pair.Key, 0o600))
	m := newManager(t, manager.Options{
		Config:   &rest.Config{Host: server.URL},
		Webhooks: webhook.Options{Address: "127.0.0.1:0", CertDir: dir, DrainDelay: -1},
	})
	handler, err := m.MetricsHandler(manager.Serving{})
	must(t, err)
	overview := func() (o inspect.Overview, text string) {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, inspect.Path+"overview", nil))
		text = w.Body.String()
		must(t, json.Unmarshal(w.Body.Bytes(), &o))
		return o, text
	}
	if o, text := overview(); o.Webhooks != nil || len(o.Requests)+len(o.Events) > 0 || !strings.Contains(text, `"requests":[],"events":[]`) {
		t.Errorf("before anything happened the overview is %s", text)
	}
	webhook.Validate(m.Webhooks(), "", func(context.Context, *webhook.Request, *corev1.Pod, *corev1.Pod) error { return nil })
	stop, wait := run(t, m)
	<-m.Webhooks().Started()
	for range 3 {
		if err := m.Client().Get(t.Context(), kube.Key{Namespace: "shop", Name: "web"}, &corev1.ConfigMap{}); err == nil {
			t.Fatal("the server has what it has not")
		}
	}
	events := m.Events("website")
	for range 2 {
		events.Eventf(newConfigMap("a"), nil, corev1.EventTypeNormal, "Created", "create", "it is there")
	}
	for i := range 150 {
		events.Eventf(newConfigMap("a"), nil, corev1.EventTypeWarning, fmt.Sprint("Reason", i), "look", "and more")
	}
	events.Eventf(newConfigMap("a"), nil, corev1.EventTypeWarning, strings.Repeat("x", 1000), "look", "long")
	o, text := overview()
	gets := uint64(0)
	for _, r := range o.Requests {
		if r.Method == http.MethodGet && r.Code == "404" {
			gets = r.Count
		}
	}
	if gets != 3 {
		t.Errorf("the requests are %+v, want 3 GETs with 404", o.Requests)
	}
	if n := len(o.Events); n != 100 || len(o.Events[0].Reason) > 128 || o.Events[1].Reason != "Reason149" || o.Events[1].Count != 1 || o.Events[1].Controller != "website" || o.Events[1].Last.IsZero() {
		t.Errorf("%d reasons, the first are %+v; want the last 100, the latest first", n, o.Events[:2])
	}
	hooks := o.Webhooks
	if hooks == nil || hooks.Certificate == nil || len(hooks.Webhooks) != 1 || hooks.Webhooks[0].Path != "/validate--v1-pod" || hooks.Webhooks[0].Kind != "Pod" {
		t.Fatalf("the webhooks are %+v", hooks)
	}
	if c := hooks.Certificate; !strings.Contains(strings.Join(c.Names, " "), "hooks.shop.svc") || c.Issuer != "CN=shop" || c.NotAfter.Sub(now) < 364*24*time.Hour {
		t.Errorf("the certificate is %+v", c)
	}
	for line := range strings.Lines(string(pair.Key)) {
		if line = strings.TrimSpace(line); line != "" && strings.Contains(text, line) {
			t.Errorf("the overview has a part of the key: %s", line)
		}
	}
	stop()
	must(t, wait())
}
