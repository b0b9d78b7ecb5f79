// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/resource/resourcetest"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/webhook"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	webv1beta1 "github.com/flyball-dev/flyball/examples/website/api/v1beta1"
)

// The conversion to the previous version and back, without a server.
func TestConversion_LosesNothingOnTheWay(t *testing.T) {
	mgr := withWebhooks(t)
	full := site(2)
	full.TypeMeta = website("", "", 0).TypeMeta
	full.Spec.Host, full.Labels = "www.example.com", map[string]string{"a": "b"}
	full.Status = statusOf(full, nil, time.Unix(1, 0).UTC())
	bare := &webv1.Website{TypeMeta: full.TypeMeta, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "bare"}}
	for _, was := range []*webv1.Website{full, bare} {
		var old webv1beta1.Website
		var back webv1.Website
		convert(t, mgr.Webhooks(), was, "v1beta1", &old)
		if old.Spec.Page != was.Spec.Content || old.Kind != "Website" {
			t.Errorf("of %+v v1beta1 is %+v, want the page", was, old)
		}
		convert(t, mgr.Webhooks(), &old, "v1", &back)
		if a, b := text(t, was), text(t, &back); a != b {
			t.Errorf("there and back:\n%s\nis not\n%s", b, a)
		}
	}
}

func text(t *testing.T, obj any) string {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func convert(t *testing.T, s *webhook.Server, from any, version string, to any) {
	t.Helper()
	review := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"%s/%s","objects":[%s]}}`,
		webv1.GroupVersion.Group, version, text(t, from))
	r := httptest.NewRequest(http.MethodPost, "/convert", bytes.NewReader([]byte(review)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var answer struct {
		Response struct {
			Result           metav1.Status
			ConvertedObjects []json.RawMessage
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Response.ConvertedObjects) != 1 {
		t.Fatalf("/convert = %d %s, want one object", w.Code, w.Body)
	}
	if err := json.Unmarshal(answer.Response.ConvertedObjects[0], to); err != nil {
		t.Fatal(err)
	}
}

// Random objects are the same after a conversion to the other version and back.
func TestConversion_RandomObjectsAreTheSame(t *testing.T) {
	resourcetest.RoundTrip(t, webv1beta1.Conversion, resourcetest.Options{})
}

// The manifests of deploy on a simulated server: each version is written and read as the
// other.
func TestConversion_EachVersionIsReadAsTheOther(t *testing.T) {
	l, err := simulate.Listen(simulate.ListenOptions{Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var server sync.WaitGroup
	defer server.Wait()
	defer stop()
	server.Go(func() {
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	address := freePort(t)
	admin := withConversion(t, l, address)

	opts := manager.Options{Scheme: testScheme(), MetricsAddress: "0", HealthAddress: "0", Config: l.Config()}
	opts.Webhooks = webhookOptions(webhook.Options{DrainDelay: -1, Address: address})
	opts.Webhooks.Managed.Namespace, opts.Webhooks.Managed.Names = "default", []string{"127.0.0.1"}
	opts.Webhooks.Managed.Mutating, opts.Webhooks.Managed.Validating = nil, nil
	mgr, err := manager.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr); err != nil {
		t.Fatal(err)
	}
	addWebhooks(mgr)
	defer running(t, mgr)()

	old := &webv1beta1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old"}, Spec: webv1beta1.WebsiteSpec{Page: "<p>"}}
	if err := wait(ctx, func(ctx context.Context) error { return admin.Create(ctx, kube.Copy(old)) }); err != nil {
		t.Fatal(err)
	}
	var now webv1.Website
	if err := wait(ctx, func(ctx context.Context) error {
		err := admin.Get(ctx, kube.KeyOf(old), &now)
		if err == nil && now.Status.ObservedGeneration == 0 {
			err = fmt.Errorf("it has not been reconciled: %+v", now)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(ctx, kube.KeyOf(old), old); err != nil {
		t.Fatal(err)
	}
	if now.Spec.Content != "<p>" || old.Spec.Page != "<p>" || !equality.Semantic.DeepEqual(old.Status, now.Status) {
		t.Errorf("one is %+v, the other %+v, want the same page and status", now, old)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	address, err := unusedAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// unusedAddress returns an address whose port is below the usual ephemeral ranges, so that nobody
// gets it by chance before it is used.
func unusedAddress() (string, error) {
	for {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(10_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
}

// withConversion makes l serve Websites as in deploy, converted at address.
func withConversion(t *testing.T, l *simulate.Loopback, address string) *client.Client {
	t.Helper()
	crds, err := envtest.ParseCRDs(bytes.NewReader(crd))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := os.ReadFile("deploy/conversion.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var ops []client.JSONOp
	if err := yaml.Unmarshal(patch, &ops); err != nil {
		t.Fatal(err)
	}
	ops = append(ops, client.JSONOp{Op: "replace", Path: "/spec/conversion/webhook/clientConfig", Value: map[string]any{"url": "https://" + address + "/convert"}})
	if _, err := l.Server().Put(crds[0]); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(l.Config(), testScheme(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("websites.example.flyball.dev")
	if err := admin.Patch(t.Context(), definition, client.JSONPatch(ops...)); err != nil {
		t.Fatal(err)
	}
	return admin
}
