// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/flyball-dev/flyball/manager"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// addChecks makes a replica ready only if the versions that it writes are served: with a
// CustomResourceDefinition that is older than the program, a rollout stops at the first
// replica. The manager itself checks that Websites are listed.
func addChecks(mgr *manager.Manager) error {
	api, err := discovery.NewDiscoveryClientForConfig(mgr.StandbyConfig())
	if err != nil {
		return err
	}
	return mgr.AddReadyCheck("websites/status", (&servedOnce{api: api, resource: "websites/status"}).ask)
}

// servedOnce checks whether a resource is served until it was once. Later the API server
// may be down, and fewer ready replicas would not help.
type servedOnce struct {
	api      discovery.ServerResourcesInterfaceWithContext
	resource string
	seen     atomic.Bool
}

func (s *servedOnce) ask(ctx context.Context) error {
	if s.seen.Load() {
		return nil
	}
	version := webv1.GroupVersion.String()
	there, err := s.api.ServerResourcesForGroupVersionWithContext(ctx, version)
	if err != nil {
		return fmt.Errorf("list what is served of %s: %w", version, err)
	}
	if !slices.ContainsFunc(there.APIResources, func(r metav1.APIResource) bool { return r.Name == s.resource }) {
		return fmt.Errorf("%s is not served in %s: apply this program's CustomResourceDefinition", s.resource, version)
	}
	s.seen.Store(true)
	return nil
}
