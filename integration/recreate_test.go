// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
)

var podsOf = map[string]string{"app": "a"}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: podsOf},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "a"}}, RestartPolicy: corev1.RestartPolicyAlways},
	}
}

func newJob(change func(*batchv1.JobSpec)) kube.Object {
	job := &batchv1.Job{Spec: batchv1.JobSpec{Template: template()}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	change(&job.Spec)
	return job
}

func newStatefulSet(change func(*appsv1.StatefulSetSpec)) kube.Object {
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: podsOf}, ServiceName: "a", Template: template(),
	}}
	change(&set.Spec)
	return set
}

func newDeployment(change func(*appsv1.DeploymentSpec)) kube.Object {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: podsOf}, Template: template()}}
	change(&d.Spec)
	return d
}

func newClaim(change func(*corev1.PersistentVolumeClaimSpec)) kube.Object {
	claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new("fixed"), Resources: gibibytes(2),
	}}
	change(&claim.Spec)
	return claim
}

func gibibytes(n int64) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": *resource.NewQuantity(n<<30, resource.BinarySI)}}
}

func newService(change func(*corev1.ServiceSpec)) kube.Object {
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	change(&service.Spec)
	return service
}

func asIs[S any](*S) {}

// outcome of an apply that changes a child.
type outcome string

const (
	updated   outcome = "updated"
	recreated outcome = "recreated"
	refused   outcome = "refused" // and nothing is deleted
	lost      outcome = "lost"    // the dry run does not show that it cannot be created
)

type childChange struct {
	what          string
	before, after kube.Object
	outcome       outcome
}

// childChanges returns those of docs/recreate.md.
func childChanges() []childChange {
	return []childChange{
		{"Job, template", newJob(asIs), newJob(func(s *batchv1.JobSpec) { s.Template.Spec.Containers[0].Image = "b" }), recreated},
		{"Job, completions", newJob(asIs), newJob(func(s *batchv1.JobSpec) { s.Completions = new(int32(2)) }), recreated},
		{"Job, completion mode", newJob(asIs), newJob(func(s *batchv1.JobSpec) {
			s.Completions, s.CompletionMode = new(int32(1)), new(batchv1.IndexedCompletion)
		}), recreated},
		{"Job, completions and parallelism, indexed", newJob(func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism, s.CompletionMode = new(int32(1)), new(int32(1)), new(batchv1.IndexedCompletion)
		}), newJob(func(s *batchv1.JobSpec) {
			s.Completions, s.Parallelism, s.CompletionMode = new(int32(2)), new(int32(2)), new(batchv1.IndexedCompletion)
		}), updated},
		{"Job, parallelism", newJob(asIs), newJob(func(s *batchv1.JobSpec) { s.Parallelism = new(int32(2)) }), updated},
		{"Job, deadline", newJob(asIs), newJob(func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(int64(9)) }), updated},
		{"Job, backoff limit", newJob(asIs), newJob(func(s *batchv1.JobSpec) { s.BackoffLimit = new(int32(9)) }), updated},
		{"Job, suspended", newJob(asIs), newJob(func(s *batchv1.JobSpec) { s.Suspend = new(true) }), updated},

		{"StatefulSet, service", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) { s.ServiceName = "b" }), recreated},
		{"StatefulSet, claim templates", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) {
			claim := newClaim(asIs).(*corev1.PersistentVolumeClaim)
			claim.Name = "data"
			s.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claim}
		}), recreated},
		{"StatefulSet, pod management", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) { s.PodManagementPolicy = appsv1.ParallelPodManagement }), recreated},
		{"StatefulSet, selector", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}
			s.Template.Labels = s.Selector.MatchLabels
		}), recreated},
		{"StatefulSet, replicas", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) { s.Replicas, s.MinReadySeconds = new(int32(3)), 5 }), updated},
		{"StatefulSet, history", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) { s.RevisionHistoryLimit = new(int32(3)) }), updated},
		{"StatefulSet, template", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) { s.Template.Spec.Containers[0].Image = "b" }), updated},
		// The server has set rollingUpdate, which the new strategy must not have.
		{"StatefulSet, strategy, beside a default", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) {
			s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}), recreated},
		{"StatefulSet, strategy, all of it named", newStatefulSet(func(s *appsv1.StatefulSetSpec) {
			s.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0)), MaxUnavailable: new(intstr.FromInt32(1))},
			}
		}), newStatefulSet(func(s *appsv1.StatefulSetSpec) {
			s.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
		}), updated},
		{"Deployment, strategy, beside a default", newDeployment(asIs), newDeployment(func(s *appsv1.DeploymentSpec) {
			s.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}), recreated},
		{"Deployment, strategy, all of it named", newDeployment(func(s *appsv1.DeploymentSpec) {
			s.Strategy = appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intstr.FromInt32(1)), MaxSurge: new(intstr.FromInt32(1))},
			}
		}), newDeployment(func(s *appsv1.DeploymentSpec) {
			s.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}), updated},
		{"StatefulSet, ordinals", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) { s.Ordinals = &appsv1.StatefulSetOrdinals{Start: 1} }), updated},
		{"StatefulSet, retention of claims", newStatefulSet(asIs), newStatefulSet(func(s *appsv1.StatefulSetSpec) {
			s.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
			}
		}), updated},
		{"Deployment, selector", newDeployment(asIs), newDeployment(func(s *appsv1.DeploymentSpec) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "b"}}
			s.Template.Labels = s.Selector.MatchLabels
		}), recreated},

		{"PersistentVolumeClaim, class", newClaim(asIs), newClaim(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = new("grows") }), recreated},
		{"PersistentVolumeClaim, access", newClaim(asIs), newClaim(func(s *corev1.PersistentVolumeClaimSpec) {
			s.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		}), recreated},
		{"PersistentVolumeClaim, smaller", newClaim(asIs), newClaim(func(s *corev1.PersistentVolumeClaimSpec) { s.Resources = gibibytes(1) }), recreated},
		{"PersistentVolumeClaim, larger, of a class that does not grow", newClaim(asIs), newClaim(func(s *corev1.PersistentVolumeClaimSpec) { s.Resources = gibibytes(3) }), refused},
		{"PersistentVolumeClaim, larger", newClaim(func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = new("grows") }),
			newClaim(func(s *corev1.PersistentVolumeClaimSpec) {
				s.StorageClassName, s.Resources = new("grows"), gibibytes(3)
			}), updated},

		{"Service, address", newService(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.77" }), newService(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.78" }), recreated},
		{"Service, headless", newService(asIs), newService(func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone }), recreated},
		{"Service, address taken back", newService(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.79" }), newService(asIs), updated},
		{"Service, an address that another one has", newService(asIs), newService(func(s *corev1.ServiceSpec) { s.ClusterIP = "10.0.0.1" }), lost},
		{"Service, address, with its node port named", newService(func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30777
		}), newService(func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort, s.ClusterIP = corev1.ServiceTypeNodePort, 30777, "10.0.0.80"
		}), refused},
		{"Service, type and ports", newService(asIs), newService(func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].Port, s.SessionAffinity = corev1.ServiceTypeNodePort, 81, corev1.ServiceAffinityClientIP
		}), updated},

		{"Secret, immutable", &corev1.Secret{Immutable: new(true), Data: map[string][]byte{"a": {1}}}, &corev1.Secret{Immutable: new(true), Data: map[string][]byte{"a": {2}}}, recreated},
		{"RoleBinding, role", &rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "a"}},
			&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "b"}}, recreated},
	}
}

// asUnstructured returns obj as a program without Go types writes it.
func asUnstructured(obj kube.Object) kube.Object {
	GinkgoHelper()
	kinds, _, err := clientscheme.Scheme.ObjectKinds(obj)
	Expect(err).NotTo(HaveOccurred())
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	Expect(err).NotTo(HaveOccurred())
	delete(tree, "status")
	unstructured.RemoveNestedField(tree, "spec", "template", "metadata", "creationTimestamp")
	out := &unstructured.Unstructured{Object: tree}
	out.SetGroupVersionKind(kinds[0])
	return out
}

// collect does what the controllers of a cluster do with an object that is being deleted: it
// orphans Pods, and lets go of a claim that no Pod uses.
func collect(ctx context.Context, child kube.Object) {
	GinkgoHelper()
	for pod, err := range client.List[*corev1.Pod](ctx, outside, client.InNamespace(child.GetNamespace())) {
		Expect(err).NotTo(HaveOccurred())
		if slices.Contains(child.GetFinalizers(), metav1.FinalizerOrphanDependents) && metav1.IsControlledBy(pod, child) {
			pod.OwnerReferences = nil
			Expect(outside.Update(ctx, pod)).To(Succeed())
		}
	}
	Expect(outside.SetFinalizers(ctx, child, nil)).To(Succeed())
}

var _ = Describe("Recreate, by kind", func() {
	It("deletes and creates what cannot be updated, updates what can be, and deletes nothing else (R25)", func(ctx context.Context) {
		ns := newNamespace(ctx)
		for name, grows := range map[string]bool{"fixed": false, "grows": true} {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.com/none", AllowVolumeExpansion: &grows}
			Expect(outside.Create(ctx, class)).To(Succeed())
			DeferCleanup(func(ctx context.Context) { Expect(outside.Delete(ctx, class)).To(Succeed()) })
		}
		p := newProcess(env.Config(), ns)
		all, background := p.Informers(), metav1.DeletePropagationBackground
		set := reconcile.NewChildSet(p.Client(), scheme, []reconcile.ChildKind{
			reconcile.Recreate(reconcile.Children(informer.For[*batchv1.Job](all)), background),
			reconcile.Recreate(reconcile.Children(informer.For[*appsv1.StatefulSet](all)), metav1.DeletePropagationOrphan),
			reconcile.Recreate(reconcile.Children(informer.For[*appsv1.Deployment](all)), background),
			reconcile.Recreate(reconcile.Children(informer.For[*corev1.PersistentVolumeClaim](all)), background),
			reconcile.Recreate(reconcile.Children(informer.For[*corev1.Service](all)), background),
			reconcile.Recreate(reconcile.Children(informer.For[*corev1.Secret](all)), background),
			reconcile.Recreate(reconcile.Children(informer.For[*rbacv1.RoleBinding](all)), background),
		}, reconcile.ChildSetOptions{FieldOwner: "spec"})
		p.start()
		logged := logr.NewContext(ctx, p.logger())
		Expect(all.WaitForSync(ctx)).Error().NotTo(HaveOccurred())

		for i, row := range childChanges() {
			for j, form := range []func(kube.Object) kube.Object{
				func(obj kube.Object) kube.Object { return obj.DeepCopyObject().(kube.Object) }, asUnstructured,
			} {
				what := fmt.Sprintf("%s (form %d)", row.what, j)
				parent := configMap(ns, fmt.Sprintf("parent-%d-%d", i, j), nil)
				Expect(outside.Create(ctx, parent)).To(Succeed())
				child := func(obj kube.Object) kube.Object {
					obj = form(obj)
					obj.SetNamespace(ns)
					obj.SetName(fmt.Sprintf("c-%d-%d", i, j))
					return obj
				}
				is := row.before.DeepCopyObject().(kube.Object)
				key := kube.KeyOf(child(row.before))
				report, err := set.Apply(ctx, parent, child(row.before))
				Expect(err).NotTo(HaveOccurred(), what)
				Expect(report.Created).To(HaveLen(1), what)
				Expect(outside.Get(ctx, key, is)).To(Succeed())
				before := is.GetUID()
				pod := dependent(ctx, is)

				Eventually(func() bool {
					report, err = set.Apply(logged, parent, child(row.after))
					return apierrors.IsConflict(err) // the cache has not seen the status yet
				}).Should(BeFalse(), what)
				if row.outcome == lost {
					Expect(err).To(MatchError(ContainSubstring("it was deleted, and is created by the next Apply: ")), what)
					Expect(apierrors.IsNotFound(outside.Get(ctx, key, is))).To(BeTrue(), what)
					Expect(p.log("Deleted a child to create it anew", string(before))).To(HaveLen(1), what)
					continue
				}
				waits := false
				if row.outcome == recreated {
					if waits = err != nil; waits {
						Expect(err).To(MatchError(reconcile.ErrChildTerminating), what)
						Expect(outside.Get(ctx, key, is)).To(Succeed())
						collect(ctx, is)
						Eventually(func() error { report, err = set.Apply(ctx, parent, child(row.after)); return err }).Should(Succeed(), what)
						Expect(report.Created).To(HaveLen(1), what)
					} else {
						Expect(report.Recreated).To(HaveLen(1), what)
					}
				}
				switch row.outcome {
				case updated:
					Expect(err).NotTo(HaveOccurred(), what)
					Expect(report.Updated).To(HaveLen(1), what)
				case refused:
					Expect(err).To(HaveOccurred(), what)
				}
				Expect(outside.Get(ctx, key, is)).To(Succeed(), what)
				Expect(is.GetUID() != before).To(Equal(row.outcome == recreated), what)
				Expect(is.GetDeletionTimestamp()).To(BeNil(), what)
				if pod != nil {
					Expect(outside.Get(ctx, kube.KeyOf(pod), pod)).To(Succeed(), what)
					Expect(metav1.IsControlledBy(pod, is)).To(Equal(row.outcome != recreated), what)
				}
				_, stateful := is.(*appsv1.StatefulSet)
				_, claim := is.(*corev1.PersistentVolumeClaim)
				if row.outcome == recreated {
					Expect(waits).To(Equal(stateful || claim), what)
				}
				Expect(outside.Delete(ctx, is, client.Propagation("Background"))).To(Succeed()) // its address is the next one's
				if claim {
					Expect(outside.Get(ctx, key, is)).To(Succeed())
					collect(ctx, is)
				}
			}
		}
		p.stop()
	})
})

// dependent gives what a cluster gives to a child: a Pod to a workload, a volume to a claim.
func dependent(ctx context.Context, child kube.Object) *corev1.Pod {
	GinkgoHelper()
	if claim, is := child.(*corev1.PersistentVolumeClaim); is {
		claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
		Expect(outside.Status().Update(ctx, claim)).To(Succeed())
		return nil
	}
	kind, err := outside.KindOf(child)
	Expect(err).NotTo(HaveOccurred())
	if kind.Group != "apps" && kind.Group != "batch" {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: template().ObjectMeta, Spec: template().Spec}
	pod.Namespace, pod.Name = child.GetNamespace(), child.GetName()
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(child, kind)}
	Expect(outside.Create(ctx, pod)).To(Succeed())
	return pod
}
