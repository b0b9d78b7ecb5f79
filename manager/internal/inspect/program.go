// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Program is a running program. Its methods are safe for concurrent use and do not block.
type Program interface {
	// Parts returns what it consists of now.
	Parts() Parts
	// Sharing returns how its replicas share the objects; nil: they do not. Only its lists may be modified.
	Sharing() *Sharing
	// Stopping reports whether it is about to end.
	Stopping() bool
	// Controller returns one; nil: there is none of that name.
	Controller(name string) Controlled
	// Cached returns an object of a cache and its kind; nil: no cache has it.
	Cached(kind schema.GroupKind, key kube.Key) (kube.Object, schema.GroupVersionKind)
}

// Controlled is a controller that records its runs. Keys are those of the logs.
// *reconcile.Controller is one.
type Controlled interface {
	Name() string
	Snapshot() reconcile.Snapshot
	RecordedKeys(q reconcile.KeysQuery) reconcile.KeysPage
	// Findings returns what the recorded runs show that is wrong.
	Findings() []reconcile.Finding
	// RunsOf returns the recorded runs of a key, the oldest first.
	RunsOf(key string) []reconcile.PastRun
	// QueuedKeys returns the keys of the queue.
	QueuedKeys() []workqueue.KeyState[string]
}
