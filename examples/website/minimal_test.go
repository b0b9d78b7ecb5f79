// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/kit"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// The work of a Website's life, without faults: it is created and becomes ready, changes
// and becomes ready again, a child is edited, a child is deleted, and it is deleted.
// docs/performance.md has the figures.
func TestWork_OfAWebsitesLifeIsMinimal(t *testing.T) {
	const mostReconciles, mostWrites = 7, 16
	cfg := simulated(t)
	cfg.Faults = kit.Plan{}
	var steps []step
	h := kit.Run(t, cfg, 1, func(w *kit.World) { steps = liveAWebsitesLife(w) })
	for _, v := range h.Violations {
		t.Errorf("%+v", v)
	}
	if len(steps) == 0 {
		t.Fatal("the run has no steps")
	}
	var reconciles, writes int
	for _, step := range steps {
		var began, asked []string
		for _, e := range h.Events {
			switch {
			case e.At < step.began || e.At >= step.ended:
			case e.What == kit.Begun:
				began = append(began, e.String())
			case e.What == kit.Asked && e.Who == "manager-1" && e.Kind != "Event.events.k8s.io" && isWrite[e.Name]:
				asked = append(asked, e.String())
			}
		}
		reconciles, writes = reconciles+len(began), writes+len(asked)
		t.Logf("%s: %d reconciles, %d writes\n%s\n%s", step.name, len(began), len(asked), strings.Join(began, "\n"), strings.Join(asked, "\n"))
	}
	if reconciles > mostReconciles || writes > mostWrites {
		t.Errorf("%d reconciles and %d writes, want at most %d and %d", reconciles, writes, mostReconciles, mostWrites)
	}
}

var isWrite = map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true}

// step of a Website's life, and the time that it took since the start of the run.
type step struct {
	name         string
	began, ended time.Duration
}

func liveAWebsitesLife(w *kit.World) []step {
	var steps []step
	began, last := time.Now(), time.Duration(0)
	ended := func(name string) {
		w.Sleep(10 * time.Second)
		steps = append(steps, step{name, last, time.Since(began)})
		last = time.Since(began)
	}
	w.Run(setup)
	ended("start")

	site := website("site", "one", 1)
	served := func() error {
		w.Get(site)
		return isServed(w, site)
	}
	w.Create(site)
	w.Eventually(served)
	ended("create, children ready")

	w.Edit(site, func() { site.Spec.Content = "two" })
	w.Eventually(served)
	ended("change, ready")

	page := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
	w.Get(page)
	w.Edit(page, func() { page.Data["index.html"] = "another" })
	w.Eventually(served)
	ended("a child edited")

	w.Get(page)
	w.Delete(page)
	w.Eventually(served)
	ended("a child deleted")

	w.Delete(site)
	w.Eventually(func() error {
		if w.Get(&webv1.Website{ObjectMeta: site.ObjectMeta}) {
			return errors.New("the Website is still there")
		}
		return nil
	})
	ended("delete")
	return steps
}
