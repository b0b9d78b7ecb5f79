// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/actors"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

var (
	working     = simulate.Actors{Workloads: true, GarbageCollector: true}
	replicaSets = schema.GroupResource{Group: "apps", Resource: "replicasets"}
	pods        = schema.GroupResource{Resource: "pods"}
)

const (
	deploymentsPath = "/apis/apps/v1/namespaces/ns/deployments"
	podsPath        = "/api/v1/namespaces/ns/pods"
)

// template is a Pod template's JSON, with an image and annotations.
func template(image, annotations string) string {
	return fmt.Sprintf(`{"metadata":{"labels":{"app":"a"},"annotations":{%s}},"spec":{"containers":[{"name":"c","image":%q}]}}`, annotations, image)
}

// deploy makes or changes the Deployment "d".
func (p *play) deploy(image string, replicas int, more string) {
	p.t.Helper()
	p.must("PATCH "+deploymentsPath+"/d?fieldManager=test&force=true apply", fmt.Sprintf(
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"a"}},"template":%s%s}}`,
		replicas, template(image, ""), more))
}

// numbers is the counters of a Deployment's status: replicas, updated, ready,
// available.
func (p *play) numbers() string {
	p.t.Helper()
	status, _ := p.at(deploymentsPath+"/d", "status").(map[string]any)
	return fmt.Sprint(status["replicas"], status["updatedReplicas"], status["readyReplicas"], status["availableReplicas"])
}

// conditions is the conditions of an object: "Available=True(MinimumReplicasAvailable)".
func (p *play) conditions(path string) string {
	p.t.Helper()
	list, _ := p.at(path, "status", "conditions").([]any)
	var out []string
	for _, each := range list {
		c, _ := each.(map[string]any)
		text := fmt.Sprintf("%v=%v", c["type"], c["status"])
		if reason, _ := c["reason"].(string); reason != "" {
			text += "(" + reason + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// eachRevision lets d pass, and looks whenever a millisecond has changed something.
func eachRevision(p *play, d time.Duration, look func()) {
	p.t.Helper()
	seen := int64(0)
	for range d / time.Millisecond {
		fixture.Pass(time.Millisecond)
		if now := p.Revision(); now != seen {
			seen = now
			look()
		}
	}
}

func (p *play) images() string {
	p.t.Helper()
	count := map[string]int{}
	for _, pod := range p.pods() {
		count[pod.Spec.Containers[0].Image]++
	}
	return fmt.Sprint(count)
}

func (p *play) pods() (out []corev1.Pod) {
	p.t.Helper()
	for _, obj := range p.Objects(pods) {
		out = append(out, typed[corev1.Pod](p.t, obj))
	}
	return out
}

// A program may itself be the controller of workloads. Its Pods become ready.
func TestPods_RunWithoutControllers_S21(t *testing.T) {
	acting(t, simulate.Options{}, simulate.Actors{Pods: true}, func(p *play) {
		p.deploy("one", 3, "")
		p.must("POST "+podsPath, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"one"}]}}`)
		fixture.Pass(5 * time.Second)
		if all := p.pods(); len(all) != 1 || all[0].Status.Phase != corev1.PodRunning || len(p.Objects(replicaSets)) > 0 {
			t.Errorf("got %d pods and %d replica sets, want one pod that runs", len(all), len(p.Objects(replicaSets)))
		}
	})
}

func TestDeployments_BecomeAvailable_S21(t *testing.T) {
	acting(t, simulate.Options{}, working, func(p *play) {
		p.deploy("one", 3, "")
		fixture.Pass(5 * time.Second)
		if got := p.numbers(); got != "3 3 3 3" {
			t.Errorf("got replicas, updated, ready, available %s, want 3 each", got)
		}
		if got, want := p.conditions(deploymentsPath+"/d"), "Available=True(MinimumReplicasAvailable) Progressing=True(NewReplicaSetAvailable)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := p.at(deploymentsPath+"/d", "metadata", "annotations", "deployment.kubernetes.io/revision"); got != "1" {
			t.Errorf("got revision %v, want 1", got)
		}
		if got, want := p.at(deploymentsPath+"/d", "status", "observedGeneration"), p.at(deploymentsPath+"/d", "metadata", "generation"); got != want {
			t.Errorf("got observed generation %v, want %v", got, want)
		}
		addresses := map[string]bool{}
		for _, pod := range p.pods() {
			addresses[pod.Status.PodIP] = true
			if pod.Spec.NodeName == "" || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
				t.Errorf("got pod %s on %q %s at %q, want it to run", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.PodIP)
			}
		}
		if len(addresses) != 3 {
			t.Errorf("got addresses %v, want each pod to have its own", addresses)
		}
		for _, set := range p.Objects(replicaSets) {
			if set.GetManagedFields()[0].Manager != "kube-controller-manager" {
				t.Errorf("got managers %v of a replica set, want kube-controller-manager", set.GetManagedFields())
			}
		}
		before := p.Revision()
		fixture.Pass(time.Hour)
		if after := p.Revision(); after != before {
			t.Errorf("got %d writes in an hour in which nothing happened, want none", after-before)
		}
		code, answer := p.ask("PATCH "+deploymentsPath+"/d?fieldManager=test apply", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":4,"selector":{"matchLabels":{"app":"a"}},"template":`+template("one", "")+`}}`)
		if code != 200 {
			t.Errorf("apply again: got %d %v, want that actors own nothing of it", code, answer["message"])
		}
		fixture.Pass(5 * time.Second)
		if got := p.numbers(); got != "4 4 4 4" {
			t.Errorf("scaled: got %s, want 4 each", got)
		}
		p.must("DELETE "+deploymentsPath+"/d", "")
		fixture.Pass(time.Minute)
		p.has(replicaSets, "", "they go with the deployment")
		p.has(pods, "", "they go with the replica sets")
	})
}

func TestDeployments_RollWithinTheirBounds_S21(t *testing.T) {
	acting(t, simulate.Options{Seed: 7}, working, func(p *play) {
		p.deploy("one", 4, `,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}`)
		fixture.Pass(5 * time.Second)
		p.deploy("two", 4, `,"strategy":{"rollingUpdate":{"maxSurge":1,"maxUnavailable":1}}`)
		eachRevision(p, 3*time.Second, func() {
			ready, living := 0, 0
			for _, pod := range p.pods() {
				if pod.DeletionTimestamp != nil {
					continue
				}
				living++
				for _, c := range pod.Status.Conditions {
					if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
						ready++
					}
				}
			}
			if living > 5 || ready < 3 {
				t.Fatalf("got %d pods, %d of them ready; want at most 5, and 3 ready", living, ready)
			}
		})
		if got := p.images(); got != "map[two:4]" {
			t.Errorf("got images %s, want all new", got)
		}
		if got := p.numbers(); got != "4 4 4 4" {
			t.Errorf("got %s, want 4 each", got)
		}
		if got := len(p.Objects(replicaSets)); got != 2 {
			t.Errorf("got %d replica sets, want the old one to go back to", got)
		}
		p.deploy("one", 4, "") // as a rollback does
		fixture.Pass(5 * time.Second)
		if got := p.images(); got != "map[one:4]" {
			t.Errorf("rolled back: got images %s, want the first", got)
		}
		if got := p.at(deploymentsPath+"/d", "metadata", "annotations", "deployment.kubernetes.io/revision"); got != "3" || len(p.Objects(replicaSets)) != 2 {
			t.Errorf("rolled back: got revision %v of %d replica sets, want 3 of the same two", got, len(p.Objects(replicaSets)))
		}
	})
}

func TestDeployments_RecreateEndsTheOldFirst_S21(t *testing.T) {
	acting(t, simulate.Options{}, working, func(p *play) {
		p.deploy("one", 2, `,"strategy":{"type":"Recreate"}`)
		fixture.Pass(5 * time.Second)
		p.deploy("two", 2, `,"strategy":{"type":"Recreate"}`)
		eachRevision(p, 3*time.Second, func() {
			if got := p.images(); strings.Contains(got, "one") && strings.Contains(got, "two") {
				t.Fatalf("got %s at one time, want the old to end first", got)
			}
		})
		if got := p.images(); got != "map[two:2]" {
			t.Errorf("got images %s, want all new", got)
		}
	})
}

func TestDeployments_SayThatTheyDoNotProgress_S21(t *testing.T) {
	for stage, reason := range map[string]string{
		actors.StageImagePullBackOff: "ImagePullBackOff", actors.StageCrashLoop: "CrashLoopBackOff", actors.StageNotReady: "",
	} {
		acting(t, simulate.Options{}, working, func(p *play) {
			p.must("POST "+deploymentsPath, `{"metadata":{"name":"d"},"spec":{"progressDeadlineSeconds":60,"selector":{"matchLabels":{"app":"a"}},"template":`+
				template("one", fmt.Sprintf("%q:%q", actors.StageAnnotation, stage))+`}}`)
			fixture.Pass(5 * time.Minute)
			if got, want := p.conditions(deploymentsPath+"/d"), "Available=False(MinimumReplicasUnavailable) Progressing=False(ProgressDeadlineExceeded)"; got != want {
				t.Errorf("%s: got %s, want %s", stage, got, want)
			}
			for _, pod := range p.pods() {
				is := pod.Status.ContainerStatuses[0]
				if is.Ready || reason != "" && (is.State.Waiting == nil || is.State.Waiting.Reason != reason) {
					t.Errorf("%s: got state %v ready %v, want %s", stage, is.State, is.Ready, reason)
				}
				if again := is.RestartCount; stage == actors.StageCrashLoop && (again < 3 || again > 8) {
					t.Errorf("got %d restarts in five minutes, want some, ever more rarely", again)
				}
			}
		})
	}
}

const jobsPath = "/apis/batch/v1/namespaces/ns/jobs"

// job makes the Job "j".
func (p *play) job(spec, annotations string) {
	p.t.Helper()
	p.must("POST "+jobsPath, fmt.Sprintf(
		`{"metadata":{"name":"j"},"spec":{%s"template":{"metadata":{"annotations":{%s}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`, spec, annotations))
}

func TestJobs_RunToTheirEnd_S21(t *testing.T) {
	acting(t, simulate.Options{}, working, func(p *play) {
		p.job(`"completions":3,"parallelism":2,"ttlSecondsAfterFinished":60,`, "")
		fixture.Pass(10 * time.Second)
		status, _ := p.at(jobsPath+"/j", "status").(map[string]any)
		if got, want := fmt.Sprint(status["succeeded"], status["active"], status["failed"]), "3 <nil> <nil>"; got != want {
			t.Errorf("got succeeded, active, failed %s, want %s", got, want)
		}
		if got, want := p.conditions(jobsPath+"/j"), "SuccessCriteriaMet=True(CompletionsReached) Complete=True(CompletionsReached)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, pod := range p.pods() {
			if pod.Status.Phase != corev1.PodSucceeded || len(pod.Finalizers) > 0 {
				t.Errorf("got pod %s %s with finalizers %v, want it ended and counted", pod.Name, pod.Status.Phase, pod.Finalizers)
			}
		}
		fixture.Pass(2 * time.Minute)
		p.has(pods, "", "a minute after its end the job goes, and its pods with it")
	})
}

func TestJobs_LetTheirPodsGoWhenTheyAreSuspended_S21(t *testing.T) {
	acting(t, simulate.Options{}, working, func(p *play) {
		p.job("", fmt.Sprintf("%q:%q", actors.StageAnnotation, actors.StageRunning))
		fixture.Pass(5 * time.Second)
		if got := p.pods(); len(got) != 1 {
			t.Fatalf("got %d pods, want one", len(got))
		}
		p.must("PATCH "+jobsPath+"/j merge", `{"spec":{"suspend":true}}`)
		fixture.Pass(2 * time.Minute)
		if got := p.pods(); len(got) != 0 {
			t.Errorf("got the pod %s %s with the finalizers %v, want none: the job is suspended", got[0].Name, got[0].Status.Phase, got[0].Finalizers)
		}
		p.must("PATCH "+jobsPath+"/j merge", `{"spec":{"suspend":false}}`)
		fixture.Pass(5 * time.Second)
		if got := p.pods(); len(got) != 1 {
			t.Errorf("got %d pods, want one: the job goes on", len(got))
		}
	})
}

func TestJobs_FailAfterTheirLastTry_S21(t *testing.T) {
	acting(t, simulate.Options{}, working, func(p *play) {
		p.job(`"backoffLimit":2,`, fmt.Sprintf("%q:%q", actors.StageAnnotation, actors.StageFailed))
		fixture.Pass(15 * time.Second)
		if got := p.at(jobsPath+"/j", "status", "failed"); got != 2.0 {
			t.Errorf("got %v failed, want 2: the second is made after ten seconds", got)
		}
		fixture.Pass(time.Minute)
		if got := p.at(jobsPath+"/j", "status", "failed"); got != 3.0 {
			t.Errorf("got %v failed, want 3", got)
		}
		if got, want := p.conditions(jobsPath+"/j"), "FailureTarget=True(BackoffLimitExceeded) Failed=True(BackoffLimitExceeded)"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		p.must("DELETE "+jobsPath+"/j?propagationPolicy=Background", "")
		fixture.Pass(time.Minute)
		p.has(pods, "", "they go with the job")
	})
}

func TestServices_KnowWhereTheirPodsAre_S21(t *testing.T) {
	slicesOf := schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	acting(t, simulate.Options{}, working, func(p *play) {
		p.must("POST /api/v1/namespaces/ns/services", `{"metadata":{"name":"s"},"spec":{"selector":{"app":"a"},"ports":[{"port":80,"targetPort":8080}]}}`)
		p.deploy("one", 2, "")
		fixture.Pass(5 * time.Second)
		list := p.Objects(slicesOf)
		if len(list) != 1 {
			t.Fatalf("got %d slices, want one", len(list))
		}
		slice := typed[discoveryv1.EndpointSlice](t, list[0])
		if len(slice.Endpoints) != 2 || !*slice.Endpoints[0].Conditions.Ready || *slice.Ports[0].Port != 8080 {
			t.Errorf("got endpoints %v at ports %v, want both pods ready at 8080", slice.Endpoints, slice.Ports)
		}
		p.must("DELETE "+deploymentsPath+"/d", "")
		fixture.Pass(5 * time.Second)
		if slice := typed[discoveryv1.EndpointSlice](t, p.Objects(slicesOf)[0]); len(slice.Endpoints) != 0 {
			t.Errorf("got endpoints %v, want none", slice.Endpoints)
		}
		p.must("DELETE /api/v1/namespaces/ns/services/s", "")
		fixture.Pass(time.Second)
		p.has(slicesOf, "", "slices go with their service")
	})
}

func TestStatefulSets_MakeTheirPodsInOrder_S21(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/ns/statefulsets"
	acting(t, simulate.Options{}, working, func(p *play) {
		p.must("POST "+path, `{"metadata":{"name":"s"},"spec":{"replicas":3,"serviceName":"s","selector":{"matchLabels":{"app":"a"}},"template":`+template("one", "")+
			`,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`)
		ordered := func() {
			t.Helper()
			list := p.pods()
			for i, pod := range list {
				ready := false
				for _, c := range pod.Status.Conditions {
					ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
				}
				if i < len(list)-1 && !ready && pod.DeletionTimestamp == nil && pod.Spec.Containers[0].Image == "one" {
					t.Fatalf("pod %s is there before %s is ready", list[i+1].Name, pod.Name)
				}
			}
		}
		eachRevision(p, 2*time.Second, ordered)
		p.has(pods, "s-0 s-1 s-2", "pods are named by their numbers")
		p.has(schema.GroupResource{Resource: "persistentvolumeclaims"}, "data-s-0 data-s-1 data-s-2", "each pod has a claim of its own")
		p.must("PATCH "+path+"/s strategic", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`)
		fixture.Pass(10 * time.Second)
		status, _ := p.at(path+"/s", "status").(map[string]any)
		if got := p.images(); got != "map[two:3]" || status["currentRevision"] != status["updateRevision"] || status["updatedReplicas"] != 3.0 || status["availableReplicas"] != 3.0 {
			t.Errorf("got images %s and status %v, want all of the new template", got, status)
		}
		p.must("PATCH "+path+"/s merge", `{"spec":{"replicas":1}}`)
		fixture.Pass(5 * time.Second)
		p.has(pods, "s-0", "the last go first")
		before := p.Revision()
		fixture.Pass(time.Hour)
		if after := p.Revision(); after != before {
			t.Errorf("got %d writes in an hour in which nothing happened, want none", after-before)
		}
	})
}

// A deleted claim stays while a Pod uses it, and a StatefulSet makes no Pod while its claim ends.
func TestStatefulSets_KeepDeletedClaimsUntilTheirPodsAreGone_S21(t *testing.T) {
	const path, claims = "/apis/apps/v1/namespaces/ns/statefulsets", "/api/v1/namespaces/ns/persistentvolumeclaims"
	acting(t, simulate.Options{}, working, func(p *play) {
		p.must("POST "+path, `{"metadata":{"name":"s"},"spec":{"replicas":1,"serviceName":"s","selector":{"matchLabels":{"app":"a"}},"template":`+template("one", "")+
			`,"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}]}}`)
		fixture.Pass(5 * time.Second)
		first := p.at(claims+"/data-s-0", "metadata", "uid")
		p.must("DELETE "+claims+"/data-s-0", "")
		fixture.Pass(time.Minute)
		if got := p.at(claims+"/data-s-0", "metadata", "uid"); got != first {
			t.Errorf("got the claim %v, want %v, which a pod uses", got, first)
		}
		p.must("DELETE "+podsPath+"/s-0", "")
		fixture.Pass(time.Minute)
		p.has(pods, "s-0", "it is made again")
		if got := p.at(claims+"/data-s-0", "metadata", "uid"); got == first {
			t.Error("the pod has the claim that was deleted, want another one")
		}
	})
}

func TestDaemonSets_RunOnEachNodeThatFits_S21(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/ns/daemonsets"
	acting(t, simulate.Options{}, working, func(p *play) {
		for _, node := range []string{`{"metadata":{"name":"a"}}`, `{"metadata":{"name":"b"}}`, `{"metadata":{"name":"c"},"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}}`} {
			p.must("POST /api/v1/nodes", node)
		}
		p.must("POST "+path, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"app":"a"}},"template":`+template("one", "")+`}}`)
		nodes := func() string {
			on := map[string]int{}
			for _, pod := range p.pods() {
				on[pod.Spec.NodeName]++
			}
			return fmt.Sprint(on)
		}
		fixture.Pass(5 * time.Second)
		if got := nodes(); got != "map[a:1 b:1]" {
			t.Errorf("got pods on %s, want one on each node that has no taint", got)
		}
		p.must("POST /api/v1/nodes", `{"metadata":{"name":"e"}}`)
		p.must("DELETE /api/v1/nodes/b", "")
		p.must("PATCH "+path+"/d strategic", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`)
		fixture.Pass(10 * time.Second)
		if got := nodes(); got != "map[a:1 e:1]" || p.images() != "map[two:2]" {
			t.Errorf("got pods on %s of %s, want the nodes that there are now, and the new template", got, p.images())
		}
		if got := fmt.Sprint(p.at(path+"/d", "status", "numberAvailable"), p.at(path+"/d", "status", "updatedNumberScheduled")); got != "2 2" {
			t.Errorf("got available and updated %s, want 2 each", got)
		}
		before := p.Revision()
		fixture.Pass(time.Hour)
		if after := p.Revision(); after != before {
			t.Errorf("got %d writes in an hour in which nothing happened, want none", after-before)
		}
	})
}
