// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
)

// Recreate returns kind as one whose children may be deleted and created anew: when the server
// refuses an apply of an existing child as invalid, and would accept the same as a new object.
// So it is when a field has changed that is immutable. docs/recreate.md says what is lost with
// each kind.
//
//	reconcile.Recreate(reconcile.Children(jobs), metav1.DeletePropagationBackground)
//	reconcile.Recreate(reconcile.Children(statefulSets), metav1.DeletePropagationOrphan)
//
// propagation is what happens to the child's own dependents: with Orphan they stay, and the new
// child adopts those that its selector matches. The child is deleted at the version in the
// cache, which is logged, and created in the same call if it is gone at once. Otherwise Apply
// returns ErrChildTerminating until it is. For the same content a child is recreated once per
// process; if that is refused again, Apply returns the error, so that no two parties that do not
// agree recreate it for ever. Children of Once are not applied, and so not recreated.
func Recreate(kind ChildKind, propagation metav1.DeletionPropagation) ChildKind {
	switch propagation {
	case metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan:
		kind.recreate = propagation
	default:
		if kind.misuse == nil {
			kind.misuse = fmt.Errorf("recreate %s: propagation %q is none of Background, Foreground, Orphan", kind.kind.Kind, propagation)
		}
	}
	return kind
}

// recreate replaces is by a child whose apply the server has refused.
func (s *ChildSet) recreate(ctx context.Context, c child, is kube.Object, confirm func(context.Context) error, refused error, report *ChildReport) error {
	content, err := json.Marshal(c.object)
	if err != nil {
		return refused
	}
	name, digest := c.name.unversioned(), sha256.Sum256(content)
	if s.recreated.Has(name, digest) {
		return fmt.Errorf("%w (it was recreated for the same content before, and is not again)", refused)
	}
	if confirm != nil {
		if err := confirm(ctx); err != nil {
			return err
		}
	}
	if err := s.writer.DeleteToRecreate(ctx, c.object, is, c.kind.recreate); IgnoreNotFound(err) != nil {
		return err
	}
	// Before anything that may fail: the child is gone, whatever follows.
	logr.FromContextOrDiscard(ctx).Info("Deleted a child to create it anew, at the latest in the next Apply", "kind", c.name.Kind.Kind,
		"child", keyText(c.name.Key), "uid", is.GetUID(), "propagation", c.kind.recreate, "because", because(refused))
	s.recreated.Put(name, digest)
	_, err = s.writer.ReadChild(ctx, c.object)
	if err == nil {
		return ErrChildTerminating
	}
	if apierrors.IsNotFound(err) {
		err = s.writer.ApplyChild(ctx, c.object, s.opts.FieldOwner, nil)
	}
	if err != nil {
		return fmt.Errorf("it was deleted, and is created by the next Apply: %w", err)
	}
	report.Recreated = append(report.Recreated, c.name)
	return nil
}

// because names the fields that the server refused, if the error does: its text may have whole
// objects, such as the template of a Job.
func because(refused error) string {
	var fields []string
	var status apierrors.APIStatus
	if errors.As(refused, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			if cause.Field != "" {
				fields = append(fields, cause.Field)
			}
		}
	}
	if len(fields) == 0 {
		return refused.Error()
	}
	return "the server refuses to change " + strings.Join(fields, ", ")
}
