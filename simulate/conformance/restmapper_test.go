// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// A manager's RESTMapper maps each kind and resource as client-go's does.
func TestRESTMapper_MapsAsClientGos(t *testing.T) {
	server := simtest.New(t, nil)
	mgr, err := manager.New(manager.Options{Config: server.Config, Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := mgr.RESTMapper(), restmapper.NewDiscoveryRESTMapper(groups)
	compared := 0
	same := func(what string, got, want any, gotErr, wantErr error) {
		t.Helper()
		compared++
		if got != want || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s is %v (%v), client-go says %v (%v)", what, got, gotErr, want, wantErr)
		}
	}
	mapping := func(m *meta.RESTMapping) any {
		if m == nil {
			return nil
		}
		return [3]any{m.Resource, m.GroupVersionKind, m.Scope.Name()}
	}
	for _, group := range groups {
		for version, resources := range group.VersionedResources {
			gv := schema.GroupVersion{Group: group.Group.Name, Version: version}
			for _, r := range resources {
				for _, kind := range []string{r.Kind, r.Kind + "List"} {
					got, gotErr := ours.RESTMapping(gv.WithKind(kind).GroupKind(), version)
					want, wantErr := theirs.RESTMapping(gv.WithKind(kind).GroupKind(), version)
					same(gv.WithKind(kind).String(), mapping(got), mapping(want), gotErr, wantErr)
					got, gotErr = ours.RESTMapping(gv.WithKind(kind).GroupKind())
					want, wantErr = theirs.RESTMapping(gv.WithKind(kind).GroupKind())
					same(kind, mapping(got), mapping(want), gotErr, wantErr)
				}
				for _, resource := range []string{r.Name, r.SingularName} {
					for _, gvr := range []schema.GroupVersionResource{gv.WithResource(resource), {Group: gv.Group, Resource: resource}, {Resource: resource}} {
						got, gotErr := ours.KindFor(gvr)
						want, wantErr := theirs.KindFor(gvr)
						same(gvr.String(), got, want, gotErr, wantErr)
						name, gotErr := ours.ResourceFor(gvr)
						wanted, wantErr := theirs.ResourceFor(gvr)
						same(gvr.String(), name, wanted, gotErr, wantErr)
					}
				}
			}
		}
	}
	if compared < 500 {
		t.Errorf("compared %d answers; the test looks at too little", compared)
	}
}
