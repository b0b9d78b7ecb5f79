// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
)

const (
	home        = "shop"
	deployments = 12
	sets        = 3
	daemons     = 2
	jobs        = 8
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// workloads are the objects of the story, and their desired state.
type workloads struct {
	*plane
	image     string
	replicas  int32
	lessEach  int // this many of each kind are deleted
	namespace bool
}

func labelled(name string) map[string]string { return map[string]string{"app": name} }

func (w *workloads) template(name string, restart corev1.RestartPolicy) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelled(name)},
		Spec:       corev1.PodSpec{RestartPolicy: restart, Containers: []corev1.Container{{Name: "main", Image: w.image}}},
	}
}

// create creates all of them.
func (w *workloads) create(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	made := func(_ any, err error) { t.Helper(); g.Expect(err).NotTo(HaveOccurred()) }
	made(w.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: home}}, metav1.CreateOptions{}))
	w.namespace = true
	// A real server admits no Pod before its ServiceAccount exists.
	g.Eventually(func() error {
		_, err := w.api.CoreV1().ServiceAccounts(home).Get(ctx, "default", metav1.GetOptions{})
		return err
	}).WithTimeout(long).Should(Succeed())
	made(w.api.CoreV1().ResourceQuotas(home).Create(ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/deployments.apps": quantity("100"), corev1.ResourcePods: quantity("1000")}},
	}, metav1.CreateOptions{}))
	for i := range deployments {
		name := fmt.Sprintf("web-%d", i)
		selector := &metav1.LabelSelector{MatchLabels: labelled(name)}
		made(w.api.AppsV1().Deployments(home).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DeploymentSpec{Replicas: &w.replicas, Selector: selector, Template: w.template(name, corev1.RestartPolicyAlways)}}, metav1.CreateOptions{}))
		made(w.api.CoreV1().Services(home).Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{Selector: labelled(name), Ports: []corev1.ServicePort{{Port: 80}}}}, metav1.CreateOptions{}))
		half := intstr.FromString("50%")
		made(w.api.PolicyV1().PodDisruptionBudgets(home).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &half, Selector: selector}}, metav1.CreateOptions{}))
	}
	for i := range sets {
		name := fmt.Sprintf("store-%d", i)
		made(w.api.AppsV1().StatefulSets(home).Create(ctx, &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.StatefulSetSpec{Replicas: &w.replicas, ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
				Template: w.template(name, corev1.RestartPolicyAlways)}}, metav1.CreateOptions{}))
	}
	for i := range daemons {
		name := fmt.Sprintf("agent-%d", i)
		made(w.api.AppsV1().DaemonSets(home).Create(ctx, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labelled(name)}, Template: w.template(name, corev1.RestartPolicyAlways)}}, metav1.CreateOptions{}))
	}
	for i := range jobs {
		name, three := fmt.Sprintf("batch-%d", i), int32(3)
		made(w.api.BatchV1().Jobs(home).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{Completions: &three, Parallelism: &three, Template: w.template(name, corev1.RestartPolicyNever)}}, metav1.CreateOptions{}))
	}
}

// each changes every Deployment and StatefulSet.
func (w *workloads) each(t *testing.T, patch string) {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	for i := w.lessEach; i < deployments; i++ {
		g.Expect(retry.OnError(retry.DefaultBackoff, always, func() error {
			_, err := w.api.AppsV1().Deployments(home).Patch(ctx, fmt.Sprintf("web-%d", i), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})).To(Succeed())
	}
	for i := w.lessEach; i < sets; i++ {
		g.Expect(retry.OnError(retry.DefaultBackoff, always, func() error {
			_, err := w.api.AppsV1().StatefulSets(home).Patch(ctx, fmt.Sprintf("store-%d", i), types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})).To(Succeed())
	}
}

func always(error) bool { return true }

func (w *workloads) rollOut(t *testing.T, image string) {
	t.Helper()
	w.image = image
	w.each(t, `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"`+image+`"}]}}}}`)
}

func (w *workloads) scale(t *testing.T, replicas int32) {
	t.Helper()
	w.replicas = replicas
	w.each(t, fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
}

// reached waits until a rollout has reached this many of four parts.
func (w *workloads) reached(t *testing.T, part int) {
	t.Helper()
	NewWithT(t).Eventually(func(ctx context.Context) (int, error) {
		list, err := w.api.AppsV1().Deployments(home).List(ctx, metav1.ListOptions{})
		updated := 0
		for _, d := range list.Items {
			if d.Spec.Template.Spec.Containers[0].Image == w.image && d.Status.ObservedGeneration == d.Generation {
				updated += int(d.Status.UpdatedReplicas)
			}
		}
		return updated, err
	}).WithContext(t.Context()).WithTimeout(long).Should(BeNumerically(">=", part*int(w.replicas)*(deployments-w.lessEach)/4))
}

// deleteSome deletes the first of each kind, in the background.
func (w *workloads) deleteSome(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	w.lessEach = 1
	background := metav1.DeletePropagationBackground
	opts := metav1.DeleteOptions{PropagationPolicy: &background}
	g.Expect(w.api.AppsV1().Deployments(home).Delete(ctx, "web-0", opts)).To(Succeed())
	g.Expect(w.api.AppsV1().StatefulSets(home).Delete(ctx, "store-0", opts)).To(Succeed())
	g.Expect(w.api.AppsV1().DaemonSets(home).Delete(ctx, "agent-0", opts)).To(Succeed())
	g.Expect(w.api.BatchV1().Jobs(home).Delete(ctx, "batch-0", opts)).To(Succeed())
	g.Expect(w.api.CoreV1().Services(home).Delete(ctx, "web-0", opts)).To(Succeed())
	g.Expect(w.api.PolicyV1().PodDisruptionBudgets(home).Delete(ctx, "web-0", opts)).To(Succeed())
}

func (w *workloads) deleteAll(t *testing.T) {
	NewWithT(t).Expect(w.api.CoreV1().Namespaces().Delete(t.Context(), home, metav1.DeleteOptions{})).To(Succeed())
	w.namespace = false
}

// settled returns an error that describes what differs from the desired state.
func (w *workloads) settled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if !w.namespace {
		_, err := w.api.CoreV1().Namespaces().Get(ctx, home, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the namespace is still there: %w", err)
		}
		return nil
	}
	return errors.Join(w.deploymentsSettled(ctx), w.othersSettled(ctx), w.podsSettled(ctx))
}

func (w *workloads) deploymentsSettled(ctx context.Context) error {
	list, err := w.api.AppsV1().Deployments(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) != deployments-w.lessEach {
		return fmt.Errorf("%d Deployments", len(list.Items))
	}
	for _, d := range list.Items {
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.UpdatedReplicas != w.replicas || s.AvailableReplicas != w.replicas || s.Replicas != w.replicas {
			return fmt.Errorf("Deployment %s: %+v, want %d replicas", d.Name, s, w.replicas)
		}
		budget, err := w.api.PolicyV1().PodDisruptionBudgets(home).Get(ctx, d.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if budget.Status.CurrentHealthy != w.replicas || budget.Status.ExpectedPods != w.replicas {
			return fmt.Errorf("PodDisruptionBudget %s: %+v, want %d Pods", d.Name, budget.Status, w.replicas)
		}
		slices, err := w.api.DiscoveryV1().EndpointSlices(home).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + d.Name})
		if err != nil {
			return err
		}
		endpoints := 0
		for _, slice := range slices.Items {
			endpoints += len(slice.Endpoints)
		}
		if endpoints != int(w.replicas) {
			return fmt.Errorf("Service %s: %d endpoints, want %d", d.Name, endpoints, w.replicas)
		}
	}
	return nil
}

func (w *workloads) othersSettled(ctx context.Context) error {
	statefulSets, err := w.api.AppsV1().StatefulSets(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, s := range statefulSets.Items {
		if st := s.Status; st.ObservedGeneration != s.Generation || st.ReadyReplicas != w.replicas || st.Replicas != w.replicas || st.UpdateRevision != st.CurrentRevision {
			return fmt.Errorf("StatefulSet %s: %+v, want %d replicas", s.Name, st, w.replicas)
		}
	}
	daemonSets, err := w.api.AppsV1().DaemonSets(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range daemonSets.Items {
		if d.Status.NumberReady != 3 || d.Status.DesiredNumberScheduled != 3 {
			return fmt.Errorf("DaemonSet %s: %+v, want 3 Pods", d.Name, d.Status)
		}
	}
	done, err := w.api.BatchV1().Jobs(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, j := range done.Items {
		if j.Status.Succeeded != 3 || j.Status.CompletionTime == nil {
			return fmt.Errorf("Job %s: %+v, want 3 Pods that succeed", j.Name, j.Status)
		}
	}
	if len(statefulSets.Items) != sets-w.lessEach || len(daemonSets.Items) != daemons-w.lessEach || len(done.Items) != jobs-w.lessEach {
		return fmt.Errorf("%d StatefulSets, %d DaemonSets, %d Jobs", len(statefulSets.Items), len(daemonSets.Items), len(done.Items))
	}
	return nil
}

// podsSettled returns an error unless exactly the desired Pods exist, each on a node, and
// the quota has counted them.
func (w *workloads) podsSettled(ctx context.Context) error {
	list, err := w.api.CoreV1().Pods(home).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	living := 0
	for _, p := range list.Items {
		if p.Spec.NodeName == "" || p.DeletionTimestamp != nil {
			return fmt.Errorf("Pod %s: on node %q, deleted %v", p.Name, p.Spec.NodeName, p.DeletionTimestamp)
		}
		if p.Status.Phase == corev1.PodRunning {
			living++
		}
	}
	want := (deployments+sets-2*w.lessEach)*int(w.replicas) + 3*(daemons-w.lessEach)
	if ended := 3 * (jobs - w.lessEach); living != want || len(list.Items) != want+ended {
		return fmt.Errorf("%d Pods run and %d have ended, want %d and %d", living, len(list.Items)-living, want, ended)
	}
	quota, err := w.api.CoreV1().ResourceQuotas(home).Get(ctx, "all", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if used := quota.Status.Used[corev1.ResourcePods]; used.Value() != int64(want) {
		return fmt.Errorf("the quota counts %s Pods, want %d", used.String(), want)
	}
	return nil
}
