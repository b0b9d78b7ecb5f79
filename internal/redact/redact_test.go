// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/internal/redact"
)

const canary = "canary-5561"

func TestKind_WhatIsConfidential(t *testing.T) {
	for _, c := range []struct {
		group, kind, sub string
		want             bool
	}{
		{"", "Secret", "", true},
		{"", "secrets", "", true},
		{"", "ServiceAccount", "token", true},
		{"", "ServiceAccount", "", false},
		{"", "ConfigMap", "", false},
		{"authentication.k8s.io", "TokenReview", "", true},
		{"authentication.k8s.io", "TokenRequest", "", true},
		{"authentication.k8s.io", "SelfSubjectReview", "", false},
		{"example.com", "Secret", "", false},
	} {
		if got := redact.Kind(schema.GroupKind{Group: c.group, Kind: c.kind}, c.sub); got != c.want {
			t.Errorf("%s/%s %s: %v, want %v", c.group, c.kind, c.sub, got, c.want)
		}
	}
}

func TestText_HidesWhatLooksLikeACredential(t *testing.T) {
	for _, text := range []string{
		"-----BEGIN EC PRIVATE KEY-----\n", "Authorization: BEARER abcdefgh1", "basic YWRhOnB3ZA==", "x eyJhbGciOiJS.abcdefgh", "ghp_0123456789abcdef0", "ghr_0123456789abcdef0",
		"gho_0123456789abcdef0", "ghu_0123456789abcdef0", "ghs_0123456789abcdef0", "AKIA0123456789ABCDEF", "PassWord=x", "passwd: x", "client_secret: x", `"token":"x"`,
		"apikey=x", "api_key: x", "API-KEY = x", "client-key-data: x", "postgres://ada:pwd@db/x",
	} {
		if is := redact.Text(text); is != redact.Hidden {
			t.Errorf("Text(%q) = %q, want it hidden", text, is)
		}
	}
	for _, text := range []string{"", "a password is needed", "https://example.com/a:b", "the token has expired", "image: nginx", "basic auth"} {
		if is := redact.Text(text); is != text {
			t.Errorf("Text(%q) = %q", text, is)
		}
	}
}

func TestError_KeepsWhatProgramsAskFor(t *testing.T) {
	server := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: "slow down",
		Details: &metav1.StatusDetails{Name: "web", Kind: "secrets", RetryAfterSeconds: 7, Causes: []metav1.StatusCause{{Type: "X", Field: "data[a]", Message: canary}}},
	}}
	got := redact.Error(server)
	if seconds, ok := apierrors.SuggestsClientDelay(got); !ok || seconds != 7 || !apierrors.IsTooManyRequests(got) || !apierrors.HasStatusCause(got, "X") || got.Error() != "slow down" {
		t.Errorf("got %#v, want all of it but the cause's message", got)
	}
	if status, _ := errors.AsType[*apierrors.StatusError](got); status.ErrStatus.Details.Causes[0].Message != "" {
		t.Error("the cause's message is still there")
	}
	if server.ErrStatus.Details.Causes[0].Message != canary {
		t.Error("the caller's error was changed")
	}
	if other := errors.New("no route"); redact.Error(other) != other || redact.Error(nil) != nil {
		t.Error("an error that is none of the server's was changed")
	}
}

func TestError_ManyFieldsAreCut(t *testing.T) {
	var causes []metav1.StatusCause
	for range 1000 {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[" + strings.Repeat("k", len(causes)%50) + "]", Message: canary})
	}
	err := redact.Error(&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Message: canary, Details: &metav1.StatusDetails{Causes: causes}}})
	if text := err.Error(); strings.Contains(text, canary) || len(text) > 2000 || !strings.Contains(text, "…") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}

// Almost valid kubeconfigs, with a secret where YAML or the types fail.
func TestConfig_KubeconfigsAreNotRepeated(t *testing.T) {
	repeated := 0
	const cluster = "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {server: https://a}\n"
	for name, text := range map[string]string{
		"anchor":           cluster + "users:\n- name: a\n  user:\n    token: *" + canary + "\n",
		"tag":              cluster + "users:\n- name: a\n  user:\n    token: !" + canary + "!x y\n",
		"no base64":        cluster + "users:\n- name: a\n  user:\n    client-key-data: '%%" + canary + "'\n",
		"a map":            cluster + "users:\n- name: a\n  user:\n    token: {a: " + canary + "}\n",
		"a list of tokens": cluster + "users:\n- name: a\n  user: [" + canary + "]\n",
		"a lost quote":     cluster + "users:\n- name: a\n  user:\n    token: \"" + canary + "\n",
		"bad indentation":  cluster + "users:\n- name: a\n user:\n    token: " + canary + "\n",
		"a colon":          cluster + "users:\n- name: a\n  user:\n    token: " + canary + ": x: y\n",
		"a key twice":      cluster + "users:\n- name: a\n  user:\n    token: x\n    token: " + canary + "\n",
		"only the token":   canary + "\n",
		"JSON":             `{"apiVersion":"v1","kind":"Config","users":[{"name":"a","user":{"token":` + canary + `}}]}`,
		"another kind":     "apiVersion: v1\nkind: " + canary + "\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := clientcmd.LoadFromFile(file)
		if err == nil {
			continue // a token like any other
		}
		if strings.Contains(err.Error(), canary) && name != "another kind" {
			repeated++
		}
		if got := redact.Config(err).Error(); strings.Contains(got, canary) && name != "another kind" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if repeated == 0 {
		t.Error("no error repeats a secret before it is cleaned: the test shows nothing")
	}
}

// Texts under the name of a credential are hidden, and other values under such names are not.
func TestTree_FieldNames(t *testing.T) {
	tree := map[string]any{
		"password": canary, "spec": map[string]any{
			"Passwd": canary, "token": canary, "accessToken": canary, "list": []any{map[string]any{"client-key-data": canary, "api_key": canary}},
			"automountServiceAccountToken": true, "tokenSecretRef": "shown", "secretKey": map[string]any{"name": "shown"}, "privateKey": "", "apiKey": nil,
		},
	}
	out := redact.Tree(schema.GroupKind{Group: "example.com", Kind: "User"}, "", tree)
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{`"automountServiceAccountToken":true`, `"tokenSecretRef":"shown"`, `"secretKey":{"name":"shown"}`, `"privateKey":""`, `"apiKey":null`} {
		if !strings.Contains(string(text), shown) {
			t.Errorf("%s lacks %s", text, shown)
		}
	}
	if strings.Contains(string(text), canary) || tree["password"] != canary {
		t.Errorf("%s has what is hidden, or its original %v has lost it", text, tree)
	}
}
