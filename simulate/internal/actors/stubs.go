// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// stub stands in for missing controllers: it writes a status to each object of their kinds.
type stub struct {
	*controllers
	statuses map[schema.GroupKind]map[string]any
}

func (stub) name() string { return "stubs" }

func (a stub) observe(c revisions.Change, look func(Reference)) {
	if c.After != nil && a.statusOf(c.After) != nil {
		look(aboutOf(c))
	}
}

func (a stub) statusOf(obj *object.Object) map[string]any {
	return a.statuses[obj.Meta().GroupVersionKind().GroupKind()]
}

func (a stub) act(ctx context.Context, about Reference) (time.Duration, error) {
	obj := a.get(about)
	if obj == nil || !object.Unset(obj.Meta().GetDeletionTimestamp()) {
		return 0, nil
	}
	wanted := a.statusOf(obj)
	write := func(obj *object.Object) {
		status, ok := obj.Fields["status"].(map[string]any)
		if !ok {
			status = map[string]any{}
			obj.Fields["status"] = status
		}
		maps.Copy(status, observed(runtime.DeepCopyJSON(wanted), obj.Meta().GetGeneration()).(map[string]any))
	}
	err := a.edit(ctx, about, "status", write)
	if apierrors.IsNotFound(err) { // the kind has no such subresource
		err = a.edit(ctx, about, "", write)
	}
	if refused(err) {
		err = a.report(ctx, obj, err)
	}
	return 0, err
}

// refused reports whether another try would be refused too.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}

// report creates an Event that says why the status of an object is refused, one for each object.
func (a stub) report(ctx context.Context, obj *object.Object, why error) error {
	meta, of := obj.Meta(), obj.Meta().GroupVersionKind()
	name, namespace := string(meta.GetUID())+".stub", cmp.Or(meta.GetNamespace(), metav1.NamespaceDefault)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.EventTypeWarning, Reason: StatusRefused, Message: why.Error(),
		InvolvedObject: corev1.ObjectReference{
			APIVersion: of.GroupVersion().String(), Kind: of.Kind, Namespace: namespace, Name: meta.GetName(), UID: meta.GetUID(),
		},
		Source: corev1.EventSource{Component: byControllers}, FirstTimestamp: metav1.Now(), LastTimestamp: metav1.Now(), Count: 1,
	}
	_, err := a.create(ctx, byControllers, schema.GroupResource{Resource: "events"}, event)
	if apierrors.IsAlreadyExists(err) || refused(err) {
		return nil
	}
	return err
}

// StatusRefused is simulate.StatusRefused.
const StatusRefused = "StatusRefused"

const observedGeneration = "observedGeneration"

// observed sets the generation in a part of a status that says which one was observed.
func observed(value any, generation int64) any {
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			value[name] = observed(inner, generation)
			if name == observedGeneration {
				value[name] = generation
			}
		}
	case []any:
		for i, inner := range value {
			value[i] = observed(inner, generation)
		}
	}
	return value
}
