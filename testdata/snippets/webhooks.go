// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/manager"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

var scheme = runtime.NewScheme()

var website = webv1.GroupVersion.WithKind("Website").GroupKind()

func setup(*manager.Manager) error { return nil }

// oldWebsite is a version of Website that had no replicas.
type oldWebsite struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Spec struct{ Page string }
}

func (w *oldWebsite) DeepCopyObject() runtime.Object {
	out := *w
	return &out
}
