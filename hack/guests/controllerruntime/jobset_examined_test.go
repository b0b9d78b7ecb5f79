// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

// jobSet is JobSet's program.
var jobSet = managed(jobSetScheme, setUpJobSet)

var jobSetScheme = schemeOf(jobset.AddToScheme)

// setUpJobSet adds JobSet's controllers, as its main function does.
func setUpJobSet(ctx context.Context, mgr ctrl.Manager) error {
	return errors.Join(
		jobsetcontrollers.SetupJobSetIndexes(ctx, mgr.GetFieldIndexer()),
		jobsetcontrollers.SetupPodIndexes(ctx, mgr.GetFieldIndexer()),
		//lint:ignore SA1019 the operator takes it
		jobsetcontrollers.NewJobSetReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("jobset")).SetupWithManager(mgr),
		//lint:ignore SA1019 the operator takes it
		jobsetcontrollers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), mgr.GetEventRecorderFor("pod")).SetupWithManager(mgr),
	)
}

const jobSetModule = "sigs.k8s.io/jobset"

func jobSetCRD(t *testing.T) string {
	t.Helper()
	return moduleFile(t, jobSetModule, "config", "components", "crd", "bases", "jobset.x-k8s.io_jobsets.yaml")
}

// jobSetRules are what JobSet's webhook refuses. The Jobs cannot be changed, so doctor need not try.
var jobSetRules = map[string]string{
	"spec.replicatedJobs.[].template": opaque,
	"spec.replicatedJobs":             "self == oldSelf",
	"spec":                            "has(self.successPolicy) && has(self.network) && has(self.replicatedJobs)",
}

func TestExamine_JobSet(t *testing.T) {
	for sample, known := range map[string][]finding{
		"jobset.yaml": {
			{doctor.OtherEnd, "spec.suspend is true", "right: it was suspended before it began", true},
			{doctor.NotUndone, "endpoints[", "false alarm: the order of a Service's endpoints", true},
		},
		"jobset-failing.yaml": {
			{doctor.LosesState, "Job.batch default/train-load-0 is deleted", "bug: TestReal_JobSetDeletesTheJobsOfItsPresentAttempt", false},
			{doctor.OtherEnd, "Job.batch default/train-load-0 is missing", "the same", false},
		},
		"jobset-ttl.yaml": {{doctor.Restless, "does not come to rest", "bug: TestReal_JobSetRunsASucceededJobAgain", false}},
	} {
		t.Run(sample, func(t *testing.T) {
			examined{
				main: jobSet, crds: []string{ruled(t, jobSetCRD(t), jobSetRules)},
				samples: []string{"testdata/examined/" + sample}, known: known, most: 150,
			}.examine(t)
		})
	}
}

// jobOf returns a Job of the JobSet train; nil: there is none.
func jobOf(s *world, name string) *batchv1.Job {
	s.t.Helper()
	job := &batchv1.Job{}
	if !s.get("train-"+name+"-0", job) {
		return nil
	}
	return job
}

// endJob ends a Job as the Job controller does.
func endJob(s *world, job *batchv1.Job, as batchv1.JobConditionType) {
	s.t.Helper()
	first := map[batchv1.JobConditionType]batchv1.JobConditionType{
		batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget,
	}[as]
	now := metav1.Now()
	job.Status.StartTime = &now
	for _, kind := range []batchv1.JobConditionType{first, as} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: "Ended", LastTransitionTime: now, LastProbeTime: now,
		})
	}
	if as == batchv1.JobComplete {
		job.Status.CompletionTime, job.Status.Succeeded, job.Status.CompletedIndexes = &now, 1, "0"
	} else {
		job.Status.Failed = 1
	}
	must(s.t, s.Status().Update(s.t.Context(), job))
}

// succeeded returns how many Jobs of a kind the JobSet train says have succeeded, and the JobSet.
func succeeded(s *world, kind string) (int32, *jobset.JobSet) {
	s.t.Helper()
	js := &jobset.JobSet{}
	s.get("train", js)
	for _, status := range js.Status.ReplicatedJobsStatus {
		if status.Name == kind {
			return status.Succeeded, js
		}
	}
	return 0, js
}

// A Job of a JobSet that has succeeded, and that Kubernetes has deleted after its ttlSecondsAfterFinished, is created
// and run again, although the JobSet's status has counted its success. With a short time the JobSet never completes.
func TestReal_JobSetRunsASucceededJobAgain(t *testing.T) {
	t.Parallel()
	s := realWorld(t, jobSetScheme, jobSetCRD(t))
	must(t, s.Create(t.Context(), read[jobset.JobSet](t, "jobset-ttl.yaml")))
	s.start(jobSet, nil)
	seen := map[types.UID]bool{}
	for range 3 {
		var job *batchv1.Job
		s.await("another Job train-load-0", func() bool { job = jobOf(s, "load"); return job != nil && !seen[job.UID] })
		seen[job.UID] = true
		endJob(s, job, batchv1.JobComplete)
		s.await("the JobSet counts it", func() bool { n, _ := succeeded(s, "load"); return n == 1 })
		if work := jobOf(s, "work"); len(seen) == 2 {
			endJob(s, work, batchv1.JobComplete)
			// Now each Job has succeeded. The JobSet is complete only because the one of the second run is there.
			s.await("the JobSet is complete", func() bool { _, js := succeeded(s, "work"); return js.Status.TerminalState != "" })
			return
		}
		must(t, s.Delete(t.Context(), job, crclient.Preconditions{UID: &job.UID}, crclient.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
}

// A JobSet deletes the Jobs of an earlier attempt by name. If its process starts again against a server, or with a cache,
// that still shows them, it deletes the running Jobs of the present attempt, which have the same names.
func TestReal_JobSetDeletesTheJobsOfItsPresentAttempt(t *testing.T) {
	t.Parallel()
	s := realWorld(t, jobSetScheme, jobSetCRD(t))
	must(t, s.Create(t.Context(), read[jobset.JobSet](t, "jobset-failing.yaml")))
	first := s.start(jobSet, nil)
	s.await("the Jobs of the first attempt", func() bool { return jobOf(s, "load") != nil && jobOf(s, "work") != nil })
	old := s.recorded("/apis/batch/v1/jobs")
	failed := jobOf(s, "load")
	endJob(s, failed, batchv1.JobFailed)
	for _, kind := range []string{"load", "work"} {
		var job *batchv1.Job
		s.await("the Jobs of the first attempt are deleted", func() bool { job = jobOf(s, kind); return job.DeletionTimestamp != nil })
		job.Finalizers = nil // as the garbage collector, when their Pods are gone
		must(t, s.Update(t.Context(), job))
	}
	var running *batchv1.Job
	s.await("the Jobs of the second attempt", func() bool {
		running = jobOf(s, "work")
		return running != nil && running.Labels["jobset.sigs.k8s.io/restart-attempt"] == "1" && jobOf(s, "load") != nil
	})
	first.end()
	s.start(jobSet, nil, old.lag)
	s.await("the running Job is deleted", func() bool {
		job := jobOf(s, "work")
		return job == nil || job.UID != running.UID || job.DeletionTimestamp != nil
	})
}
