// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

const canary = "canary-8213"

// dated is a Secret read into a foreign type whose decoding errors contain values.
type dated struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]metav1.Time `json:"data"`
}

func (d *dated) DeepCopyObject() runtime.Object { out := *d; return &out }

func newSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name}, Data: map[string][]byte{"password": []byte(canary)}}
}

// The errors of the server and of proxies before it contain confidential values.
func TestClient_SecretsAreInNoErrorAndNoLog_C13(t *testing.T) {
	whole := `{"kind":"Secret","apiVersion":"v1","metadata":{"namespace":"prod","name":"web"},"data":{"password":"` + base64.StdEncoding.EncodeToString([]byte(canary)) + `"}}`
	get := func(ctx context.Context, c *client.Client) error {
		return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.Secret{})
	}
	create := func(ctx context.Context, c *client.Client) error { return c.Create(ctx, newSecret("web")) }
	apply := func(ctx context.Context, c *client.Client) error {
		return c.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "prod", "name": "web"},
			"stringData": map[string]any{"password": canary},
		}}, client.FieldOwner("test"))
	}
	token := func(ctx context.Context, c *client.Client) error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "default"}}
		request := &authenticationv1.TokenRequest{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"}}
		return c.SubResource("token").Create(ctx, account, request)
	}
	list := func(ctx context.Context, c *client.Client) error {
		for _, err := range client.List[*corev1.Secret](ctx, c) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	watch := func(ctx context.Context, c *client.Client) error {
		for _, err := range client.Watch[*corev1.Secret](ctx, c) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for name, row := range map[string]struct {
		call   func(context.Context, *client.Client) error
		answer reply
		says   []string         // in the error; empty: there is none
		is     func(error) bool // nil: nothing more
	}{
		"read":          {get, reply{body: whole}, nil, nil},
		"created":       {create, reply{code: 201, body: whole}, nil, nil},
		"token":         {token, reply{code: 201, body: `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":{"token":"` + canary + `"}}`}, nil, nil},
		"token refused": {token, status(422, "Invalid", `spec: Invalid value: "`+canary+`": no`, `"causes":[{"reason":"FieldValueInvalid","message":"Invalid value: `+canary+`","field":"spec.audiences"}]`), []string{"Invalid: ", "spec.audiences: FieldValueInvalid"}, apierrors.IsInvalid},
		"type error of an apply": {apply, status(500, "InternalError", "failed to create typed patch object (prod/web; /v1, Kind=Secret): errors:\\n  .stringData.password: expected string, got &value.valueUnstructured{Value:\""+canary+"\"}\\n  .data.a-b.c: expected string, got "+canary, ""),
			[]string{".stringData.password: expected string", ".data.a-b.c: expected string"}, apierrors.IsInternalError},
		"invalid value": {create, status(422, "Invalid", `Secret "web" is invalid: type: Invalid value: "`+canary+`": field is immutable`, `"name":"web","kind":"Secret","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: `+canary+`","field":"type"}]`),
			[]string{"create Secret prod/web", "type: FieldValueInvalid"}, apierrors.IsInvalid},
		"bad request": {create, status(400, "BadRequest", `Secret in version "v1" cannot be handled as a Secret: json: cannot unmarshal number 8213 into Go struct field Secret.stringData of type string, near `+canary, ""),
			[]string{"Secret.stringData: expected string"}, apierrors.IsBadRequest},
		"unknown field":     {create, status(400, "BadRequest", `strict decoding error: unknown field "data2", near `+canary, ""), []string{`unknown field "data2"`}, apierrors.IsBadRequest},
		"webhook":           {create, status(403, "Forbidden", `admission webhook "weak.example.com" denied the request: the password `+canary+` is weak`, ""), []string{`admission webhook "weak.example.com" denied the request`}, apierrors.IsForbidden},
		"policy":            {create, status(404, "NotFound", `ValidatingAdmissionPolicy 'x' with binding 'y' denied request: `+canary, ""), []string{"NotFound; "}, apierrors.IsNotFound},
		"no right":          {get, status(403, "Forbidden", `secrets "web" is forbidden: User "me" cannot get resource "secrets" in API group "" in the namespace "prod"`, ""), []string{`User "me" cannot get resource "secrets"`}, apierrors.IsForbidden},
		"not there":         {get, status(404, "NotFound", `secrets "web" not found`, ""), []string{`secrets "web" not found`}, apierrors.IsNotFound},
		"another owner":     {apply, status(409, "Conflict", `Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.password`, `"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"kubectl\" using v1","field":".data.password"}]`), []string{".data.password", `conflict with "kubectl"`}, apierrors.IsConflict},
		"a proxy's page":    {get, reply{code: 502, body: "<html>" + canary + "</html>", header: http.Header{"Content-Type": {"text/html"}}}, []string{"(502)"}, nil},
		"what is not JSON":  {get, reply{body: "{" + canary}, []string{"get Secret prod/web: not JSON from byte 2 on"}, nil},
		"nor protobuf":      {get, reply{body: "k8s\x00" + canary, header: http.Header{"Content-Type": {"application/vnd.kubernetes.protobuf"}}}, []string{"get Secret prod/web"}, nil},
		"no base64":         {get, reply{body: `{"kind":"Secret","apiVersion":"v1","data":{"password":"` + canary + `%%"}}`}, []string{"illegal base64 data at input byte"}, nil},
		"another type":      {get, reply{body: `{"kind":"Secret","apiVersion":"v1","immutable":"` + canary + `"}`}, []string{"field Secret.immutable is not a bool"}, nil},
		"a list's item":     {list, reply{body: `{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"namespace":"prod","name":"web"},"data":{"a":"` + canary + `"}}]}`}, []string{"read Secret prod/web", "illegal base64"}, func(err error) bool { var u *kube.UndecodableError; return errors.As(err, &u) }},
		"an error of watch": {watch, reply{body: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"reason":"InternalError","message":"unable to decode ` + canary + `"}}`}, []string{"InternalError (500)"}, apierrors.IsInternalError},
		"a broken frame":    {watch, reply{body: `{"type":"ADDED","object":{"metadata":{"namespace":"prod","name":"web"},"data":{"a":"` + canary + `"}}}`}, []string{"illegal base64"}, nil},
		"somebody's type": {func(ctx context.Context, c *client.Client) error {
			return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &dated{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}})
		}, reply{body: `{"kind":"Secret","apiVersion":"v1","data":{"a":"` + canary + `"}}`}, []string{"it is malformed"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			ctx := logr.NewContext(t.Context(), textlog.New(&out, 10))
			s, scheme := &script{answers: []reply{row.answer}}, testScheme(t)
			if name == "somebody's type" {
				scheme = runtime.NewScheme()
				scheme.AddKnownTypeWithName(corev1.SchemeGroupVersion.WithKind("Secret"), &dated{})
			}
			c, err := client.New(&rest.Config{Host: "http://api.test", Transport: s}, scheme, client.Options{Logger: textlog.New(&out, 10)})
			if err != nil {
				t.Fatal(err)
			}
			err = row.call(ctx, c)
			if len(s.requests()) == 0 {
				t.Fatalf("no request was sent: %v", err)
			}
			if (err == nil) != (len(row.says) == 0) {
				t.Fatalf("%v, want an error that says %q", err, row.says)
			}
			for _, want := range row.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q in it", err, want)
				}
			}
			if row.is != nil && !row.is(err) {
				t.Errorf("%v is of another kind than the server said", err)
			}
			said := out.String() + fmt.Sprintf("%v %+v %#v", err, err, err)
			for e := err; e != nil; e = errors.Unwrap(e) {
				said += fmt.Sprintf("%v %+v", e, e)
			}
			for _, secret := range []string{canary, "8213", base64.StdEncoding.EncodeToString([]byte(canary)), "00000000  "} {
				if strings.Contains(said, secret) {
					t.Errorf("%q is in what was said:\n%s", secret, said)
				}
			}
			if !strings.Contains(out.String(), "Response Body") && err == nil {
				t.Errorf("nothing of the answer is in the log, so that the test cannot fail:\n%s", out.String())
			}
		})
	}
}
