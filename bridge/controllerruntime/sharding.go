// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// defaultRetryPeriod is that of controller-runtime's leader election.
	defaultRetryPeriod = 2 * time.Second
	// defaultGrace is controller-runtime's GracefulShutdownTimeout.
	defaultGrace = 30 * time.Second
)

// ShardBy is what decides the shard of an object, by a hash.
type ShardBy string

const (
	// ByNamespace divides all namespaced objects by their namespace, and requests by theirs: what a
	// reconcile reads in the namespace of its request is there. Objects of cluster-scoped kinds are
	// on every replica; requests without a namespace belong to one shard.
	//
	// The hash is that of the API server, and hardly depends on the last three characters: of
	// namespaces whose names differ only there, such as team-1 to team-99, most belong to few
	// shards. Use ByUID then.
	ByNamespace ShardBy = "namespace"
	// ByUID divides the objects that controllers are for by their UIDs, and the objects of
	// Sharding.Owned by the UID of their controller owner. All others are on every replica. A
	// request without an object is dropped, so nothing is reconciled after the object is gone.
	ByUID ShardBy = "uid"
)

// Sharding says how the replicas of a Deployment share its objects, for Sharded.
type Sharding struct {
	// ID names the Leases. Empty: LeaderElectionID of the manager's options.
	ID string
	// Shards is into how many shards the objects are divided: at least eight for each replica, and
	// the same for all replicas. A replica with another number takes no shards until no replica
	// with the old one is left.
	Shards int
	// By is what the shard of an object is the hash of. Empty: ByNamespace.
	By ShardBy
	// Weight of this replica: one of weight 2 takes twice as many shards as one of 1. 0: 1.
	Weight int
	// Identity is the beginning of this replica's name in the Leases. Empty: the host name.
	Identity string
	// Kinds are the objects whose requests controllers get, by the controllers' names. ByUID needs
	// them for controllers that the builder has not made by For, or that have a LogConstructor.
	Kinds map[string]client.Object
	// Singletons are names of controllers whose requests one replica reconciles, that which holds
	// shard 0. Objects of the kind that such a controller is for are on every replica. Add what
	// else it reads to Whole.
	Singletons []string
	// Whole are kinds whose objects are on every replica, because reconciles read those of other
	// namespaces, or by UID those of other requests.
	Whole []client.Object
	// Owned are kinds that ByUID divides by the UID of the controller owner: controllers own them,
	// and read no others.
	Owned []client.Object
}

// Sharded returns a manager as ctrl.NewManager does, whose replicas share the objects:
//
//	mgr, err := bridge.Sharded(cfg, ctrl.Options{Scheme: scheme},
//		bridge.Sharding{ID: "website", Shards: 32})
//
// Each request belongs to a shard, and each shard to one replica at a time. The replicas divide the
// shards by Leases, evenly; when one starts, stops or fails, as few move as can. See
// docs/sharding.md for the Leases and the rights that they need. LeaderElectionID,
// LeaderElectionNamespace, LeaseDuration and RetryPeriod of opts configure them, and no replica
// leads. Replace leader election by it at once: a replica waits while an older version leads by the
// Lease of that name.
//
// Of each replica:
//
//   - The cache, which must be of NewCache, holds the objects of its own shards alone, as By says.
//   - A read of the cache by a key that another replica may have is an error that says so, and not
//     NotFound. A list has what this replica holds.
//   - Its controllers reconcile the requests of those shards. Another one's request is dropped, and
//     reconciled if this replica comes to hold its shard. Handlers get the objects that come with a
//     shard as created, and those that go with one as deleted.
//   - The context of a reconcile ends when its shard is lost, and writes in it are refused from then
//     on. All writes of the manager's clients are refused while this replica's own Lease
//     is not valid, as by Fence, which Sharded replaces.
//   - A shard is given away after its reconciles have ended, and taken after the cache has what was
//     written before. The shards of a replica that has failed are taken after LeaseDuration.
//   - At the end of Start's context reconciles in flight go on. Their contexts end after two thirds
//     of GracefulShutdownTimeout. Those that run when it has passed may write no more, and their
//     shards are taken after LeaseDuration.
//   - Other Runnables that need leader election run where shard 0 is held. When that moves, their
//     context ends, and their Start is called where it is held next, maybe again. Elected is closed
//     when this replica holds shard 0 for the first time.
//
// Add returns an error for a controller whose requests are of another type: complete its options by
// ShardedOptions. A controller of NewUnmanaged needs that too, and there is no error without it.
//
// The objects of opts are not changed. Sharded does not block. It returns an error for misuse.
func Sharded(cfg *rest.Config, opts ctrl.Options, s Sharding) (ctrl.Manager, error) {
	r, err := share(cfg, &opts, s)
	if err == nil {
		err = r.manage(cfg, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("make a manager whose replicas share objects: %w", err)
	}
	return r, nil
}

// share returns this process as one of the replicas, and completes opts for its manager.
func share(cfg *rest.Config, opts *ctrl.Options, s Sharding) (*replica, error) {
	s.ID, s.By = cmp.Or(s.ID, opts.LeaderElectionID), cmp.Or(s.By, ByNamespace)
	namespace := cmp.Or(opts.LeaderElectionNamespace, ownership.PodNamespace())
	if err := errors.Join(s.check(), checkManager(cfg, opts, namespace)); err != nil {
		return nil, err
	}
	*opts = Options(*opts)
	r := newReplica(s, ptr.Deref(opts.GracefulShutdownTimeout, defaultGrace))
	var err error
	r.agent, err = ownership.New(ownership.Options{
		ID: s.ID, Namespace: namespace, Identity: s.Identity, Program: ownership.Program(),
		By: shards.By(s.By), Count: s.Shards, Weight: max(s.Weight, 1),
		LeaseDuration: ptr.Deref(opts.LeaseDuration, defaultLeaseDuration),
		RetryPeriod:   ptr.Deref(opts.RetryPeriod, defaultRetryPeriod),
		Informers:     r, CatchUp: r.catchUp,
		Written: func(int) map[schema.GroupKind]kube.Version { return nil },
	}, cmp.Or(opts.LeaderElectionConfig, cfg), cmp.Or(opts.Logger, log.Log).WithName("sharding"))
	if err != nil {
		return nil, err
	}
	opts.LeaderElection = false
	given := opts.NewCache
	opts.NewCache = func(cfg *rest.Config, with cache.Options) (cache.Cache, error) {
		made, err := given(cfg, with)
		if err != nil {
			return nil, err
		}
		return made, r.divide(made)
	}
	return r, nil
}

// manage makes the manager of the replica.
func (r *replica) manage(cfg *rest.Config, opts ctrl.Options) error {
	guard := r.agent.Guard()
	opts = behind(guard.Wrap, cfg, opts)
	var err error
	if r.Manager, err = ctrl.NewManager(guard.Given(cfg), opts); err != nil {
		return err
	}
	if r.cache == nil {
		return errors.New("its cache is not made by Options.NewCache; remove NewCache from the options")
	}
	for by, kinds := range map[shards.By][]client.Object{"": r.Whole, shards.Owner: r.Owned} {
		for _, like := range kinds {
			if err := r.name(like, by); err != nil {
				return err
			}
		}
	}
	return r.Manager.Add(r.member())
}

// behind returns opts for a manager of cfg whose writes pass wrap. Metrics are served by cfg
// itself.
func behind(
	wrap func(http.RoundTripper) http.RoundTripper, cfg *rest.Config, opts ctrl.Options,
) ctrl.Options {
	if given := opts.Client.HTTPClient; given != nil {
		fenced := *given
		fenced.Transport = wrap(cmp.Or(fenced.Transport, http.DefaultTransport))
		opts.Client.HTTPClient = &fenced
	}
	if provide := opts.Metrics.FilterProvider; provide != nil {
		opts.Metrics.FilterProvider = func(*rest.Config, *http.Client) (server.Filter, error) {
			unfenced, err := rest.HTTPClientFor(cfg)
			if err != nil {
				return nil, err
			}
			return provide(cfg, unfenced)
		}
	}
	return opts
}

// check returns an error for misuse.
func (s *Sharding) check() error {
	var misuse []error
	if problems := validation.IsDNS1123Subdomain(s.ID); len(problems) > 0 {
		misuse = append(misuse, fmt.Errorf("ID is %q: %s; name the Leases by it, as by LeaderElectionID",
			s.ID, strings.Join(problems, ", ")))
	}
	if s.Shards < 1 || s.Shards > shards.Most {
		misuse = append(misuse,
			fmt.Errorf("the field Shards is %d; write a number from 1 to %d, such as 32", s.Shards, shards.Most))
	}
	if s.By != ByNamespace && s.By != ByUID {
		misuse = append(misuse, fmt.Errorf("the field By is %q; write %q or %q", s.By, ByNamespace, ByUID))
	}
	if s.Weight < 0 {
		misuse = append(misuse,
			fmt.Errorf("the field Weight is %d; write a number above zero, or leave it out", s.Weight))
	}
	if len(s.Owned) > 0 && s.By != ByUID {
		misuse = append(misuse, fmt.Errorf("the field Owned is set, and By is %q; remove one", s.By))
	}
	return errors.Join(misuse...)
}

// checkManager returns an error for misuse of the manager's options.
func checkManager(cfg *rest.Config, opts *ctrl.Options, namespace string) error {
	var misuse []error
	if cfg == nil {
		misuse = append(misuse, errors.New("the REST configuration is nil"))
	}
	if namespace == "" {
		misuse = append(misuse, errors.New("this process does not run in a Pod; set LeaderElectionNamespace "+
			"of the manager's options, or POD_NAMESPACE, to the namespace of the Leases"))
	}
	if opts.LeaderElectionResourceLockInterface != nil {
		misuse = append(misuse,
			errors.New(
				"LeaderElectionResourceLockInterface is set, and the replicas elect no leader; remove it"))
	}
	d := ptr.Deref(opts.LeaseDuration, defaultLeaseDuration)
	if d < 2*time.Second || d%time.Second != 0 {
		misuse = append(misuse,
			fmt.Errorf("LeaseDuration is %s; write at least 2s, in whole seconds", d))
	}
	return errors.Join(misuse...)
}

// divide makes a cache hold the objects of held shards alone.
func (r *replica) divide(made cache.Cache) error {
	c, ok := made.(*kinds)
	switch {
	case !ok || c.shared:
		return fmt.Errorf("the cache is a %T that is not of bridge.NewCache or bridge.CacheOptions, or "+
			"is of shared informers; set NewCache of the manager's options to one of them, or remove it", made)
	case r.cache != nil:
		return errors.New("Options.NewCache was called twice")
	}
	r.cache, c.absent = c, r.absent
	return c.factory.Divide(r.Shards, func(kind schema.GroupKind) string {
		return string(r.dividedBy(kind))
	})
}

// HoldShards implements ownership.Informers.
func (r *replica) HoldShards(some ...int) error { return r.cache.factory.HoldShards(some...) }

// AwaitShards implements ownership.Informers.
func (r *replica) AwaitShards(ctx context.Context, some ...int) error {
	return r.cache.factory.AwaitShards(ctx, some...)
}

// catchUp makes the cache have what the owners of shards before wrote.
func (r *replica) catchUp(ctx context.Context, _ []ownership.Taken) error {
	var behind []error
	floor := func(schema.GroupKind) informer.Floor { return informer.Floor{Present: true} }
	for _, one := range r.cache.factory.CatchUp(ctx, floor) {
		if one.Err != nil {
			behind = append(behind, fmt.Errorf("%s: %w", one.Kind.Kind, one.Err))
		}
	}
	return errors.Join(behind...)
}
