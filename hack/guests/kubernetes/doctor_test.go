// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/cronjob"
	"k8s.io/kubernetes/pkg/controller/daemon"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// examined are controllers of Kubernetes, the sample that doctor examines them with, and what it may find.
type examined struct {
	controllers []newController
	known       []known
}

// known is a finding that is no false alarm.
type known struct {
	class doctor.Class
	text  string // an expression that its text matches
	is    string
}

func (k known) matches(f *doctor.Finding) bool {
	old := f.Pattern == doctor.Stale && strings.Contains(f.Plan, "time travel")
	return k.class == f.Class && regexp.MustCompile(k.text).MatchString(f.Text) && (old || k.is != oldList)
}

// oldList is what a process does that starts with an old list. Servers and clients that stream lists have none.
const oldList = "true where lists are not streamed: the process starts with an old list"

var subjects = map[string]examined{
	"deployment": {[]newController{runDeployments, runReplicaSets}, []known{{doctor.TooMany, "of Pod default/web-", oldList}}},
	"statefulset": {[]newController{runStatefulSets}, []known{
		{doctor.LosesState, "Pod default/store-", oldList},
		{doctor.OtherEnd, "data-store-. is missing", "bug: nothing wakes a set that waits until an old claim is gone"},
		{doctor.OtherEnd, "data-store-. is there", "bug: a claim whose Pod was not created is not deleted with the Pods"},
	}},
	"daemonset": {[]newController{runDaemonSets}, []known{
		{doctor.TooMany, "of Pod default/agent-", oldList},
		{doctor.OtherEnd, `Pod default/agent-\* is missing`, "bug: the set waits for a Pod of its predecessor of the same name"},
	}},
	"job": {[]newController{runJobs}, []known{
		{doctor.TooMany, "of Pod default/batch-", oldList},
		{doctor.OtherEnd, `Pod default/batch-\* is there`, oldList},
	}},
	"cronjob": {[]newController{runCronJobs, runJobs}, []known{
		{doctor.TooMany, "of Pod default/report-", oldList},
		{doctor.OtherEnd, "Pod default/report-", oldList},
		{doctor.NotUndone, "Job.batch default/report-15778081 is missing", "right: the time of the schedule is over"},
	}},
}

// Kubernetes' controllers do with a fault what they do without, but for what is known. With -doctor.budget=10m more plans
// are tried.
func TestDoctor_KubernetesControllersAreRight(t *testing.T) {
	klog.SetLogger(logr.Discard())
	t.Cleanup(klog.ClearLogger)
	for sample, of := range subjects {
		t.Run(sample, func(t *testing.T) {
			r := doctor.Examine(t, doctor.Operator{
				Main:      program(of.controllers),
				Samples:   []string{"testdata/" + sample + ".yaml"},
				Cluster:   kit.Config{Actors: simulate.Actors{GarbageCollector: true, Namespaces: true, Pods: true}, Objects: []runtime.Object{node("a"), node("b")}},
				MostPlans: 10,
			})
			for _, f := range r.Findings {
				if i := slices.IndexFunc(of.known, func(k known) bool { return k.matches(f) }); i < 0 {
					t.Errorf("%s [%s] %s\n%s\n%s\nalso %q\n%s", f.Class, f.ID, f.Text, f.Plan, f.Replay, f.Also, strings.Join(f.Story, "\n"))
				} else {
					t.Logf("%s [%s] %s\n%s\n%s\n%s", f.Class, f.ID, f.Text, f.Plan, f.Replay, of.known[i].is)
				}
			}
			t.Logf("%d findings, %d of %d plans in %s, %v; not judged: %q", len(r.Findings), r.Ran, r.Plans, r.Took, r.Patterns, r.Skipped)
		})
	}
}

func node(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// newController returns the function that runs a controller.
type newController func(context.Context, kubernetes.Interface, informers.SharedInformerFactory) (run func(context.Context, int), err error)

// program runs controllers in one process, as kube-controller-manager does.
func program(controllers []newController) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, cfg *rest.Config) error {
		ctx = klog.NewContext(ctx, logr.Discard())
		api, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			return err
		}
		shared := informers.NewSharedInformerFactory(api, 0)
		var runs []func(context.Context, int)
		for _, add := range controllers {
			run, err := add(ctx, api, shared)
			if err != nil {
				return err
			}
			runs = append(runs, run)
		}
		shared.StartWithContext(ctx)
		var work sync.WaitGroup
		for _, run := range runs {
			work.Go(func() { run(ctx, 5) })
		}
		work.Wait()
		shared.Shutdown()
		return nil
	}
}

func runDeployments(ctx context.Context, api kubernetes.Interface, shared informers.SharedInformerFactory) (func(context.Context, int), error) {
	c, err := deployment.NewDeploymentController(ctx, shared.Apps().V1().Deployments(), shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods(), api)
	return c.Run, err
}

func runReplicaSets(ctx context.Context, api kubernetes.Interface, shared informers.SharedInformerFactory) (func(context.Context, int), error) {
	return replicaset.NewReplicaSetController(ctx, shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods(), api, replicaset.BurstReplicas).Run, nil
}

func runStatefulSets(ctx context.Context, api kubernetes.Interface, shared informers.SharedInformerFactory) (func(context.Context, int), error) {
	return statefulset.NewStatefulSetController(ctx, shared.Core().V1().Pods(), shared.Apps().V1().StatefulSets(), shared.Core().V1().PersistentVolumeClaims(),
		shared.Apps().V1().ControllerRevisions(), api).Run, nil
}

func runDaemonSets(ctx context.Context, api kubernetes.Interface, shared informers.SharedInformerFactory) (func(context.Context, int), error) {
	c, err := daemon.NewDaemonSetsController(ctx, shared.Apps().V1().DaemonSets(), shared.Apps().V1().ControllerRevisions(), shared.Core().V1().Pods(), shared.Core().V1().Nodes(), api,
		flowcontrol.NewBackOff(time.Second, 15*time.Minute))
	return c.Run, err
}

func runJobs(ctx context.Context, api kubernetes.Interface, shared informers.SharedInformerFactory) (func(context.Context, int), error) {
	c, err := job.NewController(ctx, api, shared.Core().V1().Pods(), shared.Batch().V1().Jobs(), nil, nil)
	return c.Run, err
}

func runCronJobs(ctx context.Context, api kubernetes.Interface, shared informers.SharedInformerFactory) (func(context.Context, int), error) {
	c, err := cronjob.NewControllerV2(ctx, shared.Batch().V1().Jobs(), shared.Batch().V1().CronJobs(), api)
	return c.Run, err
}

// A set that deletes the claims of Pods that it scales away, and is scaled up before such a claim is gone, waits for that,
// and no event of the claim wakes it.
func TestBug_AStatefulSetStaysTooSmall(t *testing.T) {
	for name, start := range map[string]func(*testing.T) server{"real": startReal, "simulated": startSimulated} {
		t.Run(name, func(t *testing.T) {
			g, ctx, at := NewWithT(t), t.Context(), start(t).Config()
			api := kubernetes.NewForConfigOrDie(at)
			sets, claims, pods := api.AppsV1().StatefulSets("default"), api.CoreV1().PersistentVolumeClaims("default"), api.CoreV1().Pods("default")
			running, stop := context.WithCancel(ctx)
			var work sync.WaitGroup
			work.Go(func() { g.Expect(program([]newController{runStatefulSets})(running, at)).To(Succeed()) })
			work.Go(func() { kubelet(running, api, "default") })
			defer work.Wait()
			defer stop()
			change := func(patch string) {
				t.Helper()
				_, err := sets.Patch(ctx, "store", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				g.Expect(err).NotTo(HaveOccurred())
			}
			seen := func() (ready int32, err error) {
				set, err := sets.Get(ctx, "store", metav1.GetOptions{})
				if set.Status.ObservedGeneration != set.Generation {
					return -1, err
				}
				return set.Status.ReadyReplicas, err
			}

			text, err := os.ReadFile("testdata/statefulset.yaml")
			g.Expect(err).NotTo(HaveOccurred())
			set := &appsv1.StatefulSet{}
			g.Expect(yaml.Unmarshal(text, set)).To(Succeed())
			_, err = sets.Create(ctx, set, metav1.CreateOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Eventually(seen).WithTimeout(long).Should(BeEquivalentTo(3))
			change(`{"spec":{"replicas":2}}`)
			g.Eventually(func() error { _, err := pods.Get(ctx, "store-2", metav1.GetOptions{}); return err }).WithTimeout(long).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
			change(`{"spec":{"replicas":3}}`)
			g.Eventually(seen).WithTimeout(long).Should(BeEquivalentTo(2))
			// The garbage collector is as late as this.
			_, err = claims.Patch(ctx, "data-store-2", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(claims.Delete(ctx, "data-store-2", metav1.DeleteOptions{})).To(Succeed())
			g.Consistently(seen).WithTimeout(20 * time.Second).Should(BeEquivalentTo(2))
			change(`{"metadata":{"annotations":{"wake":"up"}}}`)
			g.Eventually(seen).WithTimeout(long).Should(BeEquivalentTo(3))
		})
	}
}
