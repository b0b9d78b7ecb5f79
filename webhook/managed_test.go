// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/webhook"
)

const (
	secretPath = "/api/v1/namespaces/default/secrets/hooks-webhook-cert"
	configPath = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hooks"
	crdPath    = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/sites.example.dev"
)

// store is an in-memory API server that keeps objects by path.
type store struct {
	mu struct {
		sync.Mutex
		objects map[string]map[string]any
		version int
		writes  []string
		refuse  func(method, path string) int // 0: not refused
	}
}

func newStore() *store {
	s := &store{}
	s.mu.objects = map[string]map[string]any{}
	s.mu.refuse = func(string, string) int { return 0 }
	return s
}

func (s *store) config() *rest.Config {
	return &rest.Config{Host: "http://store", QPS: -1, Transport: s}
}

// RoundTrip answers as an API server.
func (s *store) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	code, answer := s.answer(r.Method, r.URL.Path, body)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(answer)), Request: r,
	}, nil
}

func (s *store) answer(method, path string, body []byte) (int, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fail := func(code int, reason metav1.StatusReason) (int, []byte) {
		text, _ := json.Marshal(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: reason, Message: string(reason)})
		return code, text
	}
	switch code := s.mu.refuse(method, path); code {
	case 0:
	case http.StatusForbidden:
		return fail(code, metav1.StatusReasonForbidden)
	case http.StatusConflict:
		return fail(code, metav1.StatusReasonConflict)
	default:
		return fail(code, metav1.StatusReasonInternalError)
	}
	var sent map[string]any
	if method == http.MethodPost || method == http.MethodPut {
		if err := json.Unmarshal(body, &sent); err != nil {
			return fail(400, metav1.StatusReasonBadRequest)
		}
		metadata, _ := sent["metadata"].(map[string]any)
		if method == http.MethodPost {
			path += "/" + metadata["name"].(string)
		}
	}
	have := s.mu.objects[path]
	switch {
	case method == http.MethodPost && have != nil:
		return fail(409, metav1.StatusReasonAlreadyExists)
	case method != http.MethodPost && have == nil:
		return fail(404, metav1.StatusReasonNotFound)
	case method == http.MethodPut && versionOf(sent) != versionOf(have):
		return fail(409, metav1.StatusReasonConflict)
	case method == http.MethodPatch:
		var ops []struct {
			Path  string
			Value any
		}
		if json.Unmarshal(body, &ops) != nil || ops[0].Value != versionOf(have) {
			return fail(409, metav1.StatusReasonConflict)
		}
		before, _ := json.Marshal(have)
		p, err := jsonpatch.DecodePatch(body)
		if err == nil {
			before, err = p.Apply(before)
		}
		if err != nil || json.Unmarshal(before, &sent) != nil {
			return fail(422, metav1.StatusReasonInvalid)
		}
	}
	if sent != nil {
		s.putLocked(path, sent)
		s.mu.writes = append(s.mu.writes, method+" "+path)
		have = sent
	}
	text, _ := json.Marshal(have)
	return 200, text
}

func versionOf(obj map[string]any) any {
	metadata, _ := obj["metadata"].(map[string]any)
	return metadata["resourceVersion"]
}

func (s *store) putLocked(path string, obj map[string]any) {
	metadata, _ := obj["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		obj["metadata"] = metadata
	}
	s.mu.version++
	metadata["resourceVersion"] = strconv.Itoa(s.mu.version)
	s.mu.objects[path] = obj
}

// put stores an object as another client would; nil deletes it.
func (s *store) put(path string, obj map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if obj == nil {
		delete(s.mu.objects, path)
		return
	}
	s.putLocked(path, obj)
}

// get returns an object, which must not be modified.
func (s *store) get(path string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.objects[path]
}

func (s *store) refuse(f func(method, path string) int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.refuse = f
}

func (s *store) written() int { return len(s.log()) }

func (s *store) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mu.writes)
}

// bundle returns the bundle in the configuration, and that of a foreign webhook in it.
func (s *store) bundle(t *testing.T) (ours []byte, foreign any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	hooks := s.mu.objects[configPath]["webhooks"].([]any)
	of := func(i int) any { return hooks[i].(map[string]any)["clientConfig"].(map[string]any)["caBundle"] }
	text, _ := of(1).(string)
	ours, err := base64.StdEncoding.DecodeString(text)
	must(t, err)
	return ours, of(0)
}

func configuration() map[string]any {
	service := func(name string) map[string]any {
		return map[string]any{"service": map[string]any{"namespace": "default", "name": name, "path": "/x"}}
	}
	return map[string]any{"kind": "ValidatingWebhookConfiguration", "future": "stays", "webhooks": []any{
		map[string]any{"name": "other", "clientConfig": service("other")},
		map[string]any{"name": "ours", "clientConfig": service("hooks")},
	}}
}

// replica is one server with managed certificates, on its own wire.
type replica struct {
	*webhook.Server
	network *wire
	stop    func() error
}

func newReplica(t *testing.T, api *store, opts webhook.Managed) replica {
	t.Helper()
	opts.Namespace, opts.Service = "default", "hooks"
	opts.Validating, opts.CRDs = []string{"hooks"}, []string{"sites.example.dev"}
	s := webhook.New(api.config(), testScheme(), webhook.Options{Managed: &opts, DrainDelay: -1})
	webhook.Validate(s, "", nothing[*corev1.ConfigMap])
	r := replica{Server: s, network: newWire()}
	s.ListenWith(r.network)
	r.stop = run(t, s)
	return r
}

// asked calls the replica as an API server that trusts the bundle.
func (r replica) asked(t *testing.T, bundle []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	code, text, err := call(ctx, r.network.client(pool(t, bundle)), configMapPath, review(t, ofConfigMap(admissionv1.Create, "null", "{}")))
	if err == nil && code != 200 {
		err = fmt.Errorf("%d %s", code, text)
	}
	return err
}

func TestManaged_ReplicasAgreeAndTheirCallersAreTold_H5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		var replicas []replica
		for range 5 {
			replicas = append(replicas, newReplica(t, api, webhook.Managed{}))
		}
		time.Sleep(5 * time.Second)
		bundle, foreign := api.bundle(t)
		if foreign != nil {
			t.Errorf("a webhook of another Service was told to trust %v", foreign)
		}
		for i, r := range replicas {
			if err := r.asked(t, bundle); err != nil {
				t.Errorf("replica %d: %v", i, err)
			}
			must(t, r.Check(t.Context()))
			if errs := r.Snapshot().CABundleErrors; len(errs) != 1 || !strings.Contains(errs[0].Error(), "CustomResourceDefinition sites.example.dev: ") {
				t.Errorf("CABundleErrors = %v, want the CRD that is not there", errs)
			}
		}
		if api.get(configPath)["future"] != "stays" {
			t.Error("the configuration has lost a field")
		}
		writes := api.written()
		if writes != 2 {
			t.Errorf("%d writes %q, want one of the Secret and one of the configuration", writes, api.log())
		}
		time.Sleep(time.Hour)
		if api.written() != writes {
			t.Errorf("%d writes in an hour in which nothing happened", api.written()-writes)
		}
		api.put(crdPath, map[string]any{"spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "hooks"}},
		}}}})
		api.put(configPath, configuration()) // replaced without a bundle
		time.Sleep(15 * time.Second)
		if again, _ := api.bundle(t); !bytes.Equal(again, bundle) {
			t.Error("a configuration that was replaced has not been told again")
		}
		if text, _ := json.Marshal(api.get(crdPath)); !strings.Contains(string(text), base64.StdEncoding.EncodeToString(bundle)) {
			t.Errorf("a CRD that came later has not been told: %s", text)
		}
		for _, r := range replicas {
			if errs := r.Snapshot().CABundleErrors; len(errs) != 0 {
				t.Errorf("CABundleErrors = %v", errs)
			}
			must(t, r.stop())
		}
	})
}

// Two replicas receive requests all the time while certificates and authority are
// renewed repeatedly, and no request is refused.
func TestManaged_RotationRefusesNoRequest_H5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		short := webhook.Managed{Lifetime: 15 * time.Minute, AuthorityLifetime: time.Hour}
		replicas := []replica{newReplica(t, api, short), newReplica(t, api, short)}
		time.Sleep(5 * time.Second)
		bundles := map[string]bool{}
		for range 120 {
			bundle, _ := api.bundle(t)
			bundles[string(bundle)] = true
			for i, r := range replicas {
				if err := r.asked(t, bundle); err != nil {
					t.Fatalf("replica %d, after %d authorities: %v", i, len(bundles), err)
				}
			}
			time.Sleep(2 * time.Minute)
		}
		if len(bundles) < 6 {
			t.Errorf("%d bundles in four hours: there was no rotation to see", len(bundles))
		}
		for _, r := range replicas {
			must(t, r.stop())
		}
	})
}

func TestManaged_SecretThatIsLostOrSpoiledIsRestored_H5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		r := newReplica(t, api, webhook.Managed{})
		time.Sleep(5 * time.Second)
		bundle, _ := api.bundle(t)
		for name, secret := range map[string]map[string]any{
			"deleted": nil,
			"emptied": {"data": map[string]any{}},
			"spoiled": {"data": map[string]any{"tls.crt": "c3BvaWxlZA==", "tls.key": "c3BvaWxlZA==", "mine": "c3RheXM="}},
		} {
			api.put(secretPath, secret)
			time.Sleep(15 * time.Second)
			again, _ := api.bundle(t)
			if err := r.asked(t, bundle); err != nil || !bytes.Equal(again, bundle) {
				t.Errorf("%s: %v; want the same authority as before", name, err)
			}
			stored := api.get(secretPath)["data"].(map[string]any)
			if stored["tls.crt"] == nil || name == "spoiled" && stored["mine"] != "c3RheXM=" {
				t.Errorf("%s: the Secret is %v", name, stored)
			}
		}
		must(t, r.stop())
	})
}

func TestManaged_ServerThatRefusesIsAskedAgain_H4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		api.refuse(func(_, path string) int {
			if strings.Contains(path, "secrets") {
				return 403
			}
			return 0
		})
		r := newReplica(t, api, webhook.Managed{})
		time.Sleep(5 * time.Second)
		if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "keep the certificate in secret default/hooks-webhook-cert") {
			t.Errorf("Check = %v, want the Secret that may not be read", err)
		}
		api.refuse(func(method, _ string) int {
			if method == http.MethodPatch {
				return 403
			}
			return 0
		})
		time.Sleep(15 * time.Second)
		must(t, r.Check(t.Context())) // it would wait for a permission
		if errs := fmt.Sprint(r.Snapshot().CABundleErrors); !strings.Contains(errs, "ValidatingWebhookConfiguration hooks: ") {
			t.Errorf("CABundleErrors = %v, want the configuration that may not be patched", errs)
		}
		api.refuse(func(string, string) int { return 0 })
		time.Sleep(15 * time.Second)
		bundle, _ := api.bundle(t)
		must(t, r.asked(t, bundle))
		must(t, r.stop())
	})
}

// What the log says is served while the Secret cannot be read is the case: nothing, or the
// certificate from before.
func TestManaged_LogSaysWhatIsServedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		refuseSecrets := func(_, path string) int {
			if strings.Contains(path, "secrets") {
				return 403
			}
			return 0
		}
		api.refuse(refuseSecrets)
		var mu sync.Mutex
		var lines strings.Builder
		logged := func() string {
			mu.Lock()
			defer mu.Unlock()
			defer lines.Reset()
			return lines.String()
		}
		s := webhook.New(api.config(), testScheme(), webhook.Options{
			Managed:    &webhook.Managed{Namespace: "default", Service: "hooks", Validating: []string{"hooks"}},
			DrainDelay: -1,
			Logger: funcr.New(func(_, args string) {
				mu.Lock()
				defer mu.Unlock()
				lines.WriteString(args + "\n")
			}, funcr.Options{}),
		})
		webhook.Validate(s, "", nothing[*corev1.ConfigMap])
		s.ListenWith(newWire())
		stop := run(t, s)
		time.Sleep(5 * time.Second)
		if text := logged(); !strings.Contains(text, "Cannot get a certificate; there is none yet, so TLS handshakes fail") || strings.Contains(text, "previous") {
			t.Errorf("at the first start the log has\n%s", text)
		}
		api.refuse(func(string, string) int { return 0 })
		time.Sleep(15 * time.Second)
		logged()
		api.refuse(refuseSecrets)
		time.Sleep(15 * time.Second)
		if text := logged(); !strings.Contains(text, "Cannot get a certificate; still serving the previous one") {
			t.Errorf("later the log has\n%s", text)
		}
		must(t, stop())
	})
}

// A ready server receives requests, so clients must trust it before. A later failure
// does not undo that.
func TestManaged_ReadyWhenAllHaveBeenTold_H5(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		failing := func(method, _ string) int {
			if method == http.MethodPatch {
				return 500
			}
			return 0
		}
		api.refuse(failing)
		r := newReplica(t, api, webhook.Managed{})
		if err := r.Check(t.Context()); err == nil {
			t.Error("ready before anything was done")
		}
		time.Sleep(5 * time.Second)
		if err := r.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "ValidatingWebhookConfiguration hooks: ") {
			t.Errorf("Check = %v, want the configuration that does not know whom to trust", err)
		}
		api.refuse(func(string, string) int { return 0 })
		time.Sleep(15 * time.Second)
		bundle, _ := api.bundle(t)
		must(t, r.asked(t, bundle))
		must(t, r.Check(t.Context()))
		api.refuse(failing)
		api.put(configPath, configuration())
		time.Sleep(15 * time.Second)
		if errs := r.Snapshot().CABundleErrors; len(errs) == 0 {
			t.Error("the snapshot does not name the configuration that was replaced")
		}
		must(t, r.Check(t.Context()))
		must(t, r.stop())
	})
}

// The server retries less and less against constant conflicts, and replicas spread out.
func TestManaged_ConflictsAreNotFought_H5(t *testing.T) {
	for _, method := range []string{http.MethodPatch, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newStore()
				api.put(configPath, configuration())
				asked := map[time.Time]int{}
				all := 0
				api.refuse(func(is, _ string) int {
					if is != method || all > 10_000 { // bounds the test
						return 0
					}
					all++
					asked[time.Now()]++
					return 409
				})
				begin := time.Now()
				replicas := []replica{newReplica(t, api, webhook.Managed{}), newReplica(t, api, webhook.Managed{})}
				time.Sleep(2 * time.Minute)
				for _, r := range replicas {
					must(t, r.stop())
				}
				if all < 2*30 || all > 2*120 {
					t.Errorf("%d conflicts in two minutes of two replicas, want five tries each time, and ever more time between", all)
				}
				for at, n := range asked {
					if n > 1 && at != begin {
						t.Errorf("%d requests after %v at once", n, at.Sub(begin))
					}
				}
			})
		})
	}
}

// An authority that expired while nothing ran is replaced at once.
func TestManaged_StartsAfterALongRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newStore()
		api.put(configPath, configuration())
		data, err := webhook.DataOf(time.Now().Add(-2*365*24*time.Hour), webhook.Managed{Namespace: "default", Service: "hooks"})
		must(t, err)
		text, err := json.Marshal(data)
		must(t, err)
		var stored map[string]any
		must(t, json.Unmarshal(text, &stored))
		api.put(secretPath, map[string]any{"data": stored})
		r := newReplica(t, api, webhook.Managed{})
		time.Sleep(5 * time.Second)
		bundle, _ := api.bundle(t)
		must(t, r.asked(t, bundle))
		if n := strings.Count(string(bundle), "BEGIN"); n != 1 {
			t.Errorf("%d authorities are trusted, want the new one alone", n)
		}
		must(t, r.stop())
	})
}
