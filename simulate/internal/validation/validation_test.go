// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/validation"
)

func TestRuleOf_JudgesNewAndChangedObjects(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "ns", Name: "a", ResourceVersion: "1"}
	maps := func(immutable bool, key, value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: named, Immutable: &immutable, Data: map[string]string{key: value}}
	}
	secret := func(kind corev1.SecretType) *corev1.Secret { return &corev1.Secret{ObjectMeta: named, Type: kind} }
	for _, c := range []struct {
		resource string
		obj, old runtime.Object
		want     string // the fields of the errors
	}{
		{"configmaps", maps(false, "k", "1"), nil, ""},
		{"configmaps", maps(false, "a/b", "1"), nil, "data[a/b]"},
		{"configmaps", maps(false, "k", "2"), maps(false, "k", "1"), ""},
		{"configmaps", maps(true, "k", "2"), maps(true, "k", "1"), "data"},
		{"configmaps", maps(false, "k", "1"), maps(true, "k", "1"), "immutable"},
		{"secrets", secret("Opaque"), secret("Opaque"), ""},
		{"secrets", secret("other"), secret("Opaque"), "type"},
		{"secrets", secret(corev1.SecretTypeTLS), nil, "data[tls.crt] data[tls.key]"},
	} {
		rule := validation.RuleOf(c.resource)
		if rule == nil {
			t.Fatalf("%s has no rule", c.resource)
		}
		var fields []string
		for _, err := range rule(c.obj, c.old) {
			fields = append(fields, err.Field)
		}
		if got := strings.Join(fields, " "); got != c.want {
			t.Errorf("%s: %v after %v: wrong are %q, want %q", c.resource, c.obj, c.old, got, c.want)
		}
	}
	if validation.RuleOf("widgets.test.example.com") != nil {
		t.Error("a kind that is not built in has a rule")
	}
}

func TestOnce_KeepsTheFirstOfEach(t *testing.T) {
	a, b := field.Required(field.NewPath("a"), ""), field.Required(field.NewPath("b"), "")
	if got := validation.Once(field.ErrorList{a, b, field.Required(field.NewPath("a"), ""), b}); len(got) != 2 || got[0] != a || got[1] != b {
		t.Errorf("got %v, want a and b", got)
	}
}
