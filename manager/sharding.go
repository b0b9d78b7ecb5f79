// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Sharding divides the objects of an operator among several Deployments of it by a
// label, which users, admission or another controller set. An object belongs to the
// Deployment whose Shard is the label's value, one without the label to the Deployment
// without a Shard. When the label changes the object moves: the old shard does not
// begin another reconcile of it once it has seen the change, the new one begins then.
type Sharding struct {
	// Label is the key of the label, such as "websites.example.dev/shard".
	Label string
	// Kinds are those whose objects are divided, such as &webv1.Website{}: informers of them
	// hold the objects of the shard alone, unless they are made with a scope of their own.
	Kinds []runtime.Object
	// Shard is the label's value on the objects of this process. With leader election each
	// shard has its own Lease, named LeaderElection.ID, a hyphen and the shard. The flag
	// -shard sets it. Empty: the objects without the label.
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

// shard returns an error for misuse, selects the objects of the shard, and gives each shard
// its own Lease.
func (o *Options) shard() error {
	s := o.Sharding
	if s == nil || s.Label == "" && s.Shard == "" && len(s.Kinds) == 0 {
		o.Sharding = nil
		return nil
	}
	if s.Label == "" {
		return fmt.Errorf("Sharding: the shard is %q (-shard), and the program has no Label for shards: set Options.Sharding, such as manager.Sharding{Label: \"example.dev/shard\", Kinds: …}", s.Shard)
	}
	misuse := []error{valid("Label", s.Label, validation.IsQualifiedName(s.Label))}
	if s.Shard != "" {
		misuse = append(misuse, valid("Shard", s.Shard, validation.IsDNS1123Label(s.Shard)))
	}
	if len(s.Kinds) == 0 {
		misuse = append(misuse, errors.New("it has no Kinds, so nothing would be divided; give those that the controllers reconcile"))
	}
	selected := map[schema.GroupKind]string{}
	maps.Copy(selected, o.Informers.SelectByKind)
	for _, like := range s.Kinds {
		kinds, _, err := o.Scheme.ObjectKinds(like)
		if err != nil {
			misuse = append(misuse, fmt.Errorf("type %T of Kinds is not in the scheme; call AddToScheme of its package", like))
		}
		for _, kind := range kinds {
			if other, taken := o.Informers.SelectByKind[kind.GroupKind()]; taken {
				misuse = append(misuse, fmt.Errorf("kind %s is selected by %q in Informers.SelectByKind too; leave one out", kind.Kind, other))
			}
			selected[kind.GroupKind()] = s.selector()
		}
	}
	if err := errors.Join(misuse...); err != nil {
		return fmt.Errorf("Sharding: %w", err)
	}
	o.Informers.SelectByKind = selected
	if e := o.LeaderElection; e != nil && e.ID != "" && s.Shard != "" {
		own := *e
		own.ID += "-" + s.Shard
		o.LeaderElection = &own
	}
	return nil
}

// selector selects the objects of the shard; empty: all.
func (s *Sharding) selector() string {
	if s == nil {
		return ""
	}
	requirement := metav1.LabelSelectorRequirement{Key: s.Label, Operator: metav1.LabelSelectorOpDoesNotExist}
	if s.Shard != "" {
		requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{s.Shard}
	}
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}})
}
