// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package codec makes serializers for requests about a few kinds. client-go's generated
// clients, and its scheme, bring every version of every built-in kind into a program.
package codec

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// For returns a scheme with the kinds that add adds, and with those of every answer, such as
// Status, and its serializer.
func For(add ...func(*runtime.Scheme) error) (*runtime.Scheme, runtime.NegotiatedSerializer, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	var err error
	for _, f := range add {
		err = errors.Join(err, f(scheme))
	}
	return scheme, serializer.NewCodecFactory(scheme).WithoutConversion(), err
}
