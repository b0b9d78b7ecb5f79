// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// bind answers the creation of a Pod's binding.
func (h *Handler) bind(w http.ResponseWriter, c *Call) error {
	q, binding, err := typedWrite[corev1.Binding](c, corev1.SchemeGroupVersion.WithKind("Binding"))
	if err != nil {
		return err
	}
	if err := h.Writes.Bind(c.Context(), q, binding); err != nil {
		return err
	}
	return h.answerDone(w, c, q)
}

// evict answers the creation of a Pod's eviction.
func (h *Handler) evict(w http.ResponseWriter, c *Call) error {
	q, eviction, err := typedWrite[policyv1.Eviction](c, policyv1.SchemeGroupVersion.WithKind("Eviction"))
	if err != nil {
		return err
	}
	if err := h.Writes.Evict(c.Context(), q, eviction); err != nil {
		return err
	}
	return h.answerDone(w, c, q)
}

// finalizeNamespace answers a PUT of a namespace's finalize.
func (h *Handler) finalizeNamespace(w http.ResponseWriter, c *Call) error {
	q, err := c.write(c.Kind)
	if err != nil {
		return err
	}
	obj, err := h.Writes.Finalize(c.Context(), q)
	if err != nil {
		return err
	}
	return h.answerObject(w, c, q, http.StatusOK, obj)
}

// podLog answers with the log of a Pod: nothing while it runs nowhere. No node keeps logs.
func (h *Handler) podLog(w http.ResponseWriter, c *Call) error {
	pod, err := h.find(c)
	if err != nil {
		return err
	}
	if spec, _ := pod.Fields["spec"].(map[string]any); spec["nodeName"] != nil {
		return apierrors.NewInternalError(fmt.Errorf("no node of the simulated server keeps logs"))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// getScale answers a GET of an object's scale.
func (h *Handler) getScale(w http.ResponseWriter, c *Call) error {
	obj, err := h.find(c)
	if err != nil {
		return err
	}
	return h.answerTyped(w, c, c.asked(), http.StatusOK, write.ScaleKind, write.ScaleOf(c.Kind, obj))
}

// putScale answers a PUT of an object's scale.
func (h *Handler) putScale(w http.ResponseWriter, c *Call) error {
	q, given, err := typedWrite[autoscalingv1.Scale](c, write.ScaleKind)
	if err != nil {
		return err
	}
	scale, err := h.Writes.UpdateScale(c.Context(), q, given)
	if err != nil {
		return err
	}
	return h.answerTyped(w, c, q, http.StatusOK, write.ScaleKind, scale)
}

// patchScale answers a PATCH of an object's scale.
func (h *Handler) patchScale(w http.ResponseWriter, c *Call) error {
	q, err := c.write(write.KindOfScale(c.Kind))
	if err != nil {
		return err
	}
	scale, err := h.Writes.PatchScale(c.Context(), q, c.Kind)
	if err != nil {
		return err
	}
	return h.answerTyped(w, c, q, http.StatusOK, write.ScaleKind, scale)
}

// unserved answers what only a node could answer: a Pod that does not exist or has no node
// is refused as by a real server.
func (h *Handler) unserved(w http.ResponseWriter, c *Call) error {
	obj, err := h.find(c)
	if err != nil {
		return err
	}
	node, _, _ := unstructured.NestedString(obj.Fields, "spec", "nodeName")
	switch {
	case c.Kind.GroupResource().String() != "pods", node != "":
	case c.Subresource == "log":
		w.WriteHeader(http.StatusNoContent) // nothing has been said yet
		return nil
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", c.Name))
	}
	return apierrors.NewInternalError(fmt.Errorf("the simulated server does not serve %s/%s", c.Kind.Resource, c.Subresource))
}
