// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// maxConditionMessage is how long the API lets a condition's message be.
const maxConditionMessage = 32768

// Conditions are those of one object, as one reconcile finds them. They are kept as
// the API conventions have it: one of each type, each with the generation that it was
// observed at, and with the time at which its status, and not just its reason, last
// became another. What says the same as before stays as it is, in its place, so that
// a status in which nothing has changed is equal to the one that was read and need
// not be written.
//
//	site := informer.Copy(site)
//	conditions := reconcile.ConditionsOf(site, &site.Status.Conditions, time.Now())
//	conditions.True("Ready", "Serving", "2 of 2 replicas serve the page")
//
// Conditions change the list they were made with and are not safe for concurrent use.
type Conditions struct {
	list       *[]metav1.Condition
	generation int64
	now        metav1.Time
}

// ConditionsOf makes Conditions of the list, which is a part of obj's status. obj is
// the reconcile's own copy: a Lister's is shared. now is the time of transitions, cut
// to the seconds that the API keeps.
func ConditionsOf(obj informer.Object, list *[]metav1.Condition, now time.Time) Conditions {
	if list == nil {
		list = new([]metav1.Condition)
	}
	return Conditions{list: list, generation: obj.GetGeneration(), now: metav1.NewTime(now.Truncate(time.Second))}
}

// True says that the condition of that type holds. reason is one word in CamelCase,
// for programs; message is for people, and cut where the API would refuse it. It
// reports whether that is news.
func (c Conditions) True(kind, reason, message string) (changed bool) {
	return c.Set(metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message})
}

// False says that the condition does not hold.
func (c Conditions) False(kind, reason, message string) (changed bool) {
	return c.Set(metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message})
}

// Unknown says that it cannot be told whether the condition holds.
func (c Conditions) Unknown(kind, reason, message string) (changed bool) {
	return c.Set(metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message})
}

// Set is True, False or Unknown by the condition's own status. Its generation and its
// time are not looked at.
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

// Get is the condition of that type; nil: there is none.
func (c Conditions) Get(kind string) *metav1.Condition {
	return meta.FindStatusCondition(*c.list, kind)
}

// Remove takes the condition of that type out, and reports whether there was one.
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
