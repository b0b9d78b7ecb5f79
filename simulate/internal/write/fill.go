// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// fill sets what the server decides about a new object: addresses, ports, and what follows
// from its identity.
func (p *Path) fill(q *Request, obj *object.Object) error {
	m := obj.Meta()
	if finalizer := protections[q.Kind.GroupResource().String()]; finalizer != "" && !slices.Contains(m.GetFinalizers(), finalizer) {
		m.SetFinalizers(append(m.GetFinalizers(), finalizer))
	}
	switch q.Kind.GroupResource().String() {
	case "services":
		return p.fillService(obj, nil)
	case "namespaces":
		jsontree.SetIn(obj.Fields, []any{"kubernetes"}, "spec", "finalizers")
		jsontree.SetIn(obj.Fields, m.GetName(), "metadata", "labels", corev1.LabelMetadataName)
	case "jobs.batch":
		return fillJob(obj)
	case "pods":
		return p.fillPod(q, obj)
	case signingRequests:
		fillSigningRequest(q, obj)
	case kinds.APIServices.String():
		fillAPIService(obj)
	case "nodes":
		return fillNode(obj)
	case "leases.coordination.k8s.io":
		clearCoordination(obj)
	case "daemonsets.apps":
		if count, err := strconv.ParseInt(m.GetAnnotations()[appsv1.DeprecatedTemplateGeneration], 10, 64); err != nil || count < 1 {
			jsontree.SetIn(obj.Fields, "1", "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
		}
	case "endpointslices.discovery.k8s.io":
		endpoints, _ := obj.Fields["endpoints"].([]any)
		for _, e := range endpoints {
			fields, _ := e.(map[string]any)
			delete(fields, "deprecatedTopology") // a create cannot set it
		}
	}
	return nil
}

// protections are finalizers, which a controller removes when the object is not in use.
var protections = map[string]string{
	"persistentvolumeclaims":                 "kubernetes.io/pvc-protection",
	"persistentvolumes":                      "kubernetes.io/pv-protection",
	"volumeattributesclasses.storage.k8s.io": "kubernetes.io/vac-protection",
}

// fillSigningRequest records the user who asks for the certificate.
func fillSigningRequest(q *Request, obj *object.Object) {
	spec, ok := obj.Fields["spec"].(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	spec["username"] = q.User.Name
	if q.User.UID != "" {
		spec["uid"] = q.User.UID
	}
	var groups []any
	for _, g := range q.User.Groups {
		groups = append(groups, g)
	}
	if groups != nil {
		spec["groups"] = groups
	}
	extra := map[string]any{}
	for name, values := range q.User.Extra {
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

// fillAPIService gives an APIService its default port and its first status.
func fillAPIService(obj *object.Object) {
	obj.Fields["status"] = map[string]any{}
	spec, _ := obj.Fields["spec"].(map[string]any)
	if service, ok := spec["service"].(map[string]any); ok && service["port"] == nil {
		service["port"] = int64(defaults.HookPort)
	}
}

// clearCoordination removes from a Lease what only a server with the feature gate
// CoordinatedLeaderElection stores.
func clearCoordination(obj *object.Object) {
	spec, _ := obj.Fields["spec"].(map[string]any)
	delete(spec, "strategy")
	delete(spec, "preferredHolder")
}

// fillUpdate sets what the server decides about an object that is updated.
func (p *Path) fillUpdate(q *Request, old, obj *object.Object) error {
	if q.Kind.GroupResource().String() == signingRequests {
		return fillSigned(q.Subresource, old, obj)
	}
	if q.Subresource != "" {
		return nil
	}
	spec, _ := old.Fields["spec"].(map[string]any)
	switch q.Kind.GroupResource().String() {
	case "services":
		return p.fillService(obj, old)
	case "leases.coordination.k8s.io":
		clearCoordination(obj)
	case "namespaces":
		if finalizers, ok := spec["finalizers"]; ok {
			jsontree.SetIn(obj.Fields, finalizers, "spec", "finalizers")
		}
	case kinds.Definitions.String():
		if status, ok := obj.Fields["status"].(map[string]any); ok {
			obj.Fields["status"] = maps.Clone(status) // it is that of old, which may stay as it is
		}
		jsontree.SetIn(obj.Fields, kinds.StoredVersions(obj, old), "status", "storedVersions")
	case "daemonsets.apps":
		count, _ := strconv.Atoi(old.Meta().GetAnnotations()[appsv1.DeprecatedTemplateGeneration])
		if is, _ := obj.Fields["spec"].(map[string]any); !reflect.DeepEqual(is["template"], spec["template"]) {
			count++
		}
		jsontree.SetIn(obj.Fields, strconv.Itoa(count), "metadata", "annotations", appsv1.DeprecatedTemplateGeneration)
	}
	return nil
}

// fillService allots an address and ports, or keeps those of old.
func (p *Path) fillService(obj, old *object.Object) error {
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
			spec.ClusterIP = p.Allotter.ServiceAddress()
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
			spec.HealthCheckNodePort = p.Allotter.NodePort()
		}
	}
	setNodePorts(spec, &before.Spec, p.Allotter.NodePort)
	return object.Retype(obj, service)
}

// setNodePorts keeps the node ports of the spec before, which is zero for a new Service, and sets
// those that are missing.
func setNodePorts(spec, before *corev1.ServiceSpec, free func() int32) {
	external := spec.Type == corev1.ServiceTypeNodePort || spec.Type == corev1.ServiceTypeLoadBalancer && ptr.Deref(spec.AllocateLoadBalancerNodePorts, true)
	for i := range spec.Ports {
		port := &spec.Ports[i]
		if !external {
			if before.Type != "" && before.Type != spec.Type {
				port.NodePort = 0
			}
			continue
		}
		for _, was := range before.Ports {
			if was.Port == port.Port && was.Protocol == port.Protocol && port.NodePort == 0 {
				port.NodePort = was.NodePort
			}
		}
		if port.NodePort == 0 {
			port.NodePort = free()
		}
	}
}

// fillJob gives a Job the selector and the labels of its Pods.
func fillJob(obj *object.Object) error {
	job, err := object.TypedOf[batchv1.Job](obj)
	if err != nil {
		return err
	}
	if job.Spec.ManualSelector != nil && *job.Spec.ManualSelector {
		return nil
	}
	uid := string(job.UID)
	for _, prefix := range []string{"", "batch.kubernetes.io/"} {
		metav1.SetMetaDataLabel(&job.Spec.Template.ObjectMeta, prefix+"job-name", job.Name)
		metav1.SetMetaDataLabel(&job.Spec.Template.ObjectMeta, prefix+"controller-uid", uid)
	}
	if job.Spec.Selector == nil {
		job.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": uid}}
	}
	if obj.Labelled || len(job.Labels) == 0 {
		job.Labels = job.Spec.Template.Labels // with the new ones
	}
	return object.Retype(obj, job)
}

// leaveSeconds is how long a Pod stays on a node that is not reachable.
const leaveSeconds = 300

// fillPod gives a Pod its priority and the tolerations of all Pods.
func (p *Path) fillPod(q *Request, obj *object.Object) error {
	pod, err := object.TypedOf[corev1.Pod](obj)
	if err != nil {
		return err
	}
	if err := p.checkRuntime(q, pod); err != nil {
		return err
	}
	if err := p.setPriority(q, pod); err != nil {
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

// fillNode keeps Pods off a new node until it is ready.
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
