// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
)

const hashLabel = "pod-template-hash"

// owner is a ReplicaSet.
type owner struct {
	index     int
	namespace string
	app       string // the name of its Deployment
	name      string
	uid       types.UID
	meshed    bool
	template  *corev1.Pod // as kube-controller-manager creates it, with the defaults of the API server
	fields    string      // of kube-controller-manager
	images    map[string]string
}

// newOwner returns the n-th owner of p.
func newOwner(p *Pods, n int) *owner {
	d := drawOf(p.opts.Seed, "owner", n)
	namespace := n * p.namespaces / p.opts.Owners
	first := (namespace*p.opts.Owners + p.namespaces - 1) / p.namespaces // of the namespace
	next := ((namespace+1)*p.opts.Owners + p.namespaces - 1) / p.namespaces
	o := &owner{
		index:     n,
		namespace: drawOf(p.opts.Seed, "namespace", namespace).name(namespace, p.namespaces),
		app:       d.name(n-first, next-first),
		uid:       d.uid(),
		meshed:    n%3 == 1,
		images:    map[string]string{},
	}
	hash := rand.SafeEncodeString(fmt.Sprint(d.Uint32()))
	o.name = o.app + "-" + hash
	o.template = o.newTemplate(d, hash)
	if p.opts.ManagedFields {
		o.fields = createdFields(o.template)
	}
	for _, containers := range [][]corev1.Container{o.template.Spec.Containers, o.template.Spec.InitContainers} {
		for _, c := range containers {
			o.images[c.Image] = c.Image[:strings.LastIndexByte(c.Image, ':')] + "@sha256:" + d.digest()
		}
	}
	o.images[proxyImage] = proxyImageID
	return o
}

func (o *owner) newTemplate(d draw, hash string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		GenerateName: o.name + "-",
		Labels: map[string]string{
			"app.kubernetes.io/name": o.app, "app.kubernetes.io/instance": o.app + "-" + pick(d, []string{"eu", "us", "ap"}),
			"app.kubernetes.io/version": version(d), "team": o.namespace, hashLabel: hash,
		},
		Annotations: map[string]string{},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: o.name, UID: o.uid, Controller: of(true), BlockOwnerDeletion: of(true),
		}},
	}}
	if d.chance(50) {
		pod.Annotations["checksum/config"] = d.digest()
	}
	if d.chance(40) {
		pod.Labels["app.kubernetes.io/component"], pod.Labels["app.kubernetes.io/part-of"] = d.word(), o.namespace
	}
	if d.chance(30) {
		pod.Labels[d.word()+".example.com/"+o.app] = d.word() + "-" + d.text(safe, 4)
	}
	if d.chance(50) {
		pod.Annotations["prometheus.io/scrape"], pod.Annotations["prometheus.io/port"] = "true", "9090"
	}
	if d.chance(40) {
		at := after(began, int64(d.IntN(30*24*3600)))
		pod.Annotations["kubectl.kubernetes.io/restartedAt"] = at.UTC().Format("2006-01-02T15:04:05Z07:00")
	}
	pod.Spec = o.newSpec(d)
	return pod
}

func (o *owner) newSpec(d draw) corev1.PodSpec {
	spec := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
		TerminationGracePeriodSeconds: of(int64(30)), EnableServiceLinks: of(true),
		ServiceAccountName: o.app, DeprecatedServiceAccount: o.app,
		SecurityContext: &corev1.PodSecurityContext{},
		Containers:      []corev1.Container{o.mainContainer(d)},
		Volumes: []corev1.Volume{{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: o.app + "-config"}, DefaultMode: of(int32(420)),
		}}}},
	}
	if d.chance(40) {
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot: of(true), RunAsUser: of(int64(d.between(1000, 65000))), FSGroup: of(int64(2000)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	if d.chance(25) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "tls", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: o.app + "-tls", DefaultMode: of(int32(420))},
		}})
		mount(&spec.Containers[0], corev1.VolumeMount{Name: "tls", MountPath: "/etc/tls", ReadOnly: true})
	}
	if d.chance(35) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		mount(&spec.Containers[0], corev1.VolumeMount{Name: "scratch", MountPath: "/tmp"})
	}
	if d.chance(10) {
		spec.Containers = append(spec.Containers, o.sideContainer(d))
	}
	if d.chance(10) {
		spec.InitContainers = append(spec.InitContainers, o.initContainer(d))
	}
	if d.chance(20) {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/name": o.app}},
		}}
	}
	if d.chance(20) {
		spec.NodeSelector = map[string]string{"node.example.com/pool": d.word()}
	}
	if d.chance(25) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: o.namespace + "-registry"}}
	}
	return spec
}

func (o *owner) mainContainer(d draw) corev1.Container {
	c := container(o.app, fmt.Sprintf("registry.example.com/%s/%s:%s", o.namespace, o.app, version(d)))
	c.Args = []string{"--config=/etc/" + o.app + "/config.yaml"}
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	if d.chance(50) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP})
	}
	c.Env = o.variables(d)
	c.Resources = resources(d)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: "/etc/" + o.app, ReadOnly: true}}
	c.ReadinessProbe = probe(d, "/readyz", "http")
	if d.chance(70) {
		c.LivenessProbe = probe(d, "/livez", "http")
	}
	if d.chance(20) {
		c.StartupProbe = probe(d, "/startupz", "http")
	}
	if d.chance(50) {
		c.SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: of(false), ReadOnlyRootFilesystem: of(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	return c
}

// variables returns the environment: values of the owner, of its Secret, and of the Pod.
func (o *owner) variables(d draw) []corev1.EnvVar {
	prefix := strings.ToUpper(strings.ReplaceAll(o.app, "-", "_"))
	env := []corev1.EnvVar{
		{Name: "LOG_LEVEL", Value: pick(d, []string{"debug", "info", "warn"})},
		{Name: "GOMEMLIMIT", Value: fmt.Sprintf("%dMiB", d.between(100, 4000))},
	}
	for _, n := range d.Perm(len(words))[:d.IntN(d.between(1, 10))] {
		to := words[n]
		env = append(env, corev1.EnvVar{
			Name: prefix + "_" + strings.ToUpper(to) + "_URL", Value: fmt.Sprintf("http://%s.%s:%d", to, o.namespace, d.between(8000, 9000)),
		})
	}
	if d.chance(60) {
		env = append(env, corev1.EnvVar{Name: "DATABASE_PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: o.app + "-database"}, Key: "password",
		}}})
	}
	env = append(env, fieldVariable("POD_NAME", "metadata.name"))
	if d.chance(40) {
		env = append(env, fieldVariable("POD_NAMESPACE", "metadata.namespace"), fieldVariable("POD_IP", "status.podIP"))
	}
	return env
}

func (o *owner) sideContainer(d draw) corev1.Container {
	c := container(o.app+"-exporter", fmt.Sprintf("registry.example.com/%s/%s-exporter:%s", o.namespace, o.app, version(d)))
	c.Args = []string{"--target=http://127.0.0.1:8080", "--listen=:9101", "--log.format=json"}
	c.Ports = []corev1.ContainerPort{{Name: "exporter", ContainerPort: 9101, Protocol: corev1.ProtocolTCP}}
	c.Resources = resources(d)
	c.LivenessProbe = probe(d, "/healthz", "exporter")
	return c
}

func (o *owner) initContainer(d draw) corev1.Container {
	c := container(o.app+"-migrate", fmt.Sprintf("registry.example.com/%s/%s-migrate:%s", o.namespace, o.app, version(d)))
	c.Command = []string{"/bin/migrate", "--database=" + o.app, "up"}
	return c
}

// container returns a container with what the API server sets by default.
func container(name, image string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

func mount(c *corev1.Container, m corev1.VolumeMount) { c.VolumeMounts = append(c.VolumeMounts, m) }

func fieldVariable(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func resources(d draw) corev1.ResourceRequirements {
	memory := d.between(1, 64) * 64
	r := corev1.ResourceRequirements{
		Requests: quantities(fmt.Sprintf("%dm", d.between(1, 80)*25), fmt.Sprintf("%dMi", memory)),
		Limits:   quantities("", fmt.Sprintf("%dMi", 2*memory)),
	}
	if d.chance(50) {
		r.Limits[corev1.ResourceCPU] = resource.MustParse(fmt.Sprint(d.between(2, 8))) // requests are at most 2
	}
	return r
}

func quantities(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	return list
}

func probe(d draw, path, port string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(port), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: int32(d.between(1, 6) * 5), TimeoutSeconds: int32(d.between(1, 5)), SuccessThreshold: 1, FailureThreshold: 3,
	}
}

func version(d draw) string { return fmt.Sprintf("v%d.%d.%d", d.between(1, 4), d.IntN(60), d.IntN(20)) }
