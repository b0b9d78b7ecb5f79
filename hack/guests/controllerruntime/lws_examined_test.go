// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	lws "sigs.k8s.io/lws/api/leaderworkerset/v1"
	lwscontrollers "sigs.k8s.io/lws/pkg/controllers"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

// lwsProgram is LeaderWorkerSet's.
var lwsProgram = managed(lwsScheme, setUpLWS)

var lwsScheme = schemeOf(lws.AddToScheme)

// setUpLWS adds LeaderWorkerSet's controllers, as its main function does.
func setUpLWS(_ context.Context, mgr ctrl.Manager) error {
	//lint:ignore SA1019 the operator takes it
	record := mgr.GetEventRecorderFor("leaderworkerset")
	return errors.Join(
		lwscontrollers.SetupIndexes(mgr.GetFieldIndexer()),
		lwscontrollers.NewLeaderWorkerSetReconciler(mgr.GetClient(), mgr.GetScheme(), record).SetupWithManager(mgr),
		lwscontrollers.NewPodReconciler(mgr.GetClient(), mgr.GetScheme(), record, nil).SetupWithManager(mgr),
	)
}

func lwsCRD(t *testing.T) string {
	t.Helper()
	return moduleFile(t, "sigs.k8s.io/lws", "config", "crd", "bases", "leaderworkerset.x-k8s.io_leaderworkersets.yaml")
}

// lwsRules are what LeaderWorkerSet's webhooks add or refuse, and that there is one group of two Pods, whose labels
// are in the sample.
var lwsRules = map[string]string{
	"spec":                      "self.replicas == 1 && has(self.rolloutStrategy) && has(self.networkConfig)",
	"spec.leaderWorkerTemplate": "self.size == 2 && has(self.leaderTemplate)",
	"spec.rolloutStrategy":      "has(self.rollingUpdateConfiguration)",
	// Each change of a template has the same effect as one of networkConfig.
	"spec.leaderWorkerTemplate.leaderTemplate": opaque,
	"spec.leaderWorkerTemplate.workerTemplate": opaque,
}

func TestExamine_LeaderWorkerSet(t *testing.T) {
	for sample, known := range map[string][]finding{
		"lws.yaml": {
			{doctor.OtherEnd, "ControllerRevision.apps of LeaderWorkerSet llm is more by", "bug: TestReal_LeaderWorkerSetLeavesARevisionWithEachTry", false},
			{doctor.OtherEnd, "status.conditions[type=Available]", "bug: TestReal_LeaderWorkerSetStaysProgressing", true},
			{doctor.PathDependent, "Service default/llm is there", "bug: the Service of an earlier subdomainPolicy stays", false},
			{doctor.OtherEnd, "Service default/llm is missing", "right: its subdomainPolicy was over before it was made", true},
			{doctor.LosesState, "Pod default/llm-0 is deleted twice", "odd: a new set of the name adopts the StatefulSet, and rolls it", true},
		},
	} {
		t.Run(sample, func(t *testing.T) {
			examined{
				main: lwsProgram, crds: []string{ruled(t, lwsCRD(t), lwsRules)},
				samples: []string{"testdata/examined/" + sample}, known: known, most: 60,
			}.examine(t)
		})
	}
}

// A LeaderWorkerSet whose StatefulSet the server refuses leaves one more ControllerRevision behind with each try, and
// none of them is ever removed: they have the label of the present revision.
func TestReal_LeaderWorkerSetLeavesARevisionWithEachTry(t *testing.T) {
	t.Parallel()
	s := realWorld(t, lwsScheme, lwsCRD(t))
	set := read[lws.LeaderWorkerSet](t, "lws.yaml")
	set.Spec.LeaderWorkerTemplate.LeaderTemplate.Spec.RestartPolicy = corev1.RestartPolicyNever // not for StatefulSets
	must(t, s.Create(t.Context(), set))
	const tries = 6
	var refused atomic.Int64
	s.start(lwsProgram, nil, func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && strings.HasSuffix(r.URL.Path, "/statefulsets/llm") && answer.StatusCode == http.StatusUnprocessableEntity {
				refused.Add(1)
			}
			return answer, err
		})
	})
	s.await("the StatefulSet is refused several times", func() bool { return refused.Load() >= tries })
	revisions := &appsv1.ControllerRevisionList{}
	must(t, s.List(t.Context(), revisions, crclient.InNamespace("default")))
	keys := map[string]int{}
	for _, r := range revisions.Items {
		keys[r.Labels[lws.RevisionKey]]++
	}
	if len(keys) != 1 || len(revisions.Items) < tries {
		t.Errorf("there are %d revisions with the keys %v, want at least %d with one key", len(revisions.Items), keys, tries)
	}
}

// held lets the watches of a kind deliver nothing while it is held, as a server whose watches lag.
type held struct {
	path string
	mu   sync.Mutex
	open chan struct{} // closed while nothing is held
}

func (h *held) hold() (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	open := make(chan struct{})
	h.open = open
	return func() { close(open) }
}

func (h *held) wrap(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err == nil && r.URL.Path == h.path && r.URL.Query().Has("watch") {
			answer.Body = heldBody{answer.Body, h, r.Context()}
		}
		return answer, err
	})
}

type heldBody struct {
	io.ReadCloser
	of  *held
	ctx context.Context
}

// Read returns what the server sends, when it is not held.
func (b heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.of.mu.Lock()
	open := b.of.open
	b.of.mu.Unlock()
	if open != nil {
		select {
		case <-open:
		case <-b.ctx.Done():
		}
	}
	return n, err
}

// leaderOf returns the first Pod of a group's StatefulSet, as its controller makes it.
func leaderOf(s *world, name string) *corev1.Pod {
	s.t.Helper()
	set := &appsv1.StatefulSet{}
	s.await("the StatefulSet "+name, func() bool { return s.get(name, set) })
	pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: set.Spec.Template.Spec}
	pod.Namespace, pod.Name = "default", name+"-0"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	return pod
}

// The status of a LeaderWorkerSet depends on its Pods, and only an event of a StatefulSet updates it. If that event comes
// before the Pod's, from another watch, the set stays Progressing with no ready group for ever.
func TestReal_LeaderWorkerSetStaysProgressing(t *testing.T) {
	t.Parallel()
	s := realWorld(t, lwsScheme, lwsCRD(t))
	set, probe := read[lws.LeaderWorkerSet](t, "lws.yaml"), read[lws.LeaderWorkerSet](t, "lws.yaml")
	set.Spec.LeaderWorkerTemplate.Size = new(int32(1))
	probe.Name = "probe"
	pods := &held{path: "/api/v1/pods"}
	s.start(lwsProgram, nil, pods.wrap)
	must(t, s.Create(t.Context(), set))
	must(t, s.Create(t.Context(), probe))
	pod := leaderOf(s, "llm")
	release := pods.hold()
	must(t, s.Create(t.Context(), pod))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	must(t, s.Status().Update(t.Context(), pod))
	group := &appsv1.StatefulSet{}
	s.get("llm", group)
	group.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: group.Generation, Replicas: 1, ReadyReplicas: 1, CurrentReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, CurrentRevision: "a", UpdateRevision: "a",
	}
	must(t, s.Status().Update(t.Context(), group))
	now := func() lws.LeaderWorkerSetStatus {
		must(t, s.Get(t.Context(), crclient.ObjectKeyFromObject(set), set))
		return set.Status
	}
	available := func() bool { return meta.IsStatusConditionTrue(now().Conditions, string(lws.LeaderWorkerSetAvailable)) }
	s.await("the operator has seen that the group is there", func() bool { return now().Replicas == 1 })
	// It reconciles one set after the other: when it has done this, it has done all that followed from its own update.
	s.await("an update of probe", func() bool {
		must(t, s.Get(t.Context(), crclient.ObjectKeyFromObject(probe), probe))
		probe.Spec.Replicas = new(int32(2))
		return s.Update(t.Context(), probe) == nil
	})
	s.await("the StatefulSet of probe follows", func() bool {
		return s.Get(t.Context(), crclient.ObjectKeyFromObject(probe), group) == nil && *group.Spec.Replicas == 2
	})
	release()
	// The watch delivers in order: when the operator acts on this Pod, it has seen that the other one is ready.
	must(t, s.Create(t.Context(), leaderOf(s, "probe")))
	s.await("the workers of probe", func() bool { return s.get("probe-0", &appsv1.StatefulSet{}) })
	if is := now(); available() || is.ReadyReplicas != 0 {
		t.Errorf("the set is available, with %d ready groups: the mistake is mended", is.ReadyReplicas)
	}
	// Any other event helps.
	s.await("an update of the set", func() bool {
		now()
		set.Annotations = map[string]string{"touched": "yes"}
		return s.Update(t.Context(), set) == nil
	})
	s.await("the set is available", available)
}
