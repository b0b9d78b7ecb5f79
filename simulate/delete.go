// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

package simulate

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/deletion"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// deletion reads what a DELETE asks for.
func (c *call) deletion() (q *writing, opts metav1.DeleteOptions, err error) {
	body, err := readBody(c.Body)
	if err != nil {
		return nil, opts, err
	}
	opts, err = decode.DeleteOptions(mediaOf(c.Header.Get("Content-Type")), body, c.URL.Query())
	return &writing{call: c, dryRun: len(opts.DryRun) > 0}, opts, err
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
		obj, gone, err := deletion.Delete(s.storeLocked(), q.kind, held, opts)
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

// deleteCollection answers a DELETE of all that is selected: each is deleted as
// if it were asked for alone, and the answer is what there was.
func (s *Server) deleteCollection(w http.ResponseWriter, c *call) error {
	q, opts, err := c.deletion()
	if err != nil {
		return err
	}
	query, err := c.query()
	if err != nil {
		return err
	}
	p, err := query.Page()
	if err != nil {
		return err
	}
	objects, meta, err := s.selected(c, p, query.Selection())
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
