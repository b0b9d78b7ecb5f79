// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/source"
)

// A cause names the object of its event, its versions, and in a few words what happened.
func TestCauseOf(t *testing.T) {
	thing := func(version string, generation int64) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web", ResourceVersion: version, Generation: generation,
			Annotations: map[string]string{kube.TraceContextAnnotation: "t" + version},
		}}
	}
	dying := thing("9", 2)
	dying.DeletionTimestamp = new(metav1.Time)
	*dying.DeletionTimestamp = metav1.Now()
	key := kube.Key{Namespace: "shop", Name: "web"}
	for want, e := range map[string]kube.Event[*metav1.PartialObjectMetadata]{
		"listed Deployment shop/web":                                 {Type: kube.Added, New: thing("7", 1), Initial: true},
		"added Deployment shop/web (own write)":                      {Type: kube.Added, New: thing("7", 1), Own: true},
		"updated Deployment shop/web (generation 1 to 2, own write)": {Type: kube.Updated, Old: thing("7", 1), New: thing("8", 2), Own: true},
		"updated Deployment shop/web":                                {Type: kube.Updated, Old: thing("7", 1), New: thing("8", 1)},
		"updated Deployment shop/web (being deleted)":                {Type: kube.Updated, Old: thing("7", 1), New: dying},
		"resync of Deployment shop/web":                              {Type: kube.Updated, Old: thing("7", 1), New: thing("7", 1), Resync: true},
		"deleted Deployment shop/web":                                {Type: kube.Deleted, Old: thing("7", 1)},
	} {
		e.Key = key
		c := source.CauseOf("kind Deployment", schema.GroupKind{Group: "apps", Kind: "Deployment"}, e)
		if c.String() != want || c.Source != "kind Deployment" || c.Object != key || c.Own != e.Own {
			t.Errorf("%q is %+v, want %q", c, c, want)
		}
		if e.Old != nil && c.OldVersion != 7 || e.New != nil && (c.Version == 0 || c.TraceContext != "t"+c.Version.String()) {
			t.Errorf("%s: the versions are %d and %d, the trace is %q", want, c.OldVersion, c.Version, c.TraceContext)
		}
	}
}
