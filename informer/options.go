// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/gate"
)

// Options of the informers of a SharedInformerFactory, or of one made by New.
// The zero value is fit for production.
type Options struct {
	// Namespaces that an informer covers when For names no scope. Empty: all.
	Namespaces []string
	// Resync gives each handler every object again this often, spread by up to a
	// tenth. 0: never.
	Resync time.Duration
	// ResyncByKind overrides Resync for some kinds; negative: never.
	ResyncByKind map[schema.GroupKind]time.Duration
	// KeepManagedFields keeps metadata.managedFields in the objects. They are
	// stripped otherwise: a fifth of a typical object's memory. The method of the
	// same name keeps them for one informer.
	KeepManagedFields bool
	// PagedLists asks for lists page by page instead of streaming lists.
	PagedLists bool
	// PageSize of paged lists. 0: 500.
	PageSize int64
	// ConcurrentLists bounds how many lists the factory's informers have under way
	// at a time, streaming ones among them; the smallest go first. A list that the
	// server says nothing of for a second counts no more. Kinds whose last request
	// was refused or failed have as many places of their own. 0: 4.
	ConcurrentLists int
	// ListFromCache lets the first list be any state that the server has at
	// hand (resourceVersion 0), as older clients do. It may be older than what
	// this process or another has seen.
	ListFromCache bool
	// Audit is how often, on average and spread by half, each scope is compared
	// with the server at the same resourceVersion, by a list of the metadata
	// alone. What differs, because the server has lost an event, is counted,
	// logged and repaired by a list. It costs as many bytes of metadata as there
	// are objects: some hours are fit. 0: never.
	Audit time.Duration
	// DetectMutations finds who changes the objects that all readers share. Zero:
	// off.
	DetectMutations MutationDetection
	// Logger for what a person must know. Zero: nothing is logged.
	Logger logr.Logger

	detector *MutationDetector // of the factory
}

// resyncOf is the resync period of kind; 0: never.
func (o Options) resyncOf(kind schema.GroupKind) time.Duration {
	if d, ok := o.ResyncByKind[kind]; ok {
		return max(d, 0)
	}
	return max(o.Resync, 0)
}

func (o Options) concurrentLists() int {
	if o.ConcurrentLists <= 0 {
		return gate.DefaultConcurrentLists
	}
	return o.ConcurrentLists
}
