// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/authority"
	"github.com/flyball-dev/flyball/internal/manifest"
)

// Listen returns the listener of the process's webhooks, in place of a port. Faults of
// the process's network affect it too.
func (p *process) Listen(_ context.Context, address string) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.listens {
		return nil, fmt.Errorf("listen on %s: a process of a simulation has one port, for its webhooks, and that is taken", address)
	}
	p.mu.listens = true
	return doorway{p.inbound.Listener(), p}, nil
}

// doorway is the process's end of its inbound network.
type doorway struct {
	net.Listener
	p *process
}

// Accept blocks for the next connection.
func (d doorway) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return conn{c, d.p}, nil
}

// Close closes the port for good.
func (d doorway) Close() error {
	d.p.mu.Lock()
	d.p.mu.listens = false
	d.p.mu.Unlock()
	return d.Listener.Close()
}

// answers reports whether the process serves a webhook at path, from the view of a
// Service: its port is open and it is ready.
func (p *process) answers(path string) bool {
	p.mu.Lock()
	open, mgr := p.mu.listens, p.manager
	p.mu.Unlock()
	if !open || mgr == nil || mgr.Webhooks().Check(p.w.ctx) != nil {
		return false
	}
	for _, hook := range mgr.Webhooks().Snapshot().Webhooks {
		if hook.Path == path {
			return true
		}
	}
	return false
}

// dialWebhook connects the server to a process that serves a webhook, as a Service
// would. The seed chooses one of several replicas for each call.
func (w *World) dialWebhook(ctx context.Context, webhook *url.URL) (net.Conn, error) {
	ready := slices.DeleteFunc(w.running(), func(p *process) bool { return !p.answers(webhook.Path) })
	if len(ready) == 0 {
		return nil, fmt.Errorf("dial tcp: connect to %s: connection refused: no process that is ready serves %s", webhook.Host, webhook.Path)
	}
	to := ready[w.draws.Next("webhook "+webhook.Path)%uint64(len(ready))]
	return to.inbound.DialContext(ctx, "tcp", webhook.Host)
}

// unanswered reports whether the server could not call a webhook. A user then retries.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "failed calling webhook") || strings.Contains(text, "conversion webhook for")
}

// patiently carries out an action of the user, and retries while a required webhook
// cannot be called.
func (w *World) patiently(name string, do func() error) error {
	deadline := time.Now().Add(w.cfg.Quiesce)
	for {
		err := do()
		if !unanswered(err) || time.Now().After(deadline) || w.ctx.Err() != nil {
			return err
		}
		w.instants.Rest(w.ctx, "user again "+name, time.Second+w.draws.UpTo("user again "+name, time.Millisecond))
	}
}

// install stores an object as an administrator does.
func (w *World) install(what, collection string, object []byte) error {
	r, err := http.NewRequest(http.MethodPost, "http://simulated"+collection, bytes.NewReader(object))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.server.Direct("user").RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("install %s: the server answers %s", what, textOf(answer))
	}
	return nil
}

func (w *World) installWebhooks() error {
	for _, given := range w.cfg.webhooks {
		text, err := given.MarshalJSON()
		if err == nil {
			collection := "/apis/" + given.GetAPIVersion() + "/" + strings.ToLower(given.GetKind()) + "s"
			err = w.install(given.GetKind()+" "+given.GetName(), collection, text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// certify creates a certificate for the webhooks of all processes, and sets it in
// configurations and CRDs, as cert-manager does in a cluster. It does nothing for a
// program that creates its own certificate or has a directory with one.
func (w *World) certify(t interface{ TempDir() string }) error {
	var clients []map[string]any
	for _, object := range slices.Concat(w.cfg.webhooks, w.cfg.definitions) {
		clients = append(clients, manifest.Clients(object)...)
	}
	if len(clients) == 0 || w.cfg.Manager.Webhooks.Managed != nil || w.cfg.Manager.Webhooks.CertDir != "" {
		return nil
	}
	var names []string
	for _, client := range clients {
		if namespace, name, _, ok := manifest.Service(client); ok {
			names = append(names, name+"."+namespace+".svc")
		} else if at, _ := client["url"].(string); at != "" {
			if u, err := url.Parse(at); err == nil {
				names = append(names, u.Hostname())
			}
		}
	}
	signer, err := authority.New(w.start, "simulated")
	if err != nil {
		return err
	}
	pair, err := signer.Server(w.start, names...)
	if err != nil {
		return err
	}
	dir := t.TempDir()
	for file, text := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return err
		}
	}
	w.cfg.Manager.Webhooks.CertDir = dir
	for _, client := range clients {
		if have, _ := client["caBundle"].(string); have == "" {
			client["caBundle"] = base64.StdEncoding.EncodeToString(signer.PEM)
		}
	}
	return nil
}

func (cfg Config) converted() (kinds []string) {
	for _, crd := range cfg.definitions {
		if len(manifest.Clients(crd)) > 0 {
			group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
			kinds = append(kinds, kind+"."+group)
		}
	}
	return kinds
}

func copies(of []*unstructured.Unstructured) (out []*unstructured.Unstructured) {
	for _, object := range of {
		out = append(out, object.DeepCopy())
	}
	return out
}
