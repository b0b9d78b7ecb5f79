// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// mutationDetectorEnv enables the detector for all objects when true, as for
// client-go's informers.
const mutationDetectorEnv = "KUBE_CACHE_MUTATION_DETECTOR"

// MutationDetection selects objects of which a copy is kept, to detect when a
// handler, a reconciler or other code modifies what all readers share. Copies
// are compared when a handler or reconciler that had the object returns, before
// a newer version replaces it, about once a minute, and at the end of Run. A
// mutation is counted in Snapshot, logged once per object and field, and
// repaired: the store gets the copy. Handlers receive no event, since nothing
// changed on the server, and the process continues.
//
// The comparison reads objects while other code may write to them. The race
// detector reports that, rightly, and a concurrent write to a map ends the
// process, as with any reader.
type MutationDetection struct {
	// Rate is the fraction of objects to check. 0: none, and no cost, unless
	// the environment variable KUBE_CACHE_MUTATION_DETECTOR is true. 1 and
	// above: every object, for tests; it doubles the store's memory. Below 1: a
	// sample, for production; 0.01 is one object in a hundred, at most 256 per
	// informer, replaced by others within two minutes. For Pods that is 4 MB of
	// copies, and a few milliseconds a minute to compare them.
	Rate float64
	// OnMutation is called with each mutation, from the goroutine that found
	// it; a test can fail there. Nil: none.
	OnMutation func(Mutation)
}

// completed returns d with the environment variable applied.
func (d MutationDetection) completed() MutationDetection {
	if on, err := strconv.ParseBool(os.Getenv(mutationDetectorEnv)); err == nil && on {
		d.Rate = 1
	}
	return d
}

// Mutation describes a modified object of the cache. It has no values, which
// may be secret.
type Mutation struct {
	Kind schema.GroupVersionKind
	Key  kube.Key
	UID  types.UID
	// Version of the modified object.
	Version string
	// Fields that differ, such as .metadata.labels["app"], at most eight.
	Fields []string
	// Suspects had the object since it was last seen unchanged: handlers that
	// received it, and handlers and reconcilers that were running when it was
	// read. None: code that the informer does not run modified it.
	Suspects []string
	// Bystanders also ran in that time.
	Bystanders []string
	// Repaired: the store has the unchanged object again; false if a newer
	// version has replaced it.
	Repaired bool
}

// String describes the mutation in one line.
func (m Mutation) String() string {
	text := fmt.Sprintf("the shared %s %s was changed at %s", m.Kind.Kind, m.Key, strings.Join(m.Fields, ", "))
	switch {
	case len(m.Suspects) > 0:
		text += " by " + strings.Join(m.Suspects, " or ")
	case len(m.Bystanders) > 0:
		text += "; running meanwhile: " + strings.Join(m.Bystanders, ", ")
	default:
		text += " by code that the informer does not run"
	}
	return text + "; objects from handlers and Listers are read-only; modify a copy from informer.Copy"
}
