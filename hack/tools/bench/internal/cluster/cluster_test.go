// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

var shapes = []PodOptions{{Count: 2000, Owners: 100}, {Count: 2000, Owners: 1000, ManagedFields: true}, {Count: 2000, Owners: 2000}, {Count: 777, Owners: 100, Seed: 5}}

func forShapes(t *testing.T, test func(t *testing.T, p *Pods)) {
	for _, opts := range shapes {
		t.Run(fmt.Sprintf("%+v", opts), func(t *testing.T) { test(t, NewPods(opts)) })
	}
}

func TestPods_AreAFunctionOfTheSeedAndTheIndex(t *testing.T) {
	forShapes(t, func(t *testing.T, p *Pods) {
		again, other := NewPods(p.opts), p.opts
		other.Seed++
		others := NewPods(other)
		for i := p.Len() - 1; i >= 0; i -= 97 { // in another order
			one, two, three := encoded(t, p.Pod(i)), encoded(t, again.Pod(i)), encoded(t, others.Pod(i))
			if !bytes.Equal(one, two) {
				t.Fatalf("Pod %d differs between two generators of one seed", i)
			}
			if bytes.Equal(one, three) {
				t.Fatalf("Pod %d is the same with another seed", i)
			}
		}
	})
}

func encoded(t *testing.T, pod *corev1.Pod) []byte {
	text, err := pod.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// What a cluster makes unique per Pod is unique; the order is that of a list.
func TestPods_HaveTheirOwnNamesVersionsAddressesAndContainers(t *testing.T) {
	forShapes(t, func(t *testing.T, p *Pods) {
		seen := map[string]bool{}
		unique := func(what, value string) {
			if value == "" || seen[what+value] {
				t.Fatalf("%s %q is empty or comes twice", what, value)
			}
			seen[what+value] = true
		}
		last, owners, meshed := "", map[string]bool{}, 0
		for pod := range p.All() {
			key := pod.Namespace + "/" + pod.Name
			if key <= last {
				t.Fatalf("%s comes after %s in a list", key, last)
			}
			last = key
			unique("key", key)
			unique("UID", string(pod.UID))
			unique("version", pod.ResourceVersion)
			unique("IP", pod.Status.PodIP)
			unique("token volume", pod.Namespace+pod.Spec.Volumes[len(pod.Spec.Volumes)-1].Name)
			for _, c := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
				unique("container", c.ContainerID)
				if c.ImageID == "" || c.LastTerminationState.Terminated != nil && c.RestartCount == 0 {
					t.Fatalf("%s: the status of container %s is not a kubelet's: %+v", key, c.Name, c)
				}
			}
			owners[string(pod.OwnerReferences[0].UID)] = true
			if len(pod.Spec.Containers) > 1 && slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Image == proxyImage }) {
				meshed++
			}
		}
		if len(owners) != p.opts.Owners {
			t.Errorf("%d owners, want %d", len(owners), p.opts.Owners)
		}
		if share := float64(meshed) / float64(p.Len()); share < 0.31 || share > 0.35 {
			t.Errorf("%.2f of the Pods are in the mesh, want a third", share)
		}
	})
}

// With an owner per Pod, no two Pods have a label's value, an image or a config map in common.
func TestPods_OfDifferentOwnersShareDefaultsOnly(t *testing.T) {
	p := NewPods(PodOptions{Count: 5000, Owners: 5000})
	seen := map[string]string{}
	own := func(pod *corev1.Pod, value string) {
		if other := seen[value]; other != "" {
			t.Fatalf("%s and %s both have %q", pod.Name, other, value)
		}
		seen[value] = pod.Name
	}
	for pod := range p.All() {
		app := pod.Labels["app.kubernetes.io/name"]
		own(pod, app)
		own(pod, pod.Spec.Containers[0].Image)
		own(pod, pod.Spec.ServiceAccountName+"'s account")
		if sum := pod.Annotations["checksum/config"]; sum != "" {
			own(pod, sum)
		}
		for _, v := range pod.Spec.Volumes {
			if v.Name == "config" {
				own(pod, v.ConfigMap.Name)
			}
		}
		for _, e := range pod.Spec.Containers[0].Env {
			if strings.HasSuffix(e.Name, "_URL") {
				own(pod, e.Name)
			}
		}
	}
}

// The sizes of Pods are those of a cluster, and do not depend on the number of owners.
func TestPods_AreOfTheSizeThatIsStated(t *testing.T) {
	for _, owners := range []int{100, 1500} {
		for _, fields := range []bool{false, true} {
			sum, text, low, high := 0, 0, 1<<20, 0
			p := NewPods(PodOptions{Count: 1500, Owners: owners, ManagedFields: fields})
			for pod := range p.All() {
				n := pod.Size()
				sum, low, high = sum+n, min(low, n), max(high, n)
				body, _ := json.Marshal(pod)
				text += len(body)
			}
			proto, text := float64(sum)/float64(p.Len()), text/p.Len()
			t.Logf("owners %d, managedFields %t: protobuf %.0f (%d to %d), JSON %d", owners, fields, proto, low, high, text)
			want := 4200.0
			if fields {
				want = 7800
			}
			if proto < want*0.95 || proto > want*1.05 {
				t.Errorf("owners %d, managedFields %t: a Pod has %.0f bytes of protobuf on average, want %.0f within 5%%", owners, fields, proto, want)
			}
		}
	}
}

func TestPods_PassTheValidationOfMetadataAndResources(t *testing.T) {
	forShapes(t, func(t *testing.T, p *Pods) {
		for pod := range p.All() {
			errs := apivalidation.ValidateObjectMeta(&pod.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
			errs = append(errs, metavalidation.ValidateManagedFields(pod.ManagedFields, field.NewPath("managedFields"))...)
			for _, msg := range append(apivalidation.NameIsDNSLabel(pod.Spec.Containers[0].Name, false), apivalidation.NameIsDNSSubdomain(pod.Spec.NodeName, false)...) {
				errs = append(errs, field.Invalid(field.NewPath("spec"), pod.Name, msg))
			}
			for _, c := range pod.Spec.Containers {
				for name, limit := range c.Resources.Limits {
					if request := c.Resources.Requests[name]; request.Cmp(limit) > 0 {
						errs = append(errs, field.Invalid(field.NewPath("resources"), request.String(), "more than the limit "+limit.String()))
					}
				}
			}
			if len(errs) > 0 {
				t.Fatalf("%s: %v", pod.Name, errs.ToAggregate())
			}
		}
	})
}

// managedFields are those that a kube-apiserver computes for what kube-controller-manager
// creates.
func TestManagedFields_AreThoseOfAServer(t *testing.T) {
	manager, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, scheme.Scheme, scheme.Scheme,
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPods(PodOptions{Count: 60, Owners: 60, ManagedFields: true})
	for n := range 60 {
		template := newOwner(p, n).template.DeepCopy()
		template.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		want, err := manager.Update(&corev1.Pod{TypeMeta: template.TypeMeta}, template, "kube-controller-manager")
		if err != nil {
			t.Fatal(err)
		}
		equalFields(t, p.Pod(n).ManagedFields[0], want.(*corev1.Pod).ManagedFields[0])
	}
	kubelet, err := managedfields.NewDefaultFieldManager(applyconfigurations.NewTypeConverter(scheme.Scheme), scheme.Scheme, scheme.Scheme, scheme.Scheme,
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion, "status", nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		pod := p.Pod(n)
		got := pod.ManagedFields[1]
		pod.ManagedFields = pod.ManagedFields[:1]
		before := pod.DeepCopy()
		before.Status = corev1.PodStatus{QOSClass: pod.Status.QOSClass, Phase: corev1.PodPending}
		want, err := kubelet.Update(before, pod, "kubelet")
		if err != nil {
			t.Fatal(err)
		}
		entries := want.(*corev1.Pod).ManagedFields
		equalFields(t, got, entries[len(entries)-1])
	}
}

func equalFields(t *testing.T, got, want metav1.ManagedFieldsEntry) {
	t.Helper()
	var one, two map[string]any
	if err := json.Unmarshal(got.FieldsV1.GetRawBytes(), &one); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(want.FieldsV1.GetRawBytes(), &two); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(one, two) {
		t.Fatalf("the fields of %s are\n%s\nwant, of %s,\n%s", got.Manager, got.FieldsV1.GetRawString(), want.Manager, want.FieldsV1.GetRawString())
	}
}

// An update changes what a kubelet changes, and nothing else.
func TestPods_UpdateChangesReadiness(t *testing.T) {
	p := NewPods(PodOptions{Count: 100, Owners: 10, ManagedFields: true})
	before, after := p.Pod(42), p.Update(42, p.Version()+1)
	if reflect.DeepEqual(before.Status.Conditions, after.Status.Conditions) || before.ResourceVersion == after.ResourceVersion {
		t.Error("an update changed no condition, or not the version")
	}
	after.ResourceVersion, after.ManagedFields[1] = before.ResourceVersion, before.ManagedFields[1]
	after.Status.Conditions, after.Status.ContainerStatuses = before.Status.Conditions, before.Status.ContainerStatuses
	if !reflect.DeepEqual(before, after) {
		t.Error("an update changed more than the conditions and the containers' readiness")
	}
}

func TestWords_AreSortedAndNoneBeginsWithAnother(t *testing.T) {
	for i, w := range words[1:] {
		if w <= words[i] || strings.HasPrefix(w, words[i]) {
			t.Errorf("%q after %q", w, words[i])
		}
	}
}
