// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/kube"
)

// traces writes the spans of reconciles into what they create, if Options.PropagateTrace is set.
type traces struct {
	on      bool
	cached  func(schema.GroupVersionKind, kube.Key, kube.Object) kube.Object // nil: there is no cache
	watched func(schema.GroupVersionResource) (schema.GroupVersionKind, bool)
}

// withSpan returns the object to create: obj, or a copy with the span of the reconcile.
func (t *traces) withSpan(ctx context.Context, obj kube.Object) kube.Object {
	if !t.on || obj.GetAnnotations()[kube.TraceContextAnnotation] != "" {
		return obj
	}
	span := contextvalues.TraceContextOf(ctx)
	if span == "" {
		return obj
	}
	traced := kube.Copy(obj)
	annotations := maps.Clone(traced.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string, 1)
	}
	annotations[kube.TraceContextAnnotation] = span
	traced.SetAnnotations(annotations)
	return traced
}

// addSpan adds a span to the configuration to apply: the one that the object has, or that of the
// reconcile which creates it. Without an informer of the kind it is not known whether there is an
// object, and an apply must not change with each reconcile. like is of the Go type that is looked
// for in the cache. Subresources are not watched.
func (t *traces) addSpan(ctx context.Context, tree map[string]any, resource schema.GroupVersionResource, key kube.Key, like kube.Object) {
	if !t.on || t.cached == nil {
		return
	}
	metadata, _ := tree["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if annotations[kube.TraceContextAnnotation] != nil {
		return
	}
	span := t.spanFor(ctx, resource, key, like)
	if span == "" {
		return
	}
	annotations, metadata = maps.Clone(annotations), maps.Clone(metadata)
	if annotations == nil {
		annotations = make(map[string]any, 1)
	}
	annotations[kube.TraceContextAnnotation] = span
	metadata["annotations"] = annotations
	tree["metadata"] = metadata
}

func (t *traces) spanFor(ctx context.Context, resource schema.GroupVersionResource, key kube.Key, like kube.Object) string {
	kind, watched := t.watched(resource)
	if !watched {
		return ""
	}
	if held := t.cached(kind, key, like); held != nil {
		return held.GetAnnotations()[kube.TraceContextAnnotation]
	}
	return contextvalues.TraceContextOf(ctx)
}
