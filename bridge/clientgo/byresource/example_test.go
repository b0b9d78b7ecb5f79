// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/flyball-dev/flyball/bridge/clientgo/byresource"
	"github.com/flyball-dev/flyball/informer"
)

func newCollector(flyball *informer.SharedInformerFactory) *collector {
	objects := byresource.NewDynamic(flyball, byresource.Options{}) // a dynamicinformer.DynamicSharedInformerFactory
	metadata := byresource.NewMetadata(flyball, byresource.Options{ // a metadatainformer.SharedInformerFactory
		Namespace:        "prod",
		TweakListOptions: func(opts *metav1.ListOptions) { opts.LabelSelector = "app=web" },
	})
	return &collector{objects: objects, metadata: metadata}
}

// collector stands for a controller that learns its kinds at run time.
type collector struct {
	objects  dynamicinformer.DynamicSharedInformerFactory
	metadata metadatainformer.SharedInformerFactory
}

// Both factories implement client-go's interfaces.
func ExampleNewDynamic() {
	var flyball *informer.SharedInformerFactory // a manager's Informers, or your own
	c := newCollector(flyball)
	widgets := c.objects.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"})
	fmt.Println(widgets.Lister().ByNamespace("prod").Get("left"))
}
