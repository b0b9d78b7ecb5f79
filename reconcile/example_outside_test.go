// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

// zones is a service outside of the cluster.
type zones interface {
	// Find returns whether there is a zone of the name, and its host.
	Find(ctx context.Context, name string) (host string, found bool, err error)
	Create(ctx context.Context, name, host string) error
	Update(ctx context.Context, name, host string) error
	// Delete accepts that there is none. done: it has gone.
	Delete(ctx context.Context, name string) (done bool, err error)
}

func setupWithZones(mgr *manager.Manager, service zones) error {
	r := zoneReconciler{service}
	c := reconcile.For(informer.For[*webv1.Website](mgr.Informers()), r.reconcile, reconcile.Options{})
	c.Finalize("example.com/zone", mgr.Client(), r.cleanUp) // there before the first call of r.reconcile
	return mgr.Add(c)
}

type zoneReconciler struct{ zones zones }

func (r zoneReconciler) reconcile(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	name := string(site.UID) // the same in each attempt, and no other object's
	host, found, err := r.zones.Find(ctx, name)
	switch {
	case err != nil:
	case !found:
		err = r.zones.Create(ctx, name, site.Spec.Host)
	case host != site.Spec.Host:
		err = r.zones.Update(ctx, name, site.Spec.Host)
	}
	return reconcile.After(time.Hour, "the service sends no events"), err
}

func (r zoneReconciler) cleanUp(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
	done, err := r.zones.Delete(ctx, string(site.UID)) // whatever the status says
	if err == nil && !done {
		return reconcile.After(10*time.Second, "the zone is being deleted"), nil
	}
	return reconcile.Result{}, err
}

// A Website has a zone in a service outside of the cluster.
func ExampleObjectController_Finalize() {
	var mgr *manager.Manager // of your program
	var service zones        // a client of the service
	if err := setupWithZones(mgr, service); err != nil {
		fmt.Println(err)
	}
}
