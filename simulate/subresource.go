// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// bind answers the creation of a Pod's binding.
func (s *Server) bind(w http.ResponseWriter, c *call) error {
	q, binding, err := typedWrite[corev1.Binding](c, corev1.SchemeGroupVersion.WithKind("Binding"))
	if err != nil {
		return err
	}
	if err := s.writes.Bind(c.Context(), q, binding); err != nil {
		return err
	}
	return s.answerDone(w, c, q)
}

// evict answers the creation of a Pod's eviction.
func (s *Server) evict(w http.ResponseWriter, c *call) error {
	q, eviction, err := typedWrite[policyv1.Eviction](c, policyv1.SchemeGroupVersion.WithKind("Eviction"))
	if err != nil {
		return err
	}
	if err := s.writes.Evict(c.Context(), q, eviction); err != nil {
		return err
	}
	return s.answerDone(w, c, q)
}

// finalizeNamespace answers a PUT of a namespace's finalize.
func (s *Server) finalizeNamespace(w http.ResponseWriter, c *call) error {
	q, err := c.write(c.kind)
	if err != nil {
		return err
	}
	obj, err := s.writes.Finalize(c.Context(), q)
	if err != nil {
		return err
	}
	return s.answerObject(w, c, q, http.StatusOK, obj)
}

// podLog answers with the log of a Pod: nothing while it runs nowhere. No node keeps logs.
func (s *Server) podLog(w http.ResponseWriter, c *call) error {
	pod, err := s.find(c, 0)
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
func (s *Server) getScale(w http.ResponseWriter, c *call) error {
	obj, err := s.find(c, 0)
	if err != nil {
		return err
	}
	return s.answerTyped(w, c, c.asked(), http.StatusOK, write.ScaleKind, write.ScaleOf(c.kind, obj))
}

// putScale answers a PUT of an object's scale.
func (s *Server) putScale(w http.ResponseWriter, c *call) error {
	q, given, err := typedWrite[autoscalingv1.Scale](c, write.ScaleKind)
	if err != nil {
		return err
	}
	scale, err := s.writes.UpdateScale(c.Context(), q, given)
	if err != nil {
		return err
	}
	return s.answerTyped(w, c, q, http.StatusOK, write.ScaleKind, scale)
}

// patchScale answers a PATCH of an object's scale.
func (s *Server) patchScale(w http.ResponseWriter, c *call) error {
	q, err := c.write(write.KindOfScale(c.kind))
	if err != nil {
		return err
	}
	scale, err := s.writes.PatchScale(c.Context(), q, c.kind)
	if err != nil {
		return err
	}
	return s.answerTyped(w, c, q, http.StatusOK, write.ScaleKind, scale)
}
