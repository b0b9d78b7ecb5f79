// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
)

// A Website supports what kubectl scale and a horizontal autoscaler write and read.
func TestScale_AWebsiteIsScaledLikeADeployment(t *testing.T) {
	inBubble(t, func(t *testing.T, opts manager.Options) {
		mgr, err := manager.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := setup(mgr); err != nil {
			t.Fatal(err)
		}
		defer running(t, mgr)()
		admin, err := client.New(opts.Config, opts.Scheme, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		site := website("site", "<p>", 1)
		site.Namespace = "quiet"
		if err := admin.Create(t.Context(), site); err != nil {
			t.Fatal(err)
		}
		if err := admin.SetScale(t.Context(), site, 4); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		var d appsv1.Deployment
		if err := admin.Get(t.Context(), kube.KeyOf(site), &d); err != nil || *d.Spec.Replicas != 4 {
			t.Errorf("%v, the Deployment is %+v, want 4 replicas", err, d.Spec)
		}
		scale, err := admin.Scale(t.Context(), site)
		if err != nil {
			t.Fatal(err)
		}
		selector, err := labels.Parse(scale.Status.Selector)
		if err != nil || scale.Spec.Replicas != 4 || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%v, the scale is %+v, want 4 replicas and a selector of the Deployment's Pods", err, scale)
		}
	})
}
