// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var kindOfCluster = schema.GroupVersionKind{Group: "zoo.example.dev", Version: "v1", Kind: "Cluster"}

// The labels of what belongs to a Cluster.
const (
	ofCluster   = "zoo.example.dev/cluster"
	ofPart      = "zoo.example.dev/part"
	ofSoftOwner = "zoo.example.dev/soft-owner"
	ofConfig    = "zoo.example.dev/config"
	finalizer   = "zoo.example.dev/volumes"
)

// The parts of a Cluster: each is a StatefulSet, or something that one feature wants.
const (
	mainPart    = "main"
	arbiterPart = "arbiter"
	proxyPart   = "proxy"
	cfgPart     = "cfg"
	tlsPart     = "tls"
	uiPart      = "ui"
)

// cluster is the custom resource.
type cluster struct{ *unstructured.Unstructured }

func newCluster() cluster {
	c := cluster{&unstructured.Unstructured{}}
	c.SetGroupVersionKind(kindOfCluster)
	return c
}

func (c cluster) key(suffix string) types.NamespacedName {
	return types.NamespacedName{Namespace: c.GetNamespace(), Name: c.GetName() + suffix}
}

func (c cluster) number(fields ...string) int64 {
	n, _, _ := unstructured.NestedInt64(c.Object, fields...)
	return n
}

func (c cluster) text(fields ...string) string {
	s, _, _ := unstructured.NestedString(c.Object, fields...)
	return s
}

func (c cluster) flag(name string) bool {
	b, _, _ := unstructured.NestedBool(c.Object, "spec", name)
	return b
}

func (c cluster) texts(name string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(c.Object, "spec", name)
	return m
}

// each returns a field of each element of a list of the spec.
func (c cluster) each(name, field string) (out []string) {
	all, _, _ := unstructured.NestedSlice(c.Object, "spec", name)
	for _, one := range all {
		fields, _ := one.(map[string]any)
		text, _ := fields[field].(string)
		out = append(out, text)
	}
	return out
}

// set sets a field to a value of JSON.
func (c cluster) set(value any, fields ...string) {
	_ = unstructured.SetNestedField(c.Object, value, fields...) // fails only below a field of another type
}

// has reports whether a feature is on.
func (c cluster) has(part string) bool {
	switch part {
	case mainPart:
		return true
	case uiPart:
		return c.number("spec", "uiPort") > 0
	}
	return c.flag(part)
}

// replicas returns how many Pods a part has.
func (c cluster) replicas(part string) int32 {
	if part == mainPart {
		return int32(c.number("spec", "replicas"))
	}
	return 1
}

// stored reports whether the Pods of a part have volumes.
func (c cluster) stored(part string) bool {
	return part == proxyPart || part == mainPart && c.text("spec", "storage") != ""
}

func (c cluster) storage(part string) resource.Quantity {
	if q, err := resource.ParseQuantity(c.text("spec", "storage")); err == nil && part == mainPart {
		return q
	}
	return resource.MustParse("1Gi")
}

// labels select the objects of a part, or of all with an empty one.
func (c cluster) labels(part string) map[string]string {
	out := map[string]string{ofCluster: c.GetName()}
	if part != "" {
		out[ofPart] = part
	}
	return out
}

// meta returns the metadata of an owned object.
func (c cluster) meta(suffix, part string) metav1.ObjectMeta {
	owner := *metav1.NewControllerRef(c, kindOfCluster)
	return metav1.ObjectMeta{
		Namespace: c.GetNamespace(), Name: c.GetName() + suffix, Labels: c.labels(part),
		OwnerReferences: []metav1.OwnerReference{owner},
	}
}

func (c cluster) configHash() string {
	text, err := json.Marshal(c.texts("config"))
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

func suffixOf(part string) string {
	if part == mainPart {
		return ""
	}
	return "-" + part
}

// statefulSet returns that of a part as it is to be.
func (c cluster) statefulSet(part string) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: c.meta(suffixOf(part), part)}
	set.Spec.Replicas = new(c.replicas(part))
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: c.labels(part)}
	template := &set.Spec.Template
	template.Labels = c.labels(part)
	maps.Copy(template.Labels, c.texts("labels"))
	image := c.text("spec", "image")
	if image == "" {
		image = "keeper:default"
	}
	container := corev1.Container{Name: part, Image: image}
	if part == mainPart {
		template.Annotations = map[string]string{ofConfig: c.configHash()}
		maps.Copy(template.Annotations, c.texts("annotations"))
		template.Spec.NodeSelector = c.texts("nodeSelector")
		for _, key := range c.each("tolerations", "key") {
			template.Spec.Tolerations = append(template.Spec.Tolerations,
				corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
		}
		values := c.each("env", "value")
		for i, name := range c.each("env", "name") {
			container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: values[i]})
		}
		if cpu, err := resource.ParseQuantity(c.text("spec", "cpu")); err == nil {
			container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu}
		}
	}
	template.Spec.Containers = []corev1.Container{container}
	if c.stored(part) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{c.volume(part)}
	}
	return set
}

func (c cluster) volume(part string) corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: c.storage(part)}
	return claim
}

// volumeKey returns the key of the claim of the Pod with an ordinal.
func (c cluster) volumeKey(part string, ordinal int) types.NamespacedName {
	name := fmt.Sprintf("data-%s%s-%d", c.GetName(), suffixOf(part), ordinal)
	return types.NamespacedName{Namespace: c.GetNamespace(), Name: name}
}

// ordinalOf returns the ordinal at the end of a name; -1: there is none.
func ordinalOf(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}

// secret returns one that is only known by its label, and not owned.
func (c cluster) secret(suffix string) *corev1.Secret {
	meta := c.meta(suffix, "")
	meta.OwnerReferences, meta.Labels[ofSoftOwner] = nil, c.GetName()
	return &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte("made once")}}
}

func (c cluster) budget() *policyv1.PodDisruptionBudget {
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: c.meta("", "")}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: c.labels(mainPart)}
	budget.Spec.MaxUnavailable = new(intstr.FromInt32(int32(c.number("spec", "maxUnavailable"))))
	return budget
}

func (c cluster) service() *corev1.Service {
	service := &corev1.Service{ObjectMeta: c.meta("-ui", uiPart)}
	maps.Copy(service.Labels, c.texts("labels"))
	service.Spec.Selector = c.labels(mainPart)
	service.Spec.Ports = []corev1.ServicePort{{Name: "ui", Port: int32(c.number("spec", "uiPort"))}}
	return service
}

func (c cluster) tls() *corev1.Secret {
	data := map[string][]byte{"tls": []byte("made once")}
	return &corev1.Secret{ObjectMeta: c.meta("-tls", tlsPart), Data: data}
}

func (c cluster) configMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: c.meta("-config", ""), Data: c.texts("config")}
}
