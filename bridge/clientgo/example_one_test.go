// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
)

func watchWebsites(flyball *informer.SharedInformerFactory) (cache.SharedIndexInformer, error) {
	websites := clientgo.NewSharedIndexInformer(informer.For[*webv1.Website](flyball), clientgo.Options{})
	if err := websites.AddIndexers(cache.Indexers{"by-host": byHost}); err != nil {
		return nil, err
	}
	_, err := websites.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: enqueue, DeleteFunc: enqueue})
	return websites, err
}

// byHost is an index function as client-go wants it.
func byHost(obj any) ([]string, error) {
	site, ok := obj.(*webv1.Website)
	if !ok {
		return nil, errors.New("not a Website")
	}
	return []string{site.Spec.Host}, nil
}

func enqueue(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	fmt.Println(key, err)
}

// Every informer of a factory can be a cache.SharedIndexInformer.
func ExampleNewSharedIndexInformer() {
	var flyball *informer.SharedInformerFactory // a manager's Informers, or your own
	websites, err := watchWebsites(flyball)
	if err != nil {
		fmt.Println(err)
		return
	}
	sites, err := websites.GetIndexer().ByIndex("by-host", "example.com")
	fmt.Println(len(sites), err)
}
