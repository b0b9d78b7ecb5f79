// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	shop       = "shop" // the namespace of the objects
	shopNodes  = 100    // on which its Pods run
	perOwner   = 10     // Pods of one template
	fillAtOnce = 8      // clients that create the objects
)

// shopObjects are the objects of a cluster that
// https://github.com/k8ssandra/k8ssandra-operator/issues/1752 describes, and the Nodes of its
// Pods.
var shopObjects = []struct {
	count int
	make  func(n int) crclient.Object
}{
	{shopNodes, shopNode}, {6554, shopPod}, {2845, shopConfigMap}, {2561, shopService},
	{2533, shopSlice}, {27000, shopEvent}, {5000, shopSecret},
}

// fill creates the objects. Those with a status get it by a second request.
func fill(t *testing.T, config *rest.Config) {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	c, err := crclient.New(config, crclient.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}
	if err := c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	objects := make(chan crclient.Object)
	var writers sync.WaitGroup
	for range fillAtOnce {
		writers.Go(func() {
			for obj := range objects {
				if err := put(t.Context(), c, obj); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, kind := range shopObjects {
		for n := range kind.count {
			objects <- kind.make(n)
		}
	}
	close(objects)
	writers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func put(ctx context.Context, c crclient.Client, obj crclient.Object) error {
	want := obj.DeepCopyObject().(crclient.Object)
	if err := c.Create(ctx, obj); err != nil {
		return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
	}
	switch want.(type) {
	case *corev1.Pod, *corev1.Node:
		want.SetResourceVersion(obj.GetResourceVersion())
		want.SetUID(obj.GetUID())
		if err := c.Status().Update(ctx, want); err != nil {
			return fmt.Errorf("report the status of %T %s: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}

func shopMeta(n int) metav1.ObjectMeta {
	name := fmt.Sprint("app-", n)
	return metav1.ObjectMeta{Namespace: shop, Name: name, Labels: map[string]string{
		"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm",
	}}
}

func shopConfigMap(n int) crclient.Object {
	text := strings.Repeat(fmt.Sprintf("key-%d: value\n", n), 250)
	return &corev1.ConfigMap{ObjectMeta: shopMeta(n), Data: map[string]string{"config.yaml": text}}
}

func shopSecret(n int) crclient.Object {
	text := make([]byte, 4700)
	_, _ = rand.NewChaCha8([32]byte{byte(n), byte(n >> 8)}).Read(text)
	data := map[string][]byte{"tls.crt": text[:3000], "tls.key": text[3000:]}
	return &corev1.Secret{ObjectMeta: shopMeta(n), Data: data}
}

// shopService returns a headless Service: the server has few cluster IPs.
func shopService(n int) crclient.Object {
	return &corev1.Service{ObjectMeta: shopMeta(n), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, Selector: map[string]string{"app": fmt.Sprint("app-", n)},
		Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "metrics", Port: 9090}},
	}}
}

func shopSlice(n int) crclient.Object {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: shopMeta(n), AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(80))}},
	}
	for i := range 5 {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", n/256%256, n%256, i)},
			NodeName:   new(nodeName(n + i)),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	return s
}

func shopEvent(n int) crclient.Object {
	at := metav1.Unix(1_790_000_000+int64(n), 0)
	return &corev1.Event{
		ObjectMeta: shopMeta(n), Reason: "Unhealthy", Type: corev1.EventTypeWarning,
		Message: fmt.Sprintf("Readiness probe failed: Get \"http://10.0.%d.%d:8080/healthz\": "+
			"context deadline exceeded", n/256%256, n%256),
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: shop, Name: fmt.Sprint("app-", n%6554),
			UID: types.UID(fmt.Sprintf("%036x", n)),
		},
		Source:         corev1.EventSource{Component: "kubelet", Host: nodeName(n)},
		FirstTimestamp: at, LastTimestamp: at, Count: int32(n % 50),
	}
}

func nodeName(n int) string { return fmt.Sprintf("node-%03d", n%shopNodes) }

func shopNode(n int) crclient.Object {
	at := metav1.Unix(1_790_000_000, 0)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(n), Labels: map[string]string{
			"kubernetes.io/hostname": nodeName(n), "kubernetes.io/arch": "amd64",
			"kubernetes.io/os": "linux",
		}},
		Spec: corev1.NodeSpec{ProviderID: fmt.Sprintf("cloud:///zone-%d/i-%017x", n%3, n)},
	}
	capacity := corev1.ResourceList{}
	amounts := map[corev1.ResourceName]string{"cpu": "64", "memory": "256Gi", "pods": "110"}
	for name, amount := range amounts {
		capacity[name] = resource.MustParse(amount)
	}
	node.Status.Capacity, node.Status.Allocatable = capacity, capacity
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: at, LastTransitionTime: at,
	}}
	for i := range 50 {
		name := fmt.Sprintf("registry.example.com/team/image-%d@sha256:%064x", i, (n%40*50+i)*1_000_003)
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{name}, SizeBytes: int64(10_000_000 + n%40*i),
		})
	}
	return node
}

// shopPod returns a running Pod with three containers, one of ten of its template.
func shopPod(n int) crclient.Object {
	owner := n / perOwner
	p := &corev1.Pod{ObjectMeta: shopMeta(n)}
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("app-%d-7d4b9c", owner),
		UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", owner, owner)), Controller: new(true),
	}}
	p.Labels = map[string]string{
		"app.kubernetes.io/name": fmt.Sprint("app-", owner), "pod-template-hash": "7d4b9c",
		"app.kubernetes.io/version": fmt.Sprintf("1.%d.0", owner%20),
	}
	p.Annotations = map[string]string{
		"checksum/config":      fmt.Sprintf("%064x", owner*7919),
		"prometheus.io/scrape": "true", "prometheus.io/port": "9090",
	}
	p.Spec.NodeName = nodeName(n)
	p.Spec.ServiceAccountName = fmt.Sprint("app-", owner)
	for i := range 4 {
		from := &corev1.ConfigMapVolumeSource{}
		from.Name = fmt.Sprintf("app-%d-%d", owner, i)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: fmt.Sprint("volume-", i), VolumeSource: corev1.VolumeSource{ConfigMap: from},
		})
	}
	at := metav1.Unix(1_790_000_000+int64(n), 0)
	for _, name := range []string{"app", "proxy", "exporter"} {
		image := fmt.Sprintf("registry.example.com/team-%d/%s:1.%d.0", owner%30, name, owner%20)
		p.Spec.Containers = append(p.Spec.Containers, shopContainer(name, image, owner))
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, Image: image, Ready: true, Started: new(true),
			ImageID:     fmt.Sprintf("registry.example.com/%s@sha256:%064x", name, owner%600),
			ContainerID: fmt.Sprintf("containerd://%064x", n*1_000_003),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	p.Status.Phase, p.Status.QOSClass = corev1.PodRunning, corev1.PodQOSBurstable
	p.Status.StartTime = &at
	p.Status.HostIP = fmt.Sprintf("10.1.0.%d", n%shopNodes)
	p.Status.PodIP = fmt.Sprintf("10.0.%d.%d", n/256%256, n%256)
	p.Status.PodIPs = []corev1.PodIP{{IP: p.Status.PodIP}}
	for _, kind := range []corev1.PodConditionType{
		"PodScheduled", "Initialized", "ContainersReady", "Ready",
	} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at,
		})
	}
	return p
}

func shopContainer(name, image string, owner int) corev1.Container {
	c := corev1.Container{
		Name: name, Image: image, Args: []string{"--config=/etc/app/config.yaml", "--v=2"},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			"cpu": resource.MustParse("50m"), "memory": resource.MustParse("64Mi"),
		}},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/healthz", Port: intstr.FromInt32(8080),
		}}},
		SecurityContext: &corev1.SecurityContext{
			RunAsNonRoot: new(true), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for i := range 10 {
		c.Env = append(c.Env, corev1.EnvVar{
			Name:  fmt.Sprintf("SETTING_%02d", i),
			Value: fmt.Sprintf("https://service-%d.example.com/%d", i, owner),
		})
	}
	for i := range 4 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name: fmt.Sprint("volume-", i), MountPath: fmt.Sprint("/etc/app/", i), ReadOnly: true,
		})
	}
	return c
}
