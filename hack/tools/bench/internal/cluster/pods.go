// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodOptions say which Pods there are.
type PodOptions struct {
	// Seed chooses among clusters of the same shape.
	Seed uint64
	// Count of Pods. 0: 1000. At most 1,000,000.
	Count int
	// Owners is the number of ReplicaSets, which have the same number of Pods
	// each. Owners have in common what every Pod gets by default, and the mesh
	// proxy; labels, images, variables and volumes are their own. With as many
	// owners as Pods, two Pods are as different as Pods of two teams. 0: 1000.
	Owners int
	// ManagedFields are on the wire, as without a transform: those that
	// kube-controller-manager and the kubelet have in a Pod.
	ManagedFields bool
}

// Pods are the Pods of a cluster, in the order of a list: by namespace and name. They have
// 4.2 kB of protobuf on average, 2.8 kB without a mesh proxy and 6.8 kB with one, and
// 7.8 kB of JSON; managedFields add 3.6 kB.
type Pods struct {
	opts       PodOptions
	namespaces int
	nodes      int
	last       atomic.Pointer[owner] // of a Pod: neighbours have the same one
}

const (
	podsPerNode        = 30
	ownersPerNamespace = 5
	maxNamespaces      = 2000
	firstVersion       = 4_100_000_000
	// stride is coprime to every count of Pods: it leads to each version once.
	stride = 1_000_003
	began  = 1_790_000_000 // Unix time; the Pods are created in the month after it
)

// NewPods returns the Pods that opts describe.
func NewPods(opts PodOptions) *Pods {
	opts.Count = cmp.Or(opts.Count, 1000)
	opts.Owners = min(cmp.Or(opts.Owners, 1000), opts.Count)
	return &Pods{
		opts:       opts,
		namespaces: min(max(opts.Owners/ownersPerNamespace, 1), maxNamespaces),
		nodes:      opts.Count/podsPerNode + 1,
	}
}

// Len returns the number of Pods.
func (p *Pods) Len() int { return p.opts.Count }

// Version returns the resource version of a list of the Pods: no Pod has a later one.
func (p *Pods) Version() int64 { return firstVersion + 64*int64(p.opts.Count) }

// All returns the Pods one by one.
func (p *Pods) All() iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		for i := range p.opts.Count {
			if !yield(p.Pod(i)) {
				return
			}
		}
	}
}

// Pod returns the i-th Pod, which runs.
func (p *Pods) Pod(i int) *corev1.Pod { return p.at(i, 0) }

// Update returns the i-th Pod after its kubelet reported that its first container became
// unready, or ready again, which is the most frequent change of a running Pod. version,
// greater than Version, is the new resource version.
func (p *Pods) Update(i int, version int64) *corev1.Pod { return p.at(i, version) }

func (p *Pods) at(i int, version int64) *corev1.Pod {
	n := p.ownerOf(i)
	o := p.last.Load()
	if o == nil || o.index != n {
		o = newOwner(p, n)
		p.last.Store(o)
	}
	first, after := p.podsOf(n)
	d := drawOf(p.opts.Seed, "pod", i)
	pod := o.template.DeepCopy()
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Name = pod.GenerateName + d.suffix(i-first, after-first)
	pod.Namespace = o.namespace
	pod.UID = d.uid()
	pod.Generation = 1
	pod.ResourceVersion = strconv.FormatInt(firstVersion+int64(i*stride%p.opts.Count)*64+int64(d.IntN(64)), 10)
	created := began + int64(d.IntN(30*24*3600))
	pod.CreationTimestamp = metav1.Unix(created, 0)
	if p.opts.ManagedFields {
		pod.ManagedFields = []metav1.ManagedFieldsEntry{entry("kube-controller-manager", "", created, o.fields)}
	}
	if o.meshed {
		inject(pod, o)
	}
	admit(pod, d)
	schedule(pod, d, p)
	report(pod, d, o, podIP(i), created, version)
	if version != 0 {
		pod.ResourceVersion = strconv.FormatInt(version, 10)
	}
	if p.opts.ManagedFields {
		pod.ManagedFields = append(pod.ManagedFields, kubeletEntry(pod))
	}
	return pod
}

// ownerOf returns the owner of the i-th Pod.
func (p *Pods) ownerOf(i int) int { return ((i+1)*p.opts.Owners - 1) / p.opts.Count }

// podsOf returns the first Pod of an owner and that after its last one.
func (p *Pods) podsOf(owner int) (first, after int) {
	return owner * p.opts.Count / p.opts.Owners, (owner + 1) * p.opts.Count / p.opts.Owners
}

// admit adds what the API server's admission adds: the token volume, tolerations and the
// default priority.
func admit(pod *corev1.Pod, d draw) {
	token := "kube-api-access-" + d.text(safe, 5)
	mount := corev1.VolumeMount{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, mount)
		}
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: of(int32(420)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: of(int64(3607)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}})
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: of(int64(300)),
		})
	}
	pod.Spec.Priority, pod.Spec.PreemptionPolicy = of(int32(0)), of(corev1.PreemptLowerPriority)
}

// schedule chooses the node.
func schedule(pod *corev1.Pod, d draw, p *Pods) {
	node := d.IntN(p.nodes)
	ip := hostIP(node)
	pod.Spec.NodeName = fmt.Sprintf("ip-172-%d-%d-%d.ec2.internal", ip[1], ip[2], ip[3])
	pod.Status.HostIP = fmt.Sprintf("172.%d.%d.%d", ip[1], ip[2], ip[3])
	pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}}
}

// hostIP spreads nodes over the addresses of a virtual network.
func hostIP(node int) [4]int {
	x := node * 40_503 % (1 << 20) // an odd factor: each node has its own address
	return [4]int{172, 16 + x>>16, x >> 8 & 255, x & 255}
}

// podIP spreads Pods over the addresses of 10.0.0.0/8.
func podIP(i int) string {
	x := i * 2_654_435 % (1 << 24)
	return fmt.Sprintf("10.%d.%d.%d", x>>16, x>>8&255, x&255)
}

func after(created, seconds int64) metav1.Time { return metav1.Unix(created+seconds, 0) }

// begun is the time of the first update.
var begun = time.Unix(began+31*24*3600, 0)
