// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package byresource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
)

// syncResult has the fields of cache.GVRSyncResult, which client-go has since 0.38.
type syncResult struct {
	Err    error
	Synced map[schema.GroupVersionResource]bool
}

// result is cache.GVRSyncResult, or syncResult where client-go does not have it.
type result interface {
	~struct {
		Err    error
		Synced map[schema.GroupVersionResource]bool
	}
}

// The method WaitForCacheSyncWithContext of these types is that of client-go's interface, since
// 0.38, or else that of fallback, which is embedded one level deeper. So the compiler finds the
// type of its result in both. They have no values.
type (
	dynamicWait struct {
		dynamicinformer.DynamicSharedInformerFactory
		deeper
	}
	metadataWait struct {
		metadatainformer.SharedInformerFactory
		deeper
	}
	deeper   struct{ fallback }
	fallback struct{}
)

func (fallback) WaitForCacheSyncWithContext(context.Context) (none syncResult) { return none }
