// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/hex"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

// Children are a pure function of their Website: the same Website gives the same children,
// so applying them again changes nothing.

const (
	image       = "nginxinc/nginx-unprivileged:stable-alpine"
	port        = 8080
	contentHash = "example.flyball.dev/content-hash"
)

// childrenOf returns the objects that serve site, in the order in which they are applied.
func childrenOf(site *webv1.Website) []kube.Object {
	return []kube.Object{configMapFor(site), deploymentFor(site), serviceFor(site)}
}

func configMapFor(site *webv1.Website) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: childMeta(site),
		Data:       map[string]string{"index.html": site.Spec.Content},
	}
}

func deploymentFor(site *webv1.Website) *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: childMeta(site),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(replicasOf(site)),
			Selector: &metav1.LabelSelector{MatchLabels: labelsOf(site)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: labelsOf(site),
					// A changed page replaces the Pods.
					Annotations: map[string]string{contentHash: hashOf(site.Spec.Content)},
				},
				Spec: podFor(site),
			},
		},
	}
}

func podFor(site *webv1.Website) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:  "web",
			Image: image,
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			VolumeMounts: []corev1.VolumeMount{{Name: "page", MountPath: "/usr/share/nginx/html", ReadOnly: true}},
		}},
		Volumes: []corev1.Volume{{
			Name: "page",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: site.Name},
			}},
		}},
	}
}

func serviceFor(site *webv1.Website) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: childMeta(site),
		Spec: corev1.ServiceSpec{
			Selector: labelsOf(site),
			Ports: []corev1.ServicePort{{
				Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}

// childMeta gives a child its site's name, which is enough for one child of a kind
// (reconcile.ChildName gives several distinct names). The set of children makes the site
// its owner, so the garbage collector deletes it with the site.
func childMeta(site *webv1.Website) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name, Labels: labelsOf(site)}
}

func labelsOf(site *webv1.Website) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       "website",
		"app.kubernetes.io/managed-by": fieldOwner,
		"example.flyball.dev/website":  reconcile.LabelValue(site.Name), // a name may be longer than a label value
	}
}

// replicasOf returns the desired replicas, or the schema's default for servers that do not
// fill it in.
func replicasOf(site *webv1.Website) int32 {
	if site.Spec.Replicas == nil {
		return 1
	}
	return *site.Spec.Replicas
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
