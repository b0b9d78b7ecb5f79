// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/keypair"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/internal/manifest"
)

const (
	webhookAPIVersion = manifest.AdmissionGroup + "/v1"
	webhookPath       = "/apis/" + webhookAPIVersion + "/"
)

// WebhookServing is where the API server of an environment calls webhooks, and the certificate that it trusts there.
type WebhookServing struct {
	// Host and Port to listen on. Start chooses the port; nothing listens on it.
	Host string
	Port int

	// CertDir is a directory with the certificate to serve and its key: tls.crt and tls.key, in PEM.
	CertDir string

	// CA is the certificate, in PEM, of the authority that signed the one in CertDir. The API server trusts it.
	CA []byte
}

// Address returns Host and Port joined, such as "127.0.0.1:21034".
func (s WebhookServing) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// redirect replaces references to Services in object's webhooks with URLs of s. Webhooks with a URL are unchanged.
func (s WebhookServing) redirect(object *unstructured.Unstructured) error {
	for _, client := range manifest.Clients(object) {
		_, name, path, ok := manifest.Service(client)
		if !ok {
			continue
		}
		if path != "" && !strings.HasPrefix(path, "/") {
			return fmt.Errorf("the path %q of its Service %q does not begin with a slash", path, name)
		}
		delete(client, "service")
		client["url"] = (&url.URL{Scheme: "https", Host: s.Address(), Path: path}).String()
		client["caBundle"] = base64.StdEncoding.EncodeToString(s.CA)
	}
	return nil
}

// Webhooks returns where and with which certificate a program must serve the webhooks installed through the environment. It
// does not change during the life of the environment.
func (e *Environment) Webhooks() WebhookServing { return e.webhooks }

// InstallWebhooks applies the MutatingWebhookConfigurations and ValidatingWebhookConfigurations in paths and returns when
// the API server calls them. Paths are read as by InstallCRDs; a path without any such configuration and a duplicate
// configuration are errors. Webhooks that refer to a Service are called at the address of Webhooks instead, with the same
// path, and the API server trusts its certificate. Webhooks with a URL are unchanged.
func (e *Environment) InstallWebhooks(ctx context.Context, paths ...string) error {
	webhooks, err := readWebhooks(paths)
	if err != nil {
		return err
	}
	return e.installWebhooks(ctx, webhooks)
}

func readWebhooks(paths []string) ([]*unstructured.Unstructured, error) {
	what := manifest.Mutating + " or " + manifest.Validating
	webhooks, err := manifest.Read(paths, what, manifest.IsWebhookConfiguration)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	given := map[string]bool{}
	for _, object := range webhooks {
		name := fmt.Sprintf("%s %q", object.GetKind(), object.GetName())
		switch {
		case object.GetName() == "":
			return nil, fmt.Errorf("read webhooks: a %s has no name", object.GetKind())
		case object.GetAPIVersion() != webhookAPIVersion:
			return nil, fmt.Errorf("read webhooks: the version of %s is %s, want %s", name, object.GetAPIVersion(), webhookAPIVersion)
		case given[name]:
			return nil, fmt.Errorf("read webhooks: %s is given twice", name)
		}
		given[name] = true
		removeServerFields(object)
	}
	return webhooks, nil
}

// writeWebhookServing chooses the address of webhooks and writes its certificate.
func (e *Environment) writeWebhookServing(now time.Time) error {
	signer, err := keypair.NewAuthority(now, "envtest-webhooks")
	if err != nil {
		return err
	}
	pair, err := signer.Server(now)
	if err != nil {
		return err
	}
	port, err := localserver.FreePort()
	if err != nil {
		return err
	}
	e.webhooks = WebhookServing{Host: "127.0.0.1", Port: port, CertDir: e.path("webhooks"), CA: signer.PEM}
	if err := os.Mkdir(e.webhooks.CertDir, 0o700); err != nil {
		return fmt.Errorf("write the certificate of webhooks: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": pair.Cert, "tls.key": pair.Key} {
		if err := os.WriteFile(filepath.Join(e.webhooks.CertDir, name), content, 0o600); err != nil {
			return fmt.Errorf("write the certificate of webhooks: %w", err)
		}
	}
	return nil
}

// installWebhooks applies webhooks and waits until the API server calls them.
func (e *Environment) installWebhooks(ctx context.Context, webhooks []*unstructured.Unstructured) error {
	kinds := map[string]bool{}
	for _, object := range webhooks {
		err := e.webhooks.redirect(object)
		if err == nil {
			err = e.apply(ctx, webhookCollection(object), object)
		}
		if err != nil {
			return fmt.Errorf("install the %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		kinds[object.GetKind()] = true
	}
	ctx, cancel := context.WithTimeoutCause(ctx, e.opts.StartTimeout, fmt.Errorf("not called within %s", e.opts.StartTimeout))
	defer cancel()
	for kind := range kinds {
		if err := e.waitCalled(ctx, kind); err != nil {
			return fmt.Errorf("wait until every %s is in effect: %w", kind, err)
		}
	}
	return nil
}

func webhookCollection(object *unstructured.Unstructured) string {
	return webhookPath + strings.ToLower(object.GetKind()) + "s/"
}

// waitCalled waits until the API server uses the configurations of a kind. It receives them by a watch, so in the order of
// their versions: once it uses the probe, which is created last, it uses all.
func (e *Environment) waitCalled(ctx context.Context, kind string) (err error) {
	probe := newProbe(kind)
	if err := e.apply(ctx, webhookCollection(probe), probe); err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, failed := e.api.do(ctx, http.MethodDelete, webhookCollection(probe)+probe.GetName(), "", nil)
		err = errors.Join(err, failed)
	}()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		refused, waiting := e.probed(ctx, probe.GetName())
		if refused {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), waiting)
		case <-tick.C:
		}
	}
}

// newProbe returns a configuration that rejects the dry run of probed, and nothing else. It is never called: its condition
// fails because it uses a missing field. Its name sorts first, because mutating webhooks are called in the order of names,
// and one that cannot be called yet would hide those after it. The name is new each time, because the API server may still
// use a deleted probe.
func newProbe(kind string) *unstructured.Unstructured {
	name := "0-envtest-probe-" + strings.ToLower(rand.Text())
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": webhookAPIVersion,
		"kind":       kind,
		"metadata":   map[string]any{"name": name},
		"webhooks": []any{map[string]any{
			"name":                    "probe.envtest.flyball.dev",
			"admissionReviewVersions": []any{"v1"},
			"sideEffects":             "None",
			"failurePolicy":           "Fail",
			"clientConfig":            map[string]any{"url": "https://127.0.0.1:1"},
			"objectSelector":          map[string]any{"matchLabels": map[string]any{"probe.envtest.flyball.dev": name}},
			"matchConditions":         []any{map[string]any{"name": "fails", "expression": "object.probe == 'missing'"}},
			"rules": []any{map[string]any{
				"apiGroups": []any{"node.k8s.io"}, "apiVersions": []any{"v1"}, "resources": []any{"runtimeclasses"}, "operations": []any{"CREATE"},
			}},
		}},
	}}
}

// probed checks with a dry run whether a probe is in effect. Few webhooks match RuntimeClasses. A rejection by another
// webhook counts too: it is mutating, runs before the validating ones, and cannot be avoided.
func (e *Environment) probed(ctx context.Context, name string) (refused bool, waiting error) {
	body := fmt.Sprintf(`{"apiVersion":"node.k8s.io/v1","kind":"RuntimeClass","handler":"probe",
		"metadata":{"name":%[1]q,"labels":{"probe.envtest.flyball.dev":%[1]q}}}`, name)
	_, err := e.api.do(ctx, http.MethodPost, "/apis/node.k8s.io/v1/runtimeclasses?dryRun=All", "application/json", []byte(body))
	if _, ok := errors.AsType[*answerError](err); ok {
		return true, nil
	}
	return false, err
}
