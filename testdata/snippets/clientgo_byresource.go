// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata/metadatainformer"
)

type collector struct {
	objects  dynamicinformer.DynamicSharedInformerFactory
	metadata metadatainformer.SharedInformerFactory
}
