// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
)

// websiteInformers stands in for the generated factory of the Website's group.
type websiteInformers struct{ websites cache.SharedIndexInformer }

func newWebsiteInformers(flyball *informer.SharedInformerFactory) websiteInformers {
	return websiteInformers{websites: clientgo.NewSharedIndexInformer(informer.For[*webv1.Website](flyball), clientgo.Options{})}
}

func (f websiteInformers) Start(<-chan struct{})             {} // the flyball factory is run by its owner
func (f websiteInformers) InformerName() *cache.InformerName { return nil }

func (f websiteInformers) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.websites // with several kinds: a switch by obj's type
}

// The generated accessors of the group take what implements the interface of their package internalinterfaces.
func ExampleNewSharedIndexInformer_generated() {
	var flyball *informer.SharedInformerFactory // a manager's Informers, or your own
	var shared internalinterfaces.SharedInformerFactory = newWebsiteInformers(flyball)
	shared.InformerFor(&webv1.Website{}, nil).GetStore().ListKeys()
}
