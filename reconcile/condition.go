// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
)

const maxConditionMessage = 32768

// Conditions are the conditions of one object in one reconcile. They follow the API
// conventions: one of each type, each with the generation at which it was observed, and
// with the time at which its status, not just its reason, last changed. A condition
// that is set to what it was is unchanged and keeps its place, so that an unchanged
// status equals the one that was read and need not be written.
//
//	site := kube.Copy(site)
//	conditions := reconcile.ConditionsOf(site, &site.Status.Conditions, reconcile.Now(ctx))
//	conditions.True("Ready", "Serving", "2 of 2 replicas serve the page")
//
// Conditions modify the list they were created with and are not safe for concurrent
// use.
type Conditions struct {
	list       *[]metav1.Condition
	generation int64
	now        metav1.Time
}

// ConditionsOf returns Conditions for the list, which is a part of obj's status. obj
// must be a copy: an object from a Lister is shared. now is the time of transitions,
// truncated to seconds as in the API.
func ConditionsOf(obj kube.Object, list *[]metav1.Condition, now time.Time) Conditions {
	if list == nil {
		list = new([]metav1.Condition)
	}
	return Conditions{list: list, generation: obj.GetGeneration(), now: metav1.NewTime(now.Truncate(time.Second))}
}

// True sets the condition of that type to True. reason is one CamelCase word, for
// programs; message is for people, and is cut if it is too long for the API. It reports
// whether that changed the condition.
func (c Conditions) True(kind, reason, message string) (changed bool) {
	return c.Set(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// False sets the condition to False.
func (c Conditions) False(kind, reason, message string) (changed bool) {
	return c.Set(metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
}

// Unknown sets the condition to Unknown.
func (c Conditions) Unknown(kind, reason, message string) (changed bool) {
	return c.Set(metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message})
}

// Failed sets the condition to False because of err, such as that of ChildSet.Apply, so that
// those who wrote the object learn of it; return err nevertheless. The message is err's, the
// reason the server's, such as Invalid or Forbidden, or else Failed; of joined errors, the first's
// that is about the object. The condition stays as it is if err says nothing about the object:
// conflicts, an unreachable or overloaded server, a lost lease or a cancelled context, and nil.
// An err of Apply never has a Secret's content.
func (c Conditions) Failed(kind string, err error) (changed bool) {
	if err == nil || every(err, isPassing) {
		return false
	}
	return c.False(kind, cmp.Or(string(apierrors.ReasonForError(lasting(err))), "Failed"), err.Error())
}

// isPassing reports whether err, without what it wraps, says nothing about the object.
func isPassing(err error) bool {
	if isStaleConflict(err) || isNotLeading(err) || err == context.Canceled || err == context.DeadlineExceeded {
		return true
	}
	if _, unreachable := err.(net.Error); unreachable {
		return true
	}
	_, ok := err.(apierrors.APIStatus)
	return ok && (apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err))
}

// lasting returns the first part of err that is not passing.
func lasting(err error) error {
	for part := err; part != nil; part = errors.Unwrap(part) {
		joined, ok := part.(interface{ Unwrap() []error })
		if !ok {
			continue
		}
		for _, p := range joined.Unwrap() {
			if !every(p, isPassing) {
				return lasting(p)
			}
		}
	}
	return err
}

// Set sets a condition with the status in to. It ignores the generation and time in to.
func (c Conditions) Set(to metav1.Condition) (changed bool) {
	to.ObservedGeneration = c.generation
	to.LastTransitionTime = c.now
	to.Message = cutMessage(to.Message)
	is := c.Get(to.Type)
	if is == nil {
		*c.list = append(*c.list, to)
		return true
	}
	if is.Status == to.Status {
		to.LastTransitionTime = is.LastTransitionTime
	}
	if *is == to {
		return false
	}
	*is = to
	return true
}

// Get returns the condition of that type; nil: there is none.
func (c Conditions) Get(kind string) *metav1.Condition {
	return meta.FindStatusCondition(*c.list, kind)
}

// Remove removes the condition of that type, and reports whether there was one.
func (c Conditions) Remove(kind string) (changed bool) {
	return meta.RemoveStatusCondition(c.list, kind)
}

func cutMessage(text string) string {
	text = strings.ToValidUTF8(text, "�")
	if len(text) <= maxConditionMessage {
		return text
	}
	const dots = "…"
	end := maxConditionMessage - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
