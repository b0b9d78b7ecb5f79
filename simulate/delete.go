// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// deletion reads what a DELETE asks for.
func (c *call) deletion() (q *writing, opts metav1.DeleteOptions, err error) {
	body, err := readBody(c.Body)
	if err != nil {
		return nil, opts, err
	}
	opts, err = c.deletionOptions(body)
	return &writing{call: c, dryRun: len(opts.DryRun) > 0}, opts, err
}

// deletionOptions reads the options of a delete: from the body, or without one
// from the query.
func (c *call) deletionOptions(body []byte) (opts metav1.DeleteOptions, err error) {
	if len(body) == 0 {
		opts, err = deletionQuery(c.URL.Query())
	} else {
		opts, err = decodeDeletion(mediaOf(c.Header.Get("Content-Type")), body)
	}
	if err != nil {
		return opts, err
	}
	if errs := metav1validation.ValidateDeleteOptions(&opts); len(errs) > 0 {
		return opts, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return opts, nil
}

func deletionQuery(query url.Values) (opts metav1.DeleteOptions, err error) {
	if text := query.Get("gracePeriodSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		opts.GracePeriodSeconds = &seconds
	}
	if text := query.Get("propagationPolicy"); text != "" {
		opts.PropagationPolicy = new(metav1.DeletionPropagation(text))
	}
	if text := query.Get("orphanDependents"); text != "" {
		orphan, err := strconv.ParseBool(text)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		opts.OrphanDependents = &orphan
	}
	opts.DryRun = query["dryRun"]
	return opts, nil
}

func decodeDeletion(media string, body []byte) (opts metav1.DeleteOptions, err error) {
	switch media {
	case encode.ContentYAML:
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
	case encode.ContentJSON:
	case encode.ContentProtobuf:
		kind := corev1.SchemeGroupVersion.WithKind("DeleteOptions")
		decoded, _, err := gotypes.Codecs().UniversalDeserializer().Decode(body, &kind, nil)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		if read, ok := decoded.(*metav1.DeleteOptions); ok {
			return *read, nil
		}
		return opts, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	default:
		return opts, unsupportedMedia(encode.ContentJSON, encode.ContentYAML, encode.ContentProtobuf)
	}
	if decode.Nesting(body) > decode.Deepest {
		return opts, apierrors.NewBadRequest("exceeded max depth")
	}
	if err := json.Unmarshal(body, &opts); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		return opts, apierrors.NewBadRequest("couldn't get version/kind; json parse error: " + err.Error())
	}
	if opts.Kind != "" && opts.Kind != "DeleteOptions" {
		return opts, apierrors.NewBadRequest(fmt.Sprintf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", opts.Kind, cmp.Or(opts.APIVersion, "meta.k8s.io/v1")))
	}
	return opts, nil
}

// deleteOne answers a DELETE of one object.
func (s *Server) deleteOne(w http.ResponseWriter, c *call) error {
	q, opts, err := c.deletion()
	if err != nil {
		return err
	}
	if c.kind.GroupResource().String() == "jobs.batch" && opts.PropagationPolicy == nil && opts.OrphanDependents == nil {
		q.warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	obj, gone, err := s.deleteObject(q, &opts)
	if err != nil {
		q.sendWarnings(w)
		return err
	}
	code := http.StatusOK
	if !gone && opts.OrphanDependents != nil && !*opts.OrphanDependents {
		code = http.StatusAccepted
	}
	var answer []byte
	if gone && !c.kind.AnswersDeleted() {
		answer, err = c.encoder.Status(metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
			Name: c.name, Group: c.kind.Group, Kind: c.kind.Resource, UID: obj.Meta().GetUID(),
		}})
	} else {
		answer, err = c.encoder.Object(obj)
	}
	if err != nil {
		return err
	}
	return s.answer(w, q, code, answer)
}

// deleteObject deletes the object of q's path, or marks it.
func (s *Server) deleteObject(q *writing, opts *metav1.DeleteOptions) (*object.Object, bool, error) {
	q.deleting = opts
	for {
		if q.Context().Err() != nil {
			return nil, false, apierrors.NewTimeoutError("the request was given up", 0)
		}
		held, old, err := s.current(q)
		if err != nil {
			return nil, false, err
		}
		if held == nil {
			return nil, false, apierrors.NewNotFound(q.kind.GroupResource(), q.name)
		}
		if err := s.deletable(q, old); err != nil {
			return nil, false, err
		}
		s.mu.Lock()
		if s.mu.log.Get(q.kind.Held(), q.key()) != held {
			s.mu.Unlock()
			continue
		}
		obj, gone, err := s.deleteLocked(q.kind, held, opts)
		s.mu.Unlock()
		if err != nil {
			return nil, false, err
		}
		if obj, err = q.kind.FromStorage(obj); err != nil {
			return nil, false, err
		}
		return obj, gone, nil
	}
}

func (s *Server) deletable(q *writing, old *object.Object) error {
	if err := spared(q.kind, q.name); err != nil {
		return err
	}
	if _, err := s.mutated(q, "DELETE", nil, old); err != nil {
		return err
	}
	return s.validated(q, "DELETE", nil, old)
}

// deleteLocked removes old, or marks it as being deleted while something keeps
// it. gone: it was removed.
func (s *Server) deleteLocked(kind *kinds.Kind, old *object.Object, opts *metav1.DeleteOptions) (obj *object.Object, gone bool, err error) {
	m, r := old.Meta(), kind.Held()
	if only := opts.Preconditions; only != nil {
		if only.UID != nil && *only.UID != m.GetUID() {
			return nil, false, errRecord(kind, m.GetName(), "UID", string(*only.UID), string(m.GetUID()), "deleted and then recreated")
		}
		if only.ResourceVersion != nil && *only.ResourceVersion != m.GetResourceVersion() {
			return nil, false, errRecord(kind, m.GetName(), "ResourceVersion", *only.ResourceVersion, m.GetResourceVersion(), "modified")
		}
	}
	next := remaining(kind, old, opts)
	dryRun := len(opts.DryRun) > 0
	if next == nil {
		if dryRun {
			return old, true, nil
		}
		if kind.Graceful() {
			s.putLocked(r, lastSeen(kind, old)) // it is marked before it goes
		}
		return lastSeen(kind, s.takeLocked(r, old.Key())), true, nil
	}
	if next == old || dryRun {
		return next, false, nil
	}
	return s.putLocked(r, next), false, nil
}

// remaining is what becomes of an object that is to be deleted: nil when it goes at
// once, old itself when it waits already.
func remaining(k *kinds.Kind, old *object.Object, opts *metav1.DeleteOptions) *object.Object {
	if next, terminates := terminating(k, old); terminates {
		return next
	}
	next := old.Copy()
	m := next.Meta()
	grace := graceOf(k, old, opts)
	if deleting := m.GetDeletionTimestamp(); !object.Unset(deleting) && k.Graceful() {
		pending := m.GetDeletionGracePeriodSeconds()
		if pending != nil && *pending > 0 && (opts.GracePeriodSeconds == nil || *opts.GracePeriodSeconds >= *pending) {
			return old // only a shorter time is news
		}
	}
	changed := setPropagation(next, k, opts)
	if grace == 0 && len(m.GetFinalizers()) == 0 {
		return nil
	}
	was := m.GetDeletionTimestamp()
	if object.Unset(was) {
		if m.GetGeneration() > 0 {
			m.SetGeneration(m.GetGeneration() + 1)
		}
		m.SetDeletionTimestamp(new(metav1.NewTime(jsonvalue.Now().Add(time.Duration(grace) * time.Second))))
		m.SetDeletionGracePeriodSeconds(&grace)
		return next
	}
	if pending := m.GetDeletionGracePeriodSeconds(); pending != nil && grace < *pending {
		end := metav1.NewTime(was.Add(time.Duration(grace-*pending) * time.Second))
		if at := jsonvalue.Now(); end.Before(&at) {
			end = at
		}
		m.SetDeletionTimestamp(&end)
		m.SetDeletionGracePeriodSeconds(&grace)
		return next
	}
	if changed {
		return next
	}
	return old
}

// terminating is what becomes of a namespace or a CRD that is to be deleted: it
// stays until somebody has emptied it and takes its finalizers.
func terminating(k *kinds.Kind, old *object.Object) (next *object.Object, terminates bool) {
	if k.GroupResource() == kinds.Definitions && object.Unset(old.Meta().GetDeletionTimestamp()) {
		return markDefinition(old), true
	}
	spec, _ := old.Fields["spec"].(map[string]any)
	finalizers, _ := spec["finalizers"].([]any)
	if k.GroupResource().String() != "namespaces" || len(finalizers) == 0 {
		return nil, false
	}
	if !object.Unset(old.Meta().GetDeletionTimestamp()) {
		return old, true
	}
	next = old.Copy()
	next.Meta().SetDeletionTimestamp(new(jsonvalue.Now()))
	jsonvalue.SetIn(next.Fields, "Terminating", "status", "phase")
	return next, true
}

// lastSeen is a removed object as the answer to its deletion shows it: one that
// could have been given time is marked.
func lastSeen(k *kinds.Kind, obj *object.Object) *object.Object {
	if obj == nil || !k.Graceful() {
		return obj
	}
	obj = obj.Copy()
	m := obj.Meta()
	if object.Unset(m.GetDeletionTimestamp()) {
		m.SetGeneration(m.GetGeneration() + 1)
		m.SetDeletionTimestamp(new(jsonvalue.Now()))
	}
	m.SetDeletionGracePeriodSeconds(new(int64(0)))
	return obj
}

// graceOf is how many seconds the object has to end.
func graceOf(k *kinds.Kind, old *object.Object, opts *metav1.DeleteOptions) int64 {
	if !k.Graceful() {
		return 0
	}
	spec, _ := old.Fields["spec"].(map[string]any)
	grace := int64(defaults.PodGrace)
	if own, ok := spec["terminationGracePeriodSeconds"].(int64); ok {
		grace = own
	}
	if opts.GracePeriodSeconds != nil {
		grace = *opts.GracePeriodSeconds
	}
	if grace < 0 {
		grace = 1
	}
	// What runs nowhere, or has ended, needs no time.
	status, _ := old.Fields["status"].(map[string]any)
	if node, _ := spec["nodeName"].(string); node == "" || status["phase"] == "Failed" || status["phase"] == "Succeeded" {
		return 0
	}
	return grace
}

// deleteCollection answers a DELETE of all that is selected: each is deleted as
// if it were asked for alone, and the answer is what there was.
func (s *Server) deleteCollection(w http.ResponseWriter, c *call) error {
	q, opts, err := c.deletion()
	if err != nil {
		return err
	}
	list, err := c.listOptions()
	if err != nil {
		return err
	}
	p, err := c.page(list)
	if err != nil {
		return err
	}
	objects, meta, err := s.selected(c, p, c.selection(list))
	if err != nil {
		return err
	}
	for _, obj := range objects {
		key := obj.Key()
		each := *c
		each.namespace, each.name = key.Namespace, key.Name
		if _, _, err := s.deleteObject(&writing{call: &each, dryRun: q.dryRun}, &opts); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", c.kind.Resource, key, err)
		}
	}
	answer, err := c.encoder.List(meta, objects)
	if err != nil {
		return err
	}
	return s.answer(w, q, http.StatusOK, answer)
}

// errRecord is said of a deletion of an object that is another one by now.
func errRecord(k *kinds.Kind, name, field, want, got, happened string) *apierrors.StatusError {
	return apierrors.NewConflict(schema.GroupResource{Group: k.Group, Resource: k.Kind}, name, fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", field, want, field, got, happened))
}
