// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package logtest

import (
	"context"
	"encoding/base64"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
)

const firstSecret = "first"

// dated decodes a Secret's values as times, and its errors contain them.
type dated struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]metav1.Time `json:"data"`
}

func (d *dated) DeepCopyObject() runtime.Object { out := *d; return &out }

func metaOf(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secretOf(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metaOf(namespace, name), Data: map[string][]byte{"password": []byte(value)}}
}

// looseSecret returns a Secret with fields that the typed one lacks.
func looseSecret(namespace, name string, fields map[string]any) *unstructured.Unstructured {
	all := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": namespace, "name": name}}
	for field, content := range fields {
		all[field] = content
	}
	return &unstructured.Unstructured{Object: all}
}

type step struct {
	name  string
	fails bool
	do    func(ctx context.Context) error
}

// steps returns the steps of the program. Each can be repeated.
func (p *program) steps(mgr *manager.Manager) []step {
	c, ns := mgr.Client(), p.namespace
	owner := client.FieldOwner("canary")
	key := kube.Key{Namespace: ns, Name: firstSecret}
	account := &corev1.ServiceAccount{ObjectMeta: metaOf(ns, "canary")}
	return []step{
		{"get", false, func(ctx context.Context) error { return c.Get(ctx, key, &corev1.Secret{}) }},
		{"get loose", false, func(ctx context.Context) error {
			return c.Get(ctx, key, looseSecret(ns, firstSecret, nil))
		}},
		{"list", false, func(ctx context.Context) error {
			for _, err := range client.List[*corev1.Secret](ctx, c, client.InNamespace(ns)) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"watch", false, func(ctx context.Context) error {
			for _, err := range client.Watch[*corev1.Secret](ctx, c, client.InNamespace(ns)) {
				return err
			}
			return nil
		}},
		{"create again", true, func(ctx context.Context) error { return c.Create(ctx, secretOf(ns, firstSecret)) }},
		{"create loose", true, func(ctx context.Context) error {
			return c.Create(ctx, looseSecret(ns, firstSecret, map[string]any{"stringData": map[string]any{"password": value}}))
		}},
		{"apply", false, func(ctx context.Context) error {
			return c.Apply(ctx, looseSecret(ns, "applied", map[string]any{"data": map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(value))}}), owner)
		}},
		{"apply, owned by another", true, func(ctx context.Context) error {
			return c.Apply(ctx, looseSecret(ns, "applied", map[string]any{"data": map[string]any{"password": "b3RoZXI="}}), client.FieldOwner("another"))
		}},
		{"apply a number", true, func(ctx context.Context) error {
			return c.Apply(ctx, looseSecret(ns, "applied", map[string]any{"stringData": map[string]any{"password": int64(number)}}), owner)
		}},
		{"apply a map", true, func(ctx context.Context) error { return p.refused(ctx, c) }},
		{"apply no base64", true, func(ctx context.Context) error {
			return c.Apply(ctx, looseSecret(ns, "applied", map[string]any{"data": map[string]any{"password": value + "%%"}}), owner)
		}},
		{"create a number", true, func(ctx context.Context) error {
			return c.Create(ctx, looseSecret(ns, "number", map[string]any{"stringData": map[string]any{"password": int64(number)}}))
		}},
		{"create an unknown field", true, func(ctx context.Context) error {
			return c.Create(ctx, looseSecret(ns, "unknown", map[string]any{"spec": map[string]any{"password": value}}))
		}},
		{"update from an old version", true, func(ctx context.Context) error {
			old := secretOf(ns, firstSecret)
			old.ResourceVersion = "1"
			return c.Update(ctx, old)
		}},
		{"change the type", true, func(ctx context.Context) error {
			return c.Patch(ctx, secretOf(ns, firstSecret), client.MergePatch(map[string]any{"type": "example.com/" + value}))
		}},
		{"a patch whose test fails", true, func(ctx context.Context) error {
			return c.Patch(ctx, secretOf(ns, firstSecret), client.JSONPatch(client.JSONOp{Op: "test", Path: "/data/password", Value: value}))
		}},
		{"a patch of another form", true, func(ctx context.Context) error {
			return c.Patch(ctx, secretOf(ns, firstSecret), client.MergePatch([]byte(`{"data":{"password":"`+value+`"`)))
		}},
		{"ask for a token", false, func(ctx context.Context) error {
			request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{}}}
			if err := c.SubResource("token").Create(ctx, account, request); err != nil {
				return err
			}
			if request.Status.Token == "" {
				return fmt.Errorf("the server gave no token")
			}
			p.tokens = append(p.tokens, request.Status.Token)
			return nil
		}},
		{"clientset", true, func(ctx context.Context) error { // a different client, with the reconcile's context
			set, err := kubernetes.NewForConfig(mgr.Config())
			if err != nil {
				return nil
			}
			if _, err := set.CoreV1().Secrets(ns).Get(ctx, firstSecret, metav1.GetOptions{}); err != nil {
				return nil
			}
			_, err = set.CoreV1().Secrets(ns).Create(ctx, secretOf(ns, firstSecret), metav1.CreateOptions{})
			return err
		}},
	}
}
