// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// decodeOwn reads the body of a subresource that has a kind of its own.
func decodeOwn[T any](q *writing, gvk schema.GroupVersionKind) (*T, error) {
	if decode.Nesting(q.body) > decode.Deepest && q.media != encode.ContentProtobuf {
		return nil, apierrors.NewBadRequest("exceeded max depth")
	}
	info, ok := runtime.SerializerInfoForMediaType(gotypes.Codecs().SupportedMediaTypes(), q.media)
	if !ok {
		return nil, refusal.Media(encode.ContentJSON, encode.ContentYAML, encode.ContentProtobuf)
	}
	decoded, given, err := info.Serializer.Decode(q.body, &gvk, nil)
	if err != nil {
		return nil, decode.Unrecognized((&kinds.Kind{GroupVersionKind: gvk}), q.body, err)
	}
	typed, ok := decoded.(any).(*T)
	if !ok {
		return nil, decode.UnreadableAs(*given, gvk.Kind, fmt.Errorf("converting (%s) to (%s): unknown conversion", kinds.GoType(*given), kinds.GoInternalType(gvk)))
	}
	return typed, nil
}

// respondTyped answers with an object that has a Go type.
func (s *Server) respondTyped(w http.ResponseWriter, q *writing, code int, gvk schema.GroupVersionKind, typed runtime.Object) error {
	kind := kinds.Kind{GroupVersionKind: gvk}.Completed()
	obj, err := kinds.ObjectOfTyped(kind, typed)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	q.encoder = encode.For(kind, q.Header.Get("Accept"))
	body, err := q.encoder.Object(obj)
	if err != nil {
		return err
	}
	return s.answer(w, q, code, body)
}

// success answers with a Status that says that something was done.
func (s *Server) success(w http.ResponseWriter, q *writing) error {
	body, err := q.encoder.Status(metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
	if err != nil {
		return err
	}
	return s.answer(w, q, http.StatusCreated, body)
}

// bind answers the creation of a Pod's binding: it says on which node the Pod
// runs.
func (s *Server) bind(w http.ResponseWriter, c *call) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	binding, err := decodeOwn[corev1.Binding](q, corev1.SchemeGroupVersion.WithKind("Binding"))
	if err != nil {
		return err
	}
	if err := s.housed(q, c.name); err != nil {
		return err
	}
	switch {
	case c.name == "":
		c.name = binding.Name
	case c.name != binding.Name:
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if binding.Target.Name == "" {
		return refusal.Plain(errors.New("target.name: Required value"))
	}
	each := *c
	each.subresource = "binding"
	part := &writing{call: &each, manager: q.manager, dryRun: q.dryRun}
	_, _, err = s.change(part, false, func(old *object.Object) (*object.Object, error) {
		return assigned(old, binding.Target.Name, binding.Annotations)
	})
	if err != nil {
		return err
	}
	return s.success(w, q)
}

// assigned is a Pod that has got its node.
func assigned(old *object.Object, node string, annotations map[string]string) (*object.Object, error) {
	obj := old.Copy()
	spec, _ := obj.Fields["spec"].(map[string]any)
	if has, _ := spec["nodeName"].(string); has != "" {
		name := obj.Meta().GetName()
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, name, fmt.Errorf("pod %s is already assigned to node %q", name, has))
	}
	jsonvalue.SetIn(obj.Fields, node, "spec", "nodeName")
	for name, value := range annotations {
		jsonvalue.SetIn(obj.Fields, value, "metadata", "annotations", name)
	}
	scheduled := map[string]any{"type": "PodScheduled", "status": "True", "lastProbeTime": nil, "lastTransitionTime": jsonvalue.Now().UTC().Format(timeForm)}
	jsonvalue.SetIn(obj.Fields, []any{scheduled}, "status", "conditions")
	return obj, nil
}

const timeForm = "2006-01-02T15:04:05Z"

// evict answers the creation of a Pod's eviction: the Pod is deleted, unless a
// disruption budget forbids it.
func (s *Server) evict(w http.ResponseWriter, c *call) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	eviction, err := decodeOwn[policyv1.Eviction](q, policyv1.SchemeGroupVersion.WithKind("Eviction"))
	if err != nil {
		return err
	}
	if err := s.housed(q, c.name); err != nil {
		return err
	}
	if eviction.Name != c.name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	opts := eviction.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if q.dryRun && len(opts.DryRun) == 0 {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	if err := s.disrupt(q); err != nil {
		return err
	}
	each := *c
	each.subresource = ""
	if _, _, err := s.deleteObject(&writing{call: &each, dryRun: len(opts.DryRun) > 0}, opts); err != nil {
		return err
	}
	return s.success(w, q)
}

// disrupt asks the budgets of a Pod that is to be evicted.
func (s *Server) disrupt(q *writing) error {
	s.mu.Lock()
	pod := s.mu.log.Get(q.kind.GroupResource(), q.key())
	budgets, _ := s.mu.log.List(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}, s.mu.log.Revision)
	s.mu.Unlock()
	if pod == nil {
		return apierrors.NewNotFound(q.kind.GroupResource(), q.name)
	}
	phase, _, _ := unstructured.NestedString(pod.Fields, "status", "phase")
	if phase != string(corev1.PodRunning) && phase != string(corev1.PodUnknown) || pod.Meta().GetDeletionTimestamp() != nil {
		return nil // it serves nobody
	}
	for _, held := range budgets {
		budget, err := object.TypedOf[policyv1.PodDisruptionBudget](held)
		if err != nil || budget.Namespace != q.namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || selector.Empty() || !selector.Matches(object.LabelSet(pod)) {
			continue
		}
		if budget.Status.ObservedGeneration < budget.Generation {
			refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
			refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
				Message: fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name)}}
			return refusal
		}
		if budget.Status.DisruptionsAllowed <= 0 {
			refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
				Type:    policyv1.DisruptionBudgetCause,
				Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", budget.Name, budget.Status.DesiredHealthy, budget.Status.CurrentHealthy),
			})
			return refusal
		}
	}
	return nil
}

// finalizeNamespace answers a PUT of a namespace's finalize: without finalizers
// in its spec a namespace that is being deleted goes.
func (s *Server) finalizeNamespace(w http.ResponseWriter, c *call) error {
	q, err := c.writing()
	if err != nil {
		return err
	}
	given, err := q.decode()
	if err != nil {
		return err
	}
	obj, _, err := s.change(q, false, func(old *object.Object) (*object.Object, error) {
		obj := given.Copy()
		jsonvalue.KeepField(old.Fields, obj.Fields, "status")
		return obj, q.own(old, obj)
	})
	if err != nil {
		return err
	}
	answer, err := c.encoder.Object(obj)
	if err != nil {
		return err
	}
	return s.answer(w, q, http.StatusOK, answer)
}

// podLog answers for what a Pod has written: nothing while it runs nowhere,
// and no node is there to ask.
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
