// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/internal/shards"
)

// Sharding divides the objects of an operator, in one of two ways or in both.
//
// With Shards, the replicas of a Deployment share its objects. Each object belongs to a shard by a hash
// (see By), and each shard to one replica at a time: the replicas divide them by Leases, evenly, and
// when one starts, stops or ends unexpectedly, as few of them move as can. See docs/sharding.md.
// Of several managers in one process each has shards of its own: the gate of one knows nothing of a
// reconcile of another, whose context ends when its shard is lost.
//
// With Label, objects are divided among several Deployments by a label, which users, admission or
// another controller set. An object belongs to the Deployment whose Shard is the label's value, one
// without the label to the Deployment without a Shard. When the label changes the object moves: the old
// shard does not begin another reconcile of it once it has seen the change, the new one begins then.
type Sharding struct {
	// Shards is into how many shards the replicas of this Deployment divide its objects: at least eight
	// for each replica, and the same for all. LeaderElection then configures the Leases, and no replica
	// leads. The flag -shards sets it. 0: one replica does all the work, with LeaderElection.
	Shards int
	// By is what the shard of an object is the hash of. The flag -shard-by sets it. Empty: UID.
	By ShardBy
	// Weight of this replica: one of weight 2 takes twice as many shards as one of 1. 0: 1.
	Weight int
	// Address at which people reach the console of this replica, such as https://10.0.0.7:8443. Empty:
	// the address of the Pod, from POD_IP, with the port of MetricsAddress.
	Address string
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

// ShardBy is what decides the shard of an object, by a hash.
type ShardBy string

const (
	// UID divides the objects of a controller made by reconcile.For by their UIDs, and those that
	// source.Owned gives it by the UID of their controller owner. Objects of other kinds are on every
	// replica.
	UID ShardBy = "uid"
	// Namespace divides all namespaced objects by their namespace: what a reconcile reads in its own
	// namespace is there. Objects of cluster-scoped kinds are on every replica, and those of a
	// controller are reconciled by the one that holds the shard of the empty namespace.
	Namespace ShardBy = "namespace"
)

// shared reports whether replicas share the work.
func (o *Options) shared() bool { return o.Sharding != nil && o.Sharding.Shards > 0 }

// checkShards returns an error for misuse of what replicas share.
func (s *Sharding) checkShards(e *LeaderElection) error {
	var misuse []error
	if s.Shards < 0 || s.Shards > shards.Most {
		misuse = append(misuse, fmt.Errorf("the field Shards is %d; write a number from 1 to %d (-shards)", s.Shards, shards.Most))
	}
	if s.By != UID && s.By != Namespace {
		misuse = append(misuse, fmt.Errorf("the field By is %q; write %q or %q (-shard-by)", s.By, UID, Namespace))
	}
	if s.Weight < 0 {
		misuse = append(misuse, fmt.Errorf("the field Weight is %d; write a number above zero, or leave it out", s.Weight))
	}
	if e == nil {
		misuse = append(misuse, errors.New("the field Shards needs LeaderElection, whose ID names the Leases; set it (-leader-elect), or leave Shards out"))
	}
	return errors.Join(misuse...)
}

// sharding returns a copy of the program's value.
func (o *Options) sharding() Sharding {
	if o.Sharding == nil {
		return Sharding{}
	}
	return *o.Sharding
}

func (o *Options) setShard(name string) {
	s := o.sharding()
	s.Shard = name
	o.Sharding = &s
}

// shard returns an error for misuse, selects the objects of the shard, and gives each shard
// its own Lease.
func (o *Options) shard() error {
	s := o.Sharding
	if s == nil || s.Label == "" && s.Shard == "" && len(s.Kinds) == 0 && s.Shards == 0 {
		o.Sharding = nil
		return nil
	}
	if s.Shards != 0 {
		own := *s
		own.By = cmp.Or(own.By, UID)
		if o.Sharding = &own; own.Address == "" {
			own.Address = podAddress(o.MetricsAddress, o.MetricsServing.Secure)
		}
		if err := own.checkShards(o.LeaderElection); err != nil {
			return fmt.Errorf("Sharding: %w", err)
		}
		if s = &own; s.Label == "" && s.Shard == "" && len(s.Kinds) == 0 {
			return nil
		}
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

// podAddress returns where others reach the metrics of this Pod; empty: it is in none, or they do not.
func podAddress(listens string, secure bool) string {
	ip := os.Getenv("POD_IP")
	host, port, err := net.SplitHostPort(listens)
	if ip == "" || err != nil || port == "0" || host != "" && !net.ParseIP(host).IsUnspecified() && host != ip {
		return ""
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(ip, port)
}

// selector selects the objects of the shard; empty: all.
func (s *Sharding) selector() string {
	if s == nil || s.Label == "" {
		return ""
	}
	requirement := metav1.LabelSelectorRequirement{Key: s.Label, Operator: metav1.LabelSelectorOpDoesNotExist}
	if s.Shard != "" {
		requirement.Operator, requirement.Values = metav1.LabelSelectorOpIn, []string{s.Shard}
	}
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{requirement}})
}
