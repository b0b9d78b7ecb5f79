// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/embedded"
)

// crd returns the CRD of Boxes, whose size is at most 5.
func crd() runtime.Object {
	properties := map[string]any{"size": map[string]any{"type": "integer", "maximum": int64(5)}}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "boxes.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Box", "plural": "boxes"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}}},
		},
	}}
}

func box(size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Box", "metadata": map[string]any{"name": "a"}, "size": size}}
}

// boxesOf returns a client for the Boxes of the cluster of the kubeconfig.
func boxesOf(t testing.TB, c embedded.Cluster) dynamic.ResourceInterface {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boxes"}).Namespace("default")
}

func TestRun_LeavesNothingButData(t *testing.T) {
	temp, data := t.TempDir(), filepath.Join(t.TempDir(), "data")
	t.Setenv("TMPDIR", temp)
	t.Chdir(filepath.Dir(data))
	opts := embedded.Options{CRDs: []runtime.Object{crd()}, Files: map[string][]byte{"sample.yaml": []byte("a: b")}}
	for _, opts.Data = range []string{"", data, "data"} {
		ctx, cancel := context.WithCancel(t.Context())
		enough := errors.New("enough")
		err := embedded.Run(ctx, opts, func(ctx context.Context, c embedded.Cluster) error {
			if !filepath.IsAbs(c.Kubeconfig) || !filepath.IsAbs(c.Dir) {
				t.Errorf("the kubeconfig is %s, in %s; want what is right in every directory", c.Kubeconfig, c.Dir)
			}
			boxes := boxesOf(t, c)
			_, err := boxes.Create(ctx, box(6), metav1.CreateOptions{})
			if !apierrors.IsInvalid(err) {
				t.Errorf("a Box that the CRD does not allow: %v, want Invalid", err)
			}
			if _, err := boxes.Create(ctx, box(5), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(c.Dir, "sample.yaml")); err != nil || string(text) != "a: b" {
				t.Errorf("beside the kubeconfig is %q, %v, want the sample", text, err)
			}
			cancel()
			<-ctx.Done()
			// During shutdown the server still answers.
			if _, err := boxes.Get(context.WithoutCancel(ctx), "a", metav1.GetOptions{}); err != nil {
				t.Errorf("when it is to end: %v, want the Box", err)
			}
			return enough
		})
		if !errors.Is(err, enough) {
			t.Errorf("Run ended with %v, want the function's error", err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 0 {
		t.Errorf("%v, %v is left in the temporary directory", left, err)
	}
	if left, err := os.ReadDir(data); err != nil || len(left) != 2 {
		t.Errorf("in the directory are %v, %v, want journal and lock", left, err)
	}
}

// The kubeconfig may be elsewhere, the server has further options, and no actor need run.
func TestRun_AsRequested(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	opts := embedded.Options{Kubeconfig: file, NoActors: true, Listen: simulate.ListenOptions{Options: simulate.Options{Namespaces: []string{"short"}}}}
	err := embedded.Run(t.Context(), opts, func(ctx context.Context, c embedded.Cluster) error {
		if c.Kubeconfig != file || c.Dir != dir {
			t.Errorf("the kubeconfig is %s in %s, want %s", c.Kubeconfig, c.Dir, file)
		}
		cfg, err := clientcmd.BuildConfigFromFlags("", file)
		if err != nil {
			return err
		}
		client, err := dynamic.NewForConfig(cfg)
		if err != nil {
			return err
		}
		namespaces := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
		if err := namespaces.Delete(ctx, "short", metav1.DeleteOptions{}); err != nil {
			return err
		}
		_, err = namespaces.Get(ctx, "short", metav1.GetOptions{})
		if err != nil {
			t.Errorf("without actors the deleted namespace: %v, want it to stay", err)
		}
		if asked := c.Server.Served(); len(asked) == 0 {
			t.Error("the server has served nothing; want this program's server")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v is left beside the kubeconfig", left, err)
	}
}

func TestRun_SaysWhichCRDIsRefused(t *testing.T) {
	bad := crd().(*unstructured.Unstructured)
	bad.SetName("cases.example.com")
	err := embedded.Run(t.Context(), embedded.Options{CRDs: []runtime.Object{crd(), bad}}, nil)
	if refused := (*embedded.DefinitionError)(nil); !errors.As(err, &refused) || refused.Index != 1 || refused.Name != "cases.example.com" || !apierrors.IsInvalid(err) {
		t.Errorf("a CRD with another's name: %v, want a DefinitionError for the second", err)
	}
}

func TestRun_SaysWhatIsWrong(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	err := embedded.Run(t.Context(), embedded.Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "TMPDIR names another place") {
		t.Errorf("without a temporary directory: %v, want an error that says what to do", err)
	}
}

// From the start to the answer to a client's first request, which is about a CRD.
func BenchmarkRun_Start(b *testing.B) {
	for b.Loop() {
		err := embedded.Run(b.Context(), embedded.Options{CRDs: []runtime.Object{crd()}}, func(ctx context.Context, c embedded.Cluster) error {
			_, err := boxesOf(b, c).List(ctx, metav1.ListOptions{})
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

// A handler in the process converts Boxes, without a certificate or an address.
func TestRun_WebhooksAreAnsweredInTheProcess(t *testing.T) {
	definition := crd().(*unstructured.Unstructured)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	other := runtime.DeepCopyJSONValue(versions[0]).(map[string]any)
	other["name"], other["storage"] = "v2", false
	conversion := map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"},
		"clientConfig":             map[string]any{"service": map[string]any{"namespace": "default", "name": "boxes", "path": "/convert"}},
	}}
	err := errors.Join(unstructured.SetNestedSlice(definition.Object, append(versions, other), "spec", "versions"),
		unstructured.SetNestedMap(definition.Object, conversion, "spec", "conversion"))
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/convert" {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		request := review["request"].(map[string]any)
		objects := request["objects"].([]any)
		for _, obj := range objects {
			obj.(map[string]any)["apiVersion"] = request["desiredAPIVersion"]
		}
		review["response"] = map[string]any{"uid": request["uid"], "convertedObjects": objects, "result": map[string]any{"status": "Success"}}
		delete(review, "request")
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	})
	opts := embedded.Options{CRDs: []runtime.Object{definition}, Webhooks: handler, NoActors: true}
	err = embedded.Run(t.Context(), opts, func(ctx context.Context, c embedded.Cluster) error {
		if _, err := boxesOf(t, c).Create(ctx, box(5), metav1.CreateOptions{}); err != nil {
			return err
		}
		client, err := dynamic.NewForConfig(c.Config)
		if err != nil {
			return err
		}
		got, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "boxes"}).Namespace("default").Get(ctx, "a", metav1.GetOptions{})
		if err == nil && got.GetAPIVersion() != "example.com/v2" {
			t.Errorf("the Box is %v, want it in v2", got.Object)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// The kubeconfig of a program is at the same place at each start, and a second process has
// another one meanwhile. Nothing stays, not even of the directories.
func TestRun_KubeconfigOfANameIsAtOnePlace(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	cache, err := os.UserCacheDir()
	if err != nil || !strings.HasPrefix(cache, home) {
		t.Skipf("the cache directory %s, %v is not in HOME", cache, err)
	}
	want := filepath.Join(cache, "flyball", "simulated", "boxes", "kubeconfig")
	opts := embedded.Options{Name: "boxes", NoActors: true}
	for range 2 {
		err := embedded.Run(t.Context(), opts, func(ctx context.Context, c embedded.Cluster) error {
			if c.Kubeconfig != want {
				t.Errorf("the kubeconfig is %s, want %s", c.Kubeconfig, want)
			}
			first, err := os.ReadFile(want)
			if err != nil {
				t.Error(err)
			}
			return embedded.Run(ctx, opts, func(_ context.Context, second embedded.Cluster) error {
				if now, err := os.ReadFile(want); second.Kubeconfig == want || err != nil || string(now) != string(first) {
					t.Errorf("a second process has the kubeconfig %s, and that of the first is unchanged: %v, %v", second.Kubeconfig, string(now) == string(first), err)
				}
				return nil
			})
		})
		if err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("%v, %v is left in the cache directory", left, err)
	}
}

func TestCluster_CommandsAreWordsOfAShell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a b")
	got := embedded.Cluster{Kubeconfig: filepath.Join(dir, "kubeconfig"), Dir: dir}.Commands("sample.yaml", "boxes")
	want := "  export KUBECONFIG='" + filepath.Join(dir, "kubeconfig") + "'\n  kubectl apply -f '" + filepath.Join(dir, "sample.yaml") + "'\n  kubectl get boxes -w\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The server calls webhooks at the program's address with their caBundle, and a later run
// without webhooks, or with a handler of conversions, has no configuration that would deny
// everything.
func TestRun_WebhooksAreCalledAtTheirAddress(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review["response"] = map[string]any{"uid": review["request"].(map[string]any)["uid"], "allowed": false,
			"status": map[string]any{"message": "asked at " + r.URL.Path}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer server.Close()
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	manifests := []byte(`apiVersion: v1
kind: Namespace
metadata: {name: boxes}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: boxes, namespace: boxes}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: boxes}
webhooks:
  - name: validate.boxes.example.com
    admissionReviewVersions: [v1]
    sideEffects: None
    rules: [{apiGroups: [example.com], apiVersions: [v1], resources: [boxes], operations: [CREATE]}]
    clientConfig: {url: "https://example.com/judge", caBundle: ` + ca + `}
`)
	opts := embedded.Options{CRDs: []runtime.Object{crd()}, Data: t.TempDir(), Manifests: manifests, NoActors: true}
	address := server.Listener.Addr().String()
	for _, run := range []struct {
		address string
		handler http.Handler
	}{{address, nil}, {"", nil}, {address, nil}, {"", http.NotFoundHandler()}} {
		opts.WebhookAddress, opts.Webhooks = run.address, run.handler
		err := embedded.Run(t.Context(), opts, func(ctx context.Context, c embedded.Cluster) error {
			_, err := boxesOf(t, c).Create(ctx, box(5), metav1.CreateOptions{})
			denied := err != nil && strings.Contains(err.Error(), "asked at /judge")
			created := err == nil || apierrors.IsAlreadyExists(err) // by an earlier run
			if called := run.address != ""; denied != called || created == called {
				t.Errorf("with webhooks at %q a Box is created: %v", opts.WebhookAddress, err)
			}
			client, err := dynamic.NewForConfig(c.Config)
			if err != nil {
				return err
			}
			deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})
			if list, err := deployments.List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
				t.Errorf("there are the Deployments %v, %v, want none: the program is this process", list, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
