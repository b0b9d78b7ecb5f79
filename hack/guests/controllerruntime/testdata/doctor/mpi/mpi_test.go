// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	informers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simulate/doctor"

	"github.com/kubeflow/mpi-operator/cmd/mpi-operator/app/options"
	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	clientset "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned"
	mpischeme "github.com/kubeflow/mpi-operator/pkg/client/clientset/versioned/scheme"
	mpiinformers "github.com/kubeflow/mpi-operator/pkg/client/informers/externalversions"
	controllers "github.com/kubeflow/mpi-operator/pkg/controller"
)

const definitions = "../../manifests/base/kubeflow.org_mpijobs.yaml"

func init() {
	if err := mpischeme.AddToScheme(clientscheme.Scheme); err != nil {
		panic(err)
	}
}

// operator is the program, as its own main makes it, without leader election and ports.
func operator(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = 50, 100
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	jobs, err := clientset.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory, own := informers.NewSharedInformerFactory(kube, 0), mpiinformers.NewSharedInformerFactory(jobs, 0)
	c, err := controllers.NewMPIJobController(
		ctx, kube, jobs, nil, nil, factory.Core().V1().ConfigMaps(), factory.Core().V1().Secrets(), factory.Core().V1().Services(),
		factory.Batch().V1().Jobs(), factory.Core().V1().Pods(), factory.Scheduling().V1().PriorityClasses(),
		own.Kubeflow().V2beta1().MPIJobs(), &options.ServerOption{Threadiness: 2, ControllerRateLimit: 10, ControllerBurst: 100},
	)
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	own.Start(ctx.Done())
	err = c.Run(2, ctx.Done())
	factory.Shutdown()
	own.Shutdown()
	return err
}

const samples = `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: pi, namespace: default}
spec:
  slotsPerWorker: 1
  runPolicy: {cleanPodPolicy: Running, ttlSecondsAfterFinished: 0}
  sshAuthMountPath: /home/mpiuser/.ssh
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template: {spec: {containers: [{name: launcher, image: pi, command: [mpirun]}]}}
    Worker:
      replicas: 2
      template: {spec: {containers: [{name: worker, image: pi, command: [sshd]}]}}
`

func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{Main: operator, CRDs: []string{definitions}, Samples: []string{file(t, samples)}})
}

// The launcher is a Job with the ttlSecondsAfterFinished of the MPIJob. If it is gone before the operator has seen
// its end, for example because the operator did not run, the operator creates another one, and all work is done again.
func TestBug_AFinishedMPIJobRunsAgain(t *testing.T) {
	for name, down := range map[string]bool{"the operator runs": false, "the operator is down": true} {
		t.Run(name, func(t *testing.T) {
			// The bug: it runs again after it was down.
			if again := runsAgain(t, down); again != down {
				t.Errorf("the finished MPIJob runs again: %t", again)
			}
		})
	}
}

func runsAgain(t *testing.T, down bool) bool {
	w := realWorld(t, clientscheme.Scheme, definitions)
	container := func(name string) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "pi"}}}}
	}
	pi := &mpi.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pi"}}
	pi.Spec.RunPolicy.TTLSecondsAfterFinished = new(int32(60))
	pi.Spec.MPIReplicaSpecs = map[mpi.MPIReplicaType]*mpi.ReplicaSpec{
		mpi.MPIReplicaTypeLauncher: {Replicas: new(int32(1)), Template: container("launcher")},
		mpi.MPIReplicaTypeWorker:   {Replicas: new(int32(2)), Template: container("worker")},
	}
	must(t, w.Create(t.Context(), pi))
	launcher := &batchv1.Job{}
	there := func() bool { return w.get("pi-launcher", launcher) }
	finished := func() bool { return w.get("pi", pi) && pi.Status.CompletionTime != nil }
	p := w.start(operator, nil)
	w.await("the launcher is there", there)
	if down {
		p.end()
	}
	first := launcher.UID
	w.complete(launcher)
	if !down {
		w.await("the MPIJob is finished", finished)
		p.end()
	}
	// Kubernetes' controller of TTLs removes the launcher.
	must(t, w.Delete(t.Context(), launcher, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	before := pi.Status.DeepCopy()
	w.start(operator, nil)
	if !down {
		// The operator has handled the MPIJob once it has handled another one.
		next := &mpi.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "next"}, Spec: *pi.Spec.DeepCopy()}
		must(t, w.Create(t.Context(), next))
		other := &batchv1.Job{}
		w.await("the next MPIJob runs", func() bool { return w.get("next-launcher", other) })
		return there() || pi.Status.CompletionTime == nil || !pi.Status.CompletionTime.Equal(before.CompletionTime)
	}
	w.await("there is another launcher", func() bool { return there() && launcher.UID != first })
	return !finished()
}

// complete does with a Job what Kubernetes' controller of Jobs does at its end.
func (w *world) complete(job *batchv1.Job) {
	w.t.Helper()
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now},
	}}
	must(w.t, w.Status().Update(w.t.Context(), job))
}
