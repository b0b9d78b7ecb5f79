// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// nameAttempts is how many names are generated for an object before one that is taken is an
// error.
const nameAttempts = 8

// create stores the object of the body.
func (p *Path) create(ctx context.Context, q *Request) (*object.Object, error) {
	obj, err := q.decode()
	if err != nil {
		return nil, err
	}
	return p.Create(ctx, q, obj)
}

// Create stores a new object that is decoded already.
func (p *Path) Create(ctx context.Context, q *Request, obj *object.Object) (stored *object.Object, err error) {
	if obj.Meta().GetName() != "" {
		return p.createOnce(ctx, q, obj)
	}
	for range nameAttempts {
		if stored, err = p.createOnce(ctx, q, obj.Copy()); !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	return stored, err
}

func (p *Path) createOnce(ctx context.Context, q *Request, obj *object.Object) (*object.Object, error) {
	clearServerFields(obj)
	if err := p.Rights.Escalates(q.User, q.Kind, nil, obj); err != nil {
		return nil, err
	}
	if !q.applies() { // an apply has set the managed fields already
		if err := q.Own(nil, obj); err != nil {
			return nil, err
		}
	}
	if err := p.CheckNamespace(q, obj.Meta().GetName()); err != nil {
		return nil, err
	}
	obj, err := p.mutate(ctx, q, "CREATE", obj, nil)
	if err != nil {
		return nil, err
	}
	p.setServerFields(obj)
	PrepareCreate(q.Kind, obj)
	if err := p.fill(q, obj); err != nil {
		return nil, err
	}
	if errs := ValidateCreate(q.Kind, obj); len(errs) > 0 {
		return nil, apierrors.NewInvalid(InvalidKind(q.Kind), obj.Meta().GetName(), errs)
	}
	if err := p.validate(ctx, q, "CREATE", obj, nil); err != nil {
		return nil, err
	}
	// A real server's store checks this, which a dry run does not reach.
	if version := obj.Meta().GetResourceVersion(); version != "" && version != "0" && !q.DryRun {
		return nil, refusal.Plain(errors.New("resourceVersion should not be set on objects to be created"))
	}
	return p.commitCreate(q, obj)
}

// clearServerFields removes from a new object what only the server sets.
func clearServerFields(o *object.Object) {
	m := o.Meta()
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	m.SetSelfLink("")
	m.SetCreationTimestamp(metav1.Time{})
	m.SetUID("")
}

// setServerFields sets the identity of a new object.
func (p *Path) setServerFields(obj *object.Object) {
	m := obj.Meta()
	m.SetCreationTimestamp(object.Now())
	m.SetUID(p.Allotter.UID())
	if m.GetName() == "" && m.GetGenerateName() != "" {
		m.SetName(p.Allotter.Name(m.GetGenerateName()))
	}
}

// commitCreate stores a new object, unless the request is a dry run.
func (p *Path) commitCreate(q *Request, obj *object.Object) (*object.Object, error) {
	stored, err := q.Kind.ToStorage(obj)
	if err != nil {
		return nil, err
	}
	if err := checkSize(stored); err != nil && !q.DryRun {
		return nil, err
	}
	if err := q.Kind.Define(stored); err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	answer, err := q.Kind.FromStorage(stored) // a conversion may have lost something
	if err != nil {
		return nil, err
	}
	if answer != stored {
		answer.Shape = q.Kind.Schema // defaults do not replace what was lost
	}
	r := q.Kind.GroupResource()
	tx := p.Store.Begin()
	defer tx.End()
	switch terminating, served := p.Kinds.Terminating(r); {
	case !served:
		return nil, refusal.Absent()
	case terminating:
		return nil, apierrors.NewForbidden(r, stored.Meta().GetName(), errors.New("create not allowed while custom resource definition is terminating"))
	}
	if there := tx.Get(q.Kind.Held(), stored.Key()); there != nil {
		err := apierrors.NewAlreadyExists(r, stored.Meta().GetName())
		if !object.Unset(there.Meta().GetDeletionTimestamp()) {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if q.DryRun {
		return obj, nil
	}
	return atRevision(answer, stored, tx.Put(q.Kind.Held(), stored)), nil
}

// atRevision returns the answer to a write at its revision: the committed object itself if
// the answer is of the version that is stored.
func atRevision(answer, stored, committed *object.Object) *object.Object {
	if answer == stored {
		return committed
	}
	return answer.At(committed.Revision())
}

// The largest object that etcd stores, and that the connection to it carries, in bytes.
const (
	maxObject  = 3 << 19
	maxMessage = 2 << 20
)

// perValue is about how many bytes a number, or a name with its punctuation, takes.
const perValue = 4

// checkSize refuses an object that etcd would not store.
func checkSize(o *object.Object) error {
	switch size := bytesOf(o.Fields); {
	case size > maxMessage:
		return refusal.Plain(fmt.Errorf("rpc error: code = ResourceExhausted desc = trying to send message larger than max (%d vs. %d)", size, maxMessage))
	case size > maxObject:
		return refusal.Plain(errors.New("etcdserver: request is too large"))
	}
	return nil
}

// bytesOf returns about how many bytes a value takes in storage. It is exact for strings,
// which are nearly all of a large object.
func bytesOf(value any) (n int) {
	switch v := value.(type) {
	case string:
		return len(v) + perValue
	case map[string]any:
		for name, inner := range v {
			n += len(name) + perValue + bytesOf(inner)
		}
	case []any:
		for _, inner := range v {
			n += bytesOf(inner)
		}
	}
	return n + perValue
}
