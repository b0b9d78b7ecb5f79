// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

// Evict requests the deletion of the Pod that obj names, if the disruption budgets that
// select it allow that. obj is not modified, so it may come from a Lister. If a budget
// does not allow it, apierrors.IsTooManyRequests and apierrors.HasStatusCause(err,
// policyv1.DisruptionBudgetCause) hold for the error: try again later, for example with
// reconcile.After. After success the Pod is being deleted, but may still exist.
func (c *Client) Evict(ctx context.Context, obj kube.Object, opts ...Option) error {
	at, err := c.newCall(ctx, verbEvict, "eviction", obj, opts)
	if err != nil {
		return err
	}
	if at.kind.GroupKind() != (schema.GroupKind{Kind: "Pod"}) {
		return at.wrap(fmt.Errorf("kind %s cannot be evicted; Pods can", at.kind.Kind))
	}
	at.version = at.preconditions.ResourceVersion
	options := deleteOptions(at)
	options.TypeMeta = metav1.TypeMeta{}
	body, err := json.Marshal(policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: at.key.Namespace, Name: at.key.Name},
		DeleteOptions: &options,
	})
	if err != nil {
		return at.wrap(err)
	}
	a, err := c.write(ctx, at, http.MethodPost, runtime.ContentTypeJSON, runtime.ContentTypeJSON, body)
	if err != nil {
		return err
	}
	c.observe(at, at.effect().TouchedBy(a))
	return nil
}
