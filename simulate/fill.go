// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// fill gives a new object what the server allots: addresses, ports, and
// what is made of its identity.
func (s *Server) fill(q *writing, obj *object.Object) error {
	m := obj.Meta()
	switch q.kind.GroupResource().String() {
	case "services":
		return s.fillService(obj, nil)
	case "namespaces":
		jsonvalue.SetIn(obj.Fields, []any{"kubernetes"}, "spec", "finalizers")
		jsonvalue.SetIn(obj.Fields, m.GetName(), "metadata", "labels", corev1.LabelMetadataName)
	case "jobs.batch":
		return fillJob(obj)
	case "pods":
		return s.fillPod(q, obj)
	case "persistentvolumeclaims", "persistentvolumes":
		protect(m, map[string]string{"PersistentVolumeClaim": "kubernetes.io/pvc-protection", "PersistentVolume": "kubernetes.io/pv-protection"}[q.kind.Kind])
	case "volumeattributesclasses.storage.k8s.io":
		protect(m, "kubernetes.io/vac-protection")
	case signingRequests:
		fillSigningRequest(q, obj)
	case kinds.APIServices.String():
		fillAPIService(obj)
	case "nodes":
		return fillNode(obj)
	case "leases.coordination.k8s.io":
		uncoordinated(obj)
	case "daemonsets.apps":
		if count, err := strconv.ParseInt(m.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], 10, 64); err != nil || count < 1 {
			jsonvalue.SetIn(obj.Fields, "1", "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
		}
	case "endpointslices.discovery.k8s.io":
		endpoints, _ := obj.Fields["endpoints"].([]any)
		for _, e := range endpoints {
			if e, ok := e.(map[string]any); ok {
				delete(e, "deprecatedTopology") // which a create cannot set
			}
		}
	}
	return nil
}

// protect adds a finalizer, which a controller takes away when the object is not used.
func protect(m *unstructured.Unstructured, finalizer string) {
	if !slices.Contains(m.GetFinalizers(), finalizer) {
		m.SetFinalizers(append(m.GetFinalizers(), finalizer))
	}
}

// fillSigningRequest notes who asks for the certificate.
func fillSigningRequest(q *writing, obj *object.Object) {
	spec, ok := obj.Fields["spec"].(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	spec["username"] = q.user.Name
	if q.user.UID != "" {
		spec["uid"] = q.user.UID
	}
	var groups []any
	for _, g := range q.user.Groups {
		groups = append(groups, g)
	}
	if groups != nil {
		spec["groups"] = groups
	}
	extra := map[string]any{}
	for name, values := range q.user.Extra {
		var list []any
		for _, v := range values {
			list = append(list, v)
		}
		extra[name] = list
	}
	if len(extra) > 0 {
		spec["extra"] = extra
	}
}

// fillAPIService gives an APIService its default port, and the status that it
// begins with.
func fillAPIService(obj *object.Object) {
	obj.Fields["status"] = map[string]any{}
	spec, _ := obj.Fields["spec"].(map[string]any)
	if service, ok := spec["service"].(map[string]any); ok && service["port"] == nil {
		service["port"] = int64(defaults.HookPort)
	}
}

// uncoordinated takes from a Lease what only a server with the feature gate CoordinatedLeaderElection stores.
func uncoordinated(obj *object.Object) {
	spec, _ := obj.Fields["spec"].(map[string]any)
	delete(spec, "strategy")
	delete(spec, "preferredHolder")
}

// fillUpdate gives an object that is written again what the server allots.
func (s *Server) fillUpdate(q *writing, old, obj *object.Object) error {
	if q.kind.GroupResource().String() == signingRequests {
		return fillSigned(q.subresource, old, obj)
	}
	if q.subresource != "" {
		return nil
	}
	spec, _ := old.Fields["spec"].(map[string]any)
	switch q.kind.GroupResource().String() {
	case "services":
		return s.fillService(obj, old)
	case "leases.coordination.k8s.io":
		uncoordinated(obj)
	case "namespaces":
		if finalizers, ok := spec["finalizers"]; ok {
			jsonvalue.SetIn(obj.Fields, finalizers, "spec", "finalizers")
		}
	case kinds.Definitions.String():
		jsonvalue.SetIn(obj.Fields, kinds.StoredVersions(obj, old), "status", "storedVersions")
	case "daemonsets.apps":
		count, _ := strconv.Atoi(old.Meta().GetAnnotations()[appsv1.DeprecatedTemplateGeneration])
		if is, _ := obj.Fields["spec"].(map[string]any); !reflect.DeepEqual(is["template"], spec["template"]) {
			count++
		}
		jsonvalue.SetIn(obj.Fields, strconv.Itoa(count), "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
	}
	return nil
}

// fillService allots an address and ports, or carries over those of old.
func (s *Server) fillService(obj, old *object.Object) error {
	service, err := object.TypedOf[corev1.Service](obj)
	if err != nil {
		return err
	}
	before := &corev1.Service{}
	if old != nil {
		if before, err = object.TypedOf[corev1.Service](old); err != nil {
			return err
		}
	}
	spec := &service.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		spec.ClusterIP, spec.ClusterIPs, spec.IPFamilies, spec.IPFamilyPolicy = "", nil, nil, nil
		return object.Retype(obj, service)
	}
	if spec.ClusterIP == "" {
		if spec.ClusterIP = before.Spec.ClusterIP; spec.ClusterIP == "" {
			spec.ClusterIP = s.allotter.ServiceAddress()
		}
	}
	spec.ClusterIPs = []string{spec.ClusterIP}
	if spec.ClusterIP == corev1.ClusterIPNone && len(spec.Selector) == 0 && spec.IPFamilyPolicy == nil {
		spec.IPFamilies, spec.IPFamilyPolicy = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}, new(corev1.IPFamilyPolicyRequireDualStack)
	}
	if len(spec.IPFamilies) == 0 {
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	defaults.OrElse(&spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if spec.Type == corev1.ServiceTypeLoadBalancer && spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
		defaults.ZeroElse(&spec.HealthCheckNodePort, before.Spec.HealthCheckNodePort)
		if spec.HealthCheckNodePort == 0 {
			spec.HealthCheckNodePort = s.allotter.NodePort()
		}
	}
	external := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer && (spec.AllocateLoadBalancerNodePorts == nil || *spec.AllocateLoadBalancerNodePorts)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		if !external {
			if before.Spec.Type != spec.Type && old != nil {
				p.NodePort = 0
			}
			continue
		}
		for _, was := range before.Spec.Ports {
			if was.Port == p.Port && was.Protocol == p.Protocol && p.NodePort == 0 {
				p.NodePort = was.NodePort
			}
		}
		if p.NodePort == 0 {
			p.NodePort = s.allotter.NodePort()
		}
	}
	return object.Retype(obj, service)
}

// fillJob gives a Job the selector and the labels by which it knows its Pods.
func fillJob(obj *object.Object) error {
	job, err := object.TypedOf[batchv1.Job](obj)
	if err != nil {
		return err
	}
	if job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return nil
	}
	uid := string(job.UID)
	if job.Spec.Template.Labels == nil {
		job.Spec.Template.Labels = map[string]string{}
	}
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		job.Spec.Template.Labels[prefix+"job-name"] = job.Name
		job.Spec.Template.Labels[prefix+"controller-uid"] = uid
	}
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": uid}}
	}
	if obj.Labelled || len(job.Labels) == 0 {
		job.Labels = job.Spec.Template.Labels // with those that it has just got
	}
	return object.Retype(obj, job)
}

// leaveSeconds is how long a Pod stays on a node that is away.
const leaveSeconds = 300

// fillPod gives a Pod the priority and the tolerations that all have.
func (s *Server) fillPod(q *writing, obj *object.Object) error {
	pod, err := object.TypedOf[corev1.Pod](obj)
	if err != nil {
		return err
	}
	if err := s.runnable(q, pod); err != nil {
		return err
	}
	if err := s.prioritize(q, pod); err != nil {
		return err
	}
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerated := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		})
		if !tolerated {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
				Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(leaveSeconds))})
		}
	}
	return object.Retype(obj, pod)
}

// fillNode keeps Pods off a new node until somebody says that it is ready.
func fillNode(obj *object.Object) error {
	node, err := object.TypedOf[corev1.Node](obj)
	if err != nil {
		return err
	}
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.MatchTaint(&taint) }) {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
	return object.Retype(obj, node)
}
