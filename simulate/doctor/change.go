// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// Who changed something, or asked for it.
const (
	operator = "operator"
	user     = "user"
	cluster  = "cluster" // the controllers of Kubernetes: garbage collector, workloads
)

// ref names an object.
type ref struct {
	Kind string // such as "Deployment.apps"
	Key  string // namespace/name
}

func (r ref) String() string { return r.Kind + " " + r.Key }

func refOf(kind string, key kube.Key) ref { return ref{kind, aim.KeyText(key)} }

func refTo(obj *unstructured.Unstructured) ref {
	return refOf(obj.GroupVersionKind().GroupKind().String(), kube.KeyOf(obj))
}

// given reports whether the cluster gives the object to each namespace, sooner or later.
func (r ref) given() bool {
	return r.Kind == "ServiceAccount" && strings.HasSuffix(r.Key, "/default") || r.Kind == "ConfigMap" && strings.HasSuffix(r.Key, "/kube-root-ca.crt")
}

// change is one change of an object.
type change struct {
	At   time.Duration
	Step int    // of the walk
	Who  string // operator, user or cluster
	Verb string // created, updated or deleted
	Of   ref
	UID  string
	// Version of the server's state after it.
	Version uint64
	Fields  string // that an update changed
	Run     string // the reconcile, such as "website default/site"; empty: not known
	Line    string // of the operator's code; empty: not known
}

func (c change) String() string {
	text := fmt.Sprintf("%s %s %s", c.Who, c.Verb, c.Of)
	if c.Fields != "" {
		text += " (" + c.Fields + ")"
	}
	if c.Line != "" {
		text += " at " + c.Line
	}
	return text
}

// ask is one write that was asked for.
type ask struct {
	At   time.Duration
	Done time.Duration // when it was answered
	Step int
	Who  string
	// Write is the verb, the kind and the subresource, such as "update Pod/status".
	Write string
	Of    ref
	Run   string
	Code  int    // of the answer; 0: there was none
	Line  string // of the operator's code; empty: not known
	path  string
}

// done reports whether the write was carried out.
func (a ask) done() bool { return a.Code >= 200 && a.Code < 300 }

// ignored reports whether objects of a kind say nothing about what a program has made.
func ignored(kind string) bool {
	switch kind {
	case "Lease.coordination.k8s.io", "Event", "Event.events.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io":
		return true
	}
	return false
}

// isHistory reports whether Kubernetes' controllers keep the history of workloads, or the addresses of Services, in
// objects of a kind. A program may keep its own there.
func isHistory(kind string) bool {
	return kind == "ControllerRevision.apps" || kind == "ReplicaSet.apps" || kind == "EndpointSlice.discovery.k8s.io"
}

// excused reports whether a change of an object of a kind by any client says nothing about what a program has made.
func excused(kind string) bool { return ignored(kind) || isHistory(kind) }

// isDeletion reports whether the program has deleted an object, or made Kubernetes delete a Pod.
func isDeletion(c change) bool {
	// An object with finalizers gets a deletionTimestamp, and is deleted later by another client.
	deleted := c.Verb == "deleted" || c.Verb == "updated" && strings.Contains(c.Fields, "metadata.deletionTimestamp")
	return deleted && (c.Who == operator || c.Who == cluster && c.Of.Kind == "Pod")
}

func at(line string) string {
	if line == "" {
		return ""
	}
	return " (" + line + ")"
}

// method returns the method of a write; empty: the verb is that of a read.
func method(verb string) string {
	return map[string]string{
		"create": http.MethodPost, "update": http.MethodPut, "patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
	}[verb]
}
