// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flyball-dev/flyball/webhook"
)

func TestDefaultCertDir_IsSharedWithNobody(t *testing.T) {
	own := t.TempDir()
	t.Setenv("HOME", own)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(own, "cache"))
	t.Setenv("LocalAppData", filepath.Join(own, "cache"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := webhook.DefaultCertDir(), filepath.Join(cache, "k8s-webhook-server", "serving-certs"); got != want {
		t.Errorf("on a machine that others may share it is %s, want %s", got, want)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	if got, want := webhook.DefaultCertDir(), filepath.Join(os.TempDir(), "k8s-webhook-server", "serving-certs"); got != want {
		t.Errorf("in a Pod it is %s, want %s, where manifests mount it", got, want)
	}
}
