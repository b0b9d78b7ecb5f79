// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Scheme returns the types of all built-in kinds: those of client-go, and CRDs, which
// client-go lacks. It must not be modified.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	types := runtime.NewScheme()
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	utilruntime.Must(clientscheme.AddToScheme(types))
	utilruntime.Must(apiextensionsv1.AddToScheme(types))
	return types
})

// Codecs returns the codecs of Scheme.
var Codecs = sync.OnceValue(func() serializer.CodecFactory { return serializer.NewCodecFactory(Scheme()) })
