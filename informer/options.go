// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/mutation"
	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// Options configure the informers of a SharedInformerFactory, or one made by
// New. The zero value is suitable for production.
type Options struct {
	// Namespaces of informers for which For has no scope. Empty: all.
	Namespaces []string
	// SelectByKind is the label selector, in the form of kubectl -l, of informers of some
	// kinds for which For has no scope. Those of ForResource have none.
	SelectByKind map[schema.GroupKind]string
	// Resync is how often each handler receives every object again, with a
	// jitter of a tenth. 0: never.
	Resync time.Duration
	// ResyncByKind overrides Resync for some kinds; negative: never.
	ResyncByKind map[schema.GroupKind]time.Duration
	// KeepManagedFields keeps metadata.managedFields in the objects. Otherwise
	// they are dropped, which saves a fifth of a typical object's memory. The
	// method of the same name keeps them for one informer.
	KeepManagedFields bool
	// Compact makes all informers hold their objects compressed; see package
	// informer/compact. The method of the same name does it for one informer.
	// Zero: objects are held decoded.
	Compact Compact
	// PagedLists disables streaming lists.
	PagedLists bool
	// PageSize of paged lists. 0: 500.
	PageSize int64
	// ConcurrentLists bounds the lists, including streaming ones, that the
	// factory's informers have in flight; the smallest go first. A list without
	// data for a second no longer counts. Kinds whose last request was refused
	// or failed have as many separate places. 0: 4.
	ConcurrentLists int
	// MemoryBudget is how many bytes the objects of the factory's informers may
	// take. Lists take turns under it: one that does not fit beside others waits
	// until they have been read; one that does not fit by itself stops, its scope
	// is in state.DoesNotFit, and it is tried again. Objects are counted as
	// Memory does, with what they share. Changes that come by a watch are always stored. 0: 80 %
	// of GOMEMLIMIT if it is set, else half of the memory limit of the process's
	// cgroup, if there is one below the machine's memory. Negative: no bound.
	MemoryBudget int64
	// ListFromCache lets the server answer the first list from its cache
	// (resourceVersion 0), as older clients do. The result may be older than
	// what this or another process has seen.
	ListFromCache bool
	// Audit is how often, on average and spread by half, each scope is compared
	// with the server at the same resourceVersion, by a list of the metadata.
	// Differences, which mean that the server lost an event, are counted,
	// logged and repaired by a list. An audit transfers the metadata of all
	// objects; some hours are appropriate. 0: never.
	Audit time.Duration
	// DetectMutations finds code that modifies shared objects. Zero: off.
	DetectMutations MutationDetection
	// Logger for messages to operators. Zero: nothing is logged.
	Logger logr.Logger

	detector *mutation.Detector // of the factory
}

// resyncOf returns the resync period of kind; 0: never.
func (o Options) resyncOf(kind schema.GroupKind) time.Duration {
	if d, ok := o.ResyncByKind[kind]; ok {
		return max(d, 0)
	}
	return max(o.Resync, 0)
}

// memoryBudget returns the budget in bytes; not above 0: no bound.
func (o Options) memoryBudget() int64 {
	if o.MemoryBudget != 0 {
		return o.MemoryBudget
	}
	return headroom.Default(debug.SetMemoryLimit(-1), os.DirFS("/"))
}

// reflectorOptions returns the options of a Reflector fed by lw.
func (o Options) reflectorOptions(lw listwatch.ListerWatcher[kube.Object]) reflector.Options {
	opts := reflector.Options{
		Logger: o.Logger, PageSize: o.PageSize, PagedLists: o.PagedLists, ListFromCache: o.ListFromCache,
	}
	if p, ok := lw.(pagedOnly); ok && p.IsWatchListSemanticsUnSupported() {
		opts.PagedLists = true
	}
	return opts
}

func (o Options) concurrentLists() int {
	if o.ConcurrentLists <= 0 {
		return pacing.DefaultConcurrentLists
	}
	return o.ConcurrentLists
}

// Compact says how an informer packs the objects that it holds; make it with
// package informer/compact. Zero: it holds them decoded.
//
//	Codec            compresses; nil: objects are not packed
//	HotObjects       and
//	HotBytes         bound the decoded objects kept for the next read
//	DictionaryBytes  is the size of the dictionary
type Compact = compact.Options

// IndexFunc returns the values under which an index finds obj. It may be
// called concurrently and must not block.
type IndexFunc[T kube.Object] = store.IndexFunc[T]

// MutationDetection selects objects of which a copy is kept, to detect code that modifies what
// all readers share. Copies are compared when a handler or reconciler that had the object
// returns, before a newer version replaces it, about once a minute, and at the end of Run. A
// mutation is counted in Snapshot, logged once per object and field, and repaired: the store gets
// the copy. Handlers receive no event, and the process continues. The race detector reports
// comparisons beside a write, and a concurrent write to a map ends the process, as with any reader.
//
//	Rate        fraction of objects to check; 0: none, unless the environment variable
//	            KUBE_CACHE_MUTATION_DETECTOR is true; 1 and above: all, for tests,
//	            which doubles the store's memory; below 1: a sample, at most 256 per
//	            informer, replaced within two minutes
//	OnMutation  is called with each mutation, from the goroutine that found it
type MutationDetection = mutation.Detection

// Mutation describes a modified object of the cache. It has no values, which may be secret.
//
//	Kind, Key, UID, Version  of the modified object
//	Fields                   that differ, at most eight
//	Suspects                 had the object since it was last seen unchanged; none:
//	                         code that the informer does not run modified it
//	Bystanders               also ran in that time
//	Repaired                 the store has the unchanged object again
type Mutation = mutation.Mutation

// MutationDetector compares the objects of informers with copies, and knows which code ran
// meanwhile. Safe for concurrent use.
type MutationDetector struct{ detector *mutation.Detector }

// Begin records that who runs, such as a reconciler for its key, until end is
// called. The objects that Listers returned meanwhile are then compared.
// A nil detector does nothing.
func (d *MutationDetector) Begin(who fmt.Stringer) (end func()) {
	if d == nil {
		return func() {}
	}
	return d.detector.Begin(who)
}

// shown returns d for users, nil if it is.
func shown(d *mutation.Detector) *MutationDetector {
	if d == nil {
		return nil
	}
	return &MutationDetector{d}
}
