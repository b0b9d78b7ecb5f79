// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/informer"
)

// Sharding divides the objects of an operator among several Deployments of it by a
// label, which users, admission or another controller set. An object belongs to the
// Deployment whose Shard is the label's value, one without the label to the Deployment
// without a Shard. When the label changes the object moves: the old shard does not
// begin another reconcile of it once it has seen the change, the new one begins then.
type Sharding struct {
	// Label is the key of the label, such as "websites.example.dev/shard".
	Label string
	// Shard is the one of this process, as the label's value. With leader election each
	// has its own Lease, whose name is LeaderElection.ID, a hyphen and the shard. The
	// flag -shard sets it. Empty: the objects without the label.
	Shard string
}

// setShard changes a copy, not the program's value.
func (o *Options) setShard(name string) {
	s := Sharding{}
	if o.Sharding != nil {
		s = *o.Sharding
	}
	s.Shard = name
	o.Sharding = &s
}

// shard returns an error for misuse, and gives each shard its own Lease.
func (o *Options) shard() error {
	s := o.Sharding
	if s == nil || *s == (Sharding{}) {
		o.Sharding = nil
		return nil
	}
	if s.Label == "" {
		return fmt.Errorf("Sharding: the shard is %q (-shard), and the program has no label for shards: set Options.Sharding, such as manager.Sharding{Label: \"example.dev/shard\"}, and build informers with mgr.Shard()", s.Shard)
	}
	misuse := []error{valid("Label", s.Label, validation.IsQualifiedName(s.Label))}
	if s.Shard != "" {
		misuse = append(misuse, valid("Shard", s.Shard, validation.IsDNS1123Label(s.Shard)))
	}
	if err := errors.Join(misuse...); err != nil {
		return fmt.Errorf("Sharding: %w", err)
	}
	if e := o.LeaderElection; e != nil && e.ID != "" && s.Shard != "" {
		own := *e
		own.ID += "-" + s.Shard
		o.LeaderElection = &own
	}
	return nil
}

// scope selects the objects of the shard in namespaces.
func (s *Sharding) scope(namespaces []string) informer.Scope {
	if s == nil {
		return informer.Scope{Namespaces: namespaces}
	}
	requirement := metav1.LabelSelectorRequirement{Key: s.Label, Operator: metav1.LabelSelectorOpDoesNotExist}
	if s.Shard != "" {
		requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{s.Shard}
	}
	selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}})
	return informer.Scope{Namespaces: namespaces, LabelSelector: selector}
}
