// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// Screen is what the objects of one scope must match.
type Screen struct {
	Matcher    Matcher
	Selects    bool                    // the scope has selectors
	Kind       schema.GroupVersionKind // empty: the decoder checks the kind
	Namespaced func() (namespaced, known bool)
}

// admission is a Screen with what is now known of the kind.
type admission struct {
	Screen
	divided, known bool // results of Namespaced
}

func (s Screen) now() admission {
	a := admission{Screen: s}
	a.divided, a.known = s.Namespaced()
	return a
}

// mark marks an item that is not of the scope. ended: the item is of a deletion.
func (a admission) mark(i listItem, ended bool) listItem {
	if i.Anomaly != base.Sound || restclient.IsUnreadable(i) {
		return i
	}
	switch {
	case !base.IsNil(i.Object):
		i.Anomaly = a.anomalyOf(i, i.Object, ended)
	case i.Metadata != nil:
		i.Anomaly = a.anomalyOf(i, i.Metadata, ended)
	default:
		i.Anomaly = a.anomalyOf(i, nil, ended)
	}
	return i
}

// anomalyOf classifies the object of an item, which is nil if only its key is known. The state of
// an ended object is not checked: it may have left the scope because of it.
func (a admission) anomalyOf(i listItem, obj kube.Object, ended bool) base.Anomaly {
	if u, ok := obj.(*unstructured.Unstructured); ok && a.Kind.Kind != "" {
		if u.GetKind() != "" && u.GroupVersionKind() != a.Kind {
			return base.OtherKind
		}
	}
	switch ns := i.Key.Namespace; {
	case a.known && a.divided == (ns == ""):
		return base.OtherNamespace
	case a.Matcher.Namespace != "" && ns != "" && ns != a.Matcher.Namespace:
		return base.OtherNamespace
	case a.isForeign(i, obj, ended):
		return base.Foreign
	case ended || obj == nil || !a.Selects:
		return base.Sound
	case a.Matcher.Match(obj) == Outside:
		return base.Unselected
	}
	return base.Sound
}

// isForeign reports whether an item is of a shard that is not held. The state of an ended object
// does not tell the shard in which it was, if that can change.
func (a admission) isForeign(i listItem, obj kube.Object, ended bool) bool {
	return a.Matcher.IsForeign(i.Key, i.UID, obj) && !(ended && a.Matcher.by == shards.Owner)
}
