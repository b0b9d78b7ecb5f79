// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// detectorEnv enables the detector for all objects when true, as for
// client-go's informers.
const detectorEnv = "KUBE_CACHE_MUTATION_DETECTOR"

// Detection selects objects of which a copy is kept. The comparison reads objects while other
// code may write to them.
type Detection struct {
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
func (d Detection) completed() Detection {
	if on, err := strconv.ParseBool(os.Getenv(detectorEnv)); err == nil && on {
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
	return text + "; objects from handlers and Listers are read-only; modify a copy from kube.Copy"
}
