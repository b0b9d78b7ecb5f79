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
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// deletion reads the options of a DELETE.
func (c *call) deletion() (q *write.Request, opts metav1.DeleteOptions, err error) {
	body, err := readBody(c.Body)
	if err != nil {
		return nil, opts, err
	}
	q = c.asked()
	opts, err = decode.DeleteOptions(q.Media, body, c.URL.Query())
	q.DryRun = len(opts.DryRun) > 0
	return q, opts, err
}

// deleteOne answers a DELETE of one object.
func (s *Server) deleteOne(w http.ResponseWriter, c *call) error {
	q, opts, err := c.deletion()
	if err != nil {
		return err
	}
	if c.kind.GroupResource().String() == "jobs.batch" && opts.PropagationPolicy == nil && opts.OrphanDependents == nil {
		q.Warn("child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning")
	}
	obj, removed, err := s.writes.Delete(c.Context(), q, &opts)
	if err != nil {
		sendWarnings(w, q)
		return err
	}
	code := http.StatusOK
	if !removed && opts.OrphanDependents != nil && !*opts.OrphanDependents {
		code = http.StatusAccepted
	}
	if !removed || c.kind.AnswersDeleted() {
		return s.answerObject(w, c, q, code, obj)
	}
	answer, err := c.encoder.Status(metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: c.name, Group: c.kind.Group, Kind: c.kind.Resource, UID: obj.Meta().GetUID(),
	}})
	if err != nil {
		return err
	}
	return s.answer(w, c, q, code, answer)
}

// deleteCollection answers a DELETE of all objects that are selected: each is deleted as if
// it were requested alone, and the answer is the list of them.
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
		each := c.asked()
		each.Namespace, each.Name, each.DryRun = key.Namespace, key.Name, q.DryRun
		if _, _, err := s.writes.Delete(c.Context(), each, &opts); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s %s: %w", c.kind.Resource, key, err)
		}
	}
	answer, err := c.encoder.List(meta, objects)
	if err != nil {
		return err
	}
	return s.answer(w, c, q, http.StatusOK, answer)
}
