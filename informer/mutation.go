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
)

// mutationDetectorEnv switches the detector fully on when it is true, as it does
// for client-go's informers.
const mutationDetectorEnv = "KUBE_CACHE_MUTATION_DETECTOR"

// MutationDetection says of which objects a copy is kept beside the shared one,
// so that it is noticed when a handler, a reconciler or anybody else changes
// what all readers share. They are compared when a handler or reconciler that
// had the object has returned, before a newer version takes its place, about
// once a minute, and at the end of Run. What is found is counted in Snapshot,
// logged once per object and field, and repaired: the store gets the copy, and
// handlers are not told, since nothing has changed on the server. The process
// goes on.
//
// The comparison reads an object while a culprit may still write to it. The race
// detector reports that, rightly, and a map that is written to at the same moment
// ends the process, as it does with any reader.
type MutationDetection struct {
	// Rate of the objects that are kept an eye on. 0: none, the detector is off
	// and costs nothing, unless the environment variable
	// KUBE_CACHE_MUTATION_DETECTOR is true. 1 and above: every object, for tests;
	// it doubles the store's memory. Below 1: a sample, for production, 0.01 is one
	// object in a hundred, at most 256 objects per informer, which make room for
	// others within two minutes. Of Pods that is 4 MB of copies, and a few
	// milliseconds a minute to compare them.
	Rate float64
	// OnMutation is called with each one that is found, from the goroutine that
	// found it: a test fails there. Nil: none.
	OnMutation func(Mutation)
}

// completed is d with what the environment says.
func (d MutationDetection) completed() MutationDetection {
	if on, err := strconv.ParseBool(os.Getenv(mutationDetectorEnv)); err == nil && on {
		d.Rate = 1
	}
	return d
}

// Mutation is an object of the cache that somebody has changed. It has no values,
// which may be secret.
type Mutation struct {
	Kind schema.GroupVersionKind
	Key  Key
	UID  types.UID
	// Version of the object that was changed.
	Version string
	// Fields that differ, such as .metadata.labels["app"]: at most eight.
	Fields []string
	// Suspects had the object in hand since it was last seen unchanged: handlers
	// that were given it, and handlers and reconcilers that were running when it
	// was read. None: it was changed by somebody whom the informer does not run.
	Suspects []string
	// Bystanders ran since then too.
	Bystanders []string
	// Repaired: the store has the unchanged object again. It has not where a newer
	// version has come meanwhile.
	Repaired bool
}

// String is the mutation in one line.
func (m Mutation) String() string {
	text := fmt.Sprintf("the shared %s %s was changed at %s", m.Kind.Kind, m.Key, strings.Join(m.Fields, ", "))
	switch {
	case len(m.Suspects) > 0:
		text += " by " + strings.Join(m.Suspects, " or ")
	case len(m.Bystanders) > 0:
		text += "; meanwhile ran " + strings.Join(m.Bystanders, ", ")
	default:
		text += " by nobody whom the informer runs"
	}
	return text + "; objects from handlers and Listers are read-only, informer.Copy gives one's own"
}
