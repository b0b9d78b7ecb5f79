// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	"github.com/flyball-dev/flyball/kube"
)

func site(replicas int32) *webv1.Website {
	return &webv1.Website{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "site", UID: "u", Generation: 3},
		Spec:       webv1.WebsiteSpec{Content: "<p>", Replicas: &replicas},
	}
}

func TestChildren_AreTheSameEachTime(t *testing.T) {
	s := site(2)
	for i, child := range childrenOf(s) {
		if again := childrenOf(s)[i]; !equality.Semantic.DeepEqual(child, again) {
			t.Errorf("%T differs each time: every reconcile would write", child)
		}
	}
}

func TestChildren_ANewPageReplacesPods(t *testing.T) {
	before, after := site(1), site(1)
	after.Spec.Content = "<h1>"
	if equality.Semantic.DeepEqual(deploymentFor(before).Spec.Template, deploymentFor(after).Spec.Template) {
		t.Error("the Pods' template is the same for another page: they would go on with the old one")
	}
}

func TestStatus(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	deployed := func(generation, observed int64, ready, updated int32) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: generation},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: observed, ReadyReplicas: ready, UpdatedReplicas: updated},
		}
	}
	for name, c := range map[string]struct {
		d      *appsv1.Deployment
		reason string
		ready  bool
	}{
		"no Deployment":    {nil, "Deploying", false},
		"not taken up":     {deployed(2, 1, 2, 2), "Deploying", false},
		"too few":          {deployed(1, 1, 1, 2), "ReplicasMissing", false},
		"ready but old":    {deployed(1, 1, 2, 1), "ReplicasMissing", false},
		"served":           {deployed(1, 1, 2, 2), "Serving", true},
		"more than wanted": {deployed(1, 1, 3, 3), "Serving", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := site(2)
			s.Status = statusOf(s, c.d, now)
			got := meta.FindStatusCondition(s.Status.Conditions, conditionReady)
			if got.Reason != c.reason || (got.Status == metav1.ConditionTrue) != c.ready || got.ObservedGeneration != 3 {
				t.Errorf("Ready = %+v, want reason %s, true: %t, for generation 3", got, c.reason, c.ready)
			}
			if again := statusOf(s, c.d, now.Add(time.Hour)); !equality.Semantic.DeepEqual(s.Status, again) {
				t.Errorf("an hour later, with nothing changed, the status is %+v: every reconcile would write", again)
			}
		})
	}
}

func TestWebsite_CopySharesNothing(t *testing.T) {
	s := site(2)
	s.Status.Conditions = []metav1.Condition{{Type: conditionReady}}
	s.Labels = map[string]string{"a": "b"}
	c := kube.Copy(s)
	*c.Spec.Replicas, c.Status.Conditions[0].Type, c.Labels["a"] = 9, "x", "x"
	if *s.Spec.Replicas != 2 || s.Status.Conditions[0].Type != conditionReady || s.Labels["a"] != "b" {
		t.Error("a change of the copy shows in the original")
	}
}

func TestRun_DemoNeedsAnExplicitCluster(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("clusters: [{name: a, cluster: {server: 'https://a'}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file) // as many people have it, for production
	opts := testOptions()
	err := run(t.Context(), opts, false, true, false, "")
	if err == nil || !strings.Contains(err.Error(), "-kubeconfig") {
		t.Errorf("-demo without a named cluster: %v, want an error that asks for one", err)
	}
	opts.Kubeconfig = "somewhere"
	if err := run(t.Context(), opts, true, false, false, ""); err == nil {
		t.Error("-local with -kubeconfig succeeded; they name two clusters")
	}
}

func TestRun_WithoutTheClusterThatIsMeantSaysWhatToTry(t *testing.T) {
	t.Setenv("KUBECONFIG", "/is/not/there")
	err := run(t.Context(), testOptions(), false, false, false, "")
	if err == nil || !strings.Contains(err.Error(), "-local starts a control plane") {
		t.Errorf("run without its kubeconfig: %v, want an error that tells of -local", err)
	}
}

func TestOverseer_EndsWithItsControlPlane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dies := time.Now().Add(time.Minute)
		err := overseer(func() error {
			if time.Now().Before(dies) {
				return nil
			}
			return errors.New("signal: killed")
		}).Run(t.Context())
		if err == nil || time.Now().Before(dies) {
			t.Errorf("ended with %v at %v, want an error when the control plane ends", err, time.Now())
		}
	})
}
