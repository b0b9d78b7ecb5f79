// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/internal/manifest"
)

func TestReadWebhooks_NamesWhatIsWrong(t *testing.T) {
	const config = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\n"
	for _, tc := range []struct{ name, in, want string }{
		{"no webhook configuration", "kind: Pod\n", "has no MutatingWebhookConfiguration or ValidatingWebhookConfiguration"},
		{"nothing", "", "has no MutatingWebhookConfiguration"},
		{"no YAML", "a: [b", "webhooks.yaml: "},
		{"no name", strings.Replace(config, "name: a", "", 1), "a ValidatingWebhookConfiguration has no name"},
		{"old version", strings.Replace(config, "/v1", "/v1beta1", 1),
			`the version of ValidatingWebhookConfiguration "a" is admissionregistration.k8s.io/v1beta1, want admissionregistration.k8s.io/v1`},
		{"twice", config + "---\n" + config, `ValidatingWebhookConfiguration "a" is given twice`},
	} {
		path := filepath.Join(t.TempDir(), "webhooks.yaml")
		if err := os.WriteFile(path, []byte(tc.in), 0o600); err != nil {
			t.Fatal(err)
		}
		// Start parses before it looks for binaries: nothing runs when it returns.
		_, err := Start(t.Context(), Options{Webhooks: []string{path}, Assets: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "start the control plane: read webhooks: ") || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one of reading webhooks with %q", tc.name, err, tc.want)
		}
	}
	if _, err := readWebhooks([]string{"testdata/none.yaml"}); err == nil || !strings.Contains(err.Error(), "testdata/none.yaml: no such file") {
		t.Errorf("a path that does not exist: error %v, want one that names it", err)
	}
	if _, err := readWebhooks([]string{"testdata/webhooks", "testdata/webhooks/webhooks.yaml"}); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Errorf("a directory and a file in it: error %v, want one", err)
	}
}

func TestReadWebhooks_KindsMayShareAName(t *testing.T) {
	const config = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\n"
	path := filepath.Join(t.TempDir(), "webhooks.yaml")
	text := config + "---\n" + strings.Replace(config, "Validating", "Mutating", 1)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readWebhooks([]string{path}); len(got) != 2 || err != nil {
		t.Errorf("readWebhooks = %d configurations, %v, want 2", len(got), err)
	}
}

func TestWebhookServing_Redirect(t *testing.T) {
	serving := WebhookServing{Host: "127.0.0.1", Port: 21034, CA: []byte("authority")}
	authority := base64.StdEncoding.EncodeToString(serving.CA)
	crd := func(client string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"conversion":{"webhook":{"clientConfig":` + client + `}}}}`
	}
	config := func(client string) string {
		return `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","webhooks":[{"clientConfig":` + client + `}]}`
	}
	for _, tc := range []struct{ name, in, url, ca, wantErr string }{
		{"Service", config(`{"service":{"namespace":"n","name":"s","path":"/a/b","port":8443},"caBundle":"Cg=="}`), "https://127.0.0.1:21034/a/b", authority, ""},
		{"Service without a path", config(`{"service":{"namespace":"n","name":"s"}}`), "https://127.0.0.1:21034", authority, ""},
		{"URL", config(`{"url":"https://elsewhere/a","caBundle":"Cg=="}`), "https://elsewhere/a", "Cg==", ""},
		{"conversion", crd(`{"service":{"namespace":"n","name":"s","path":"/convert"}}`), "https://127.0.0.1:21034/convert", authority, ""},
		{"path without a slash", config(`{"service":{"namespace":"n","name":"s","path":"a"}}`), "", "", `the path "a" of its Service "s" does not begin with a slash`},
	} {
		objects, err := manifest.Parse(strings.NewReader(tc.in))
		if err != nil {
			t.Fatal(err)
		}
		err = serving.redirect(objects[0])
		if tc.wantErr != "" {
			if err == nil || err.Error() != tc.wantErr {
				t.Errorf("%s: error %v, want %s", tc.name, err, tc.wantErr)
			}
			continue
		}
		got := manifest.Clients(objects[0])[0]
		if _, left := got["service"]; err != nil || left || got["url"] != tc.url || got["caBundle"] != tc.ca {
			t.Errorf("%s: clientConfig %v, %v, want the URL %s and the CA bundle %s", tc.name, got, err, tc.url, tc.ca)
		}
	}
	bare := &unstructured.Unstructured{Object: map[string]any{"kind": manifest.Definition}}
	if err := serving.redirect(bare); err != nil {
		t.Errorf("a CRD without conversion: %v", err)
	}
}
