// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// endpointKeeper writes the EndpointSlices of Services.
type endpointKeeper struct{ *controllers }

const (
	perSlice     = 100 // endpoints
	slicesKeeper = "endpointslice-controller.k8s.io"
)

var (
	serviceResource = schema.GroupResource{Resource: "services"}
	sliceResource   = schema.GroupResource{Group: discoveryv1.GroupName, Resource: "endpointslices"}
)

func (endpointKeeper) name() string { return "endpointslices" }

func (a endpointKeeper) observe(c revisions.Change, look func(Reference)) {
	switch c.Resource {
	case serviceResource:
		look(aboutOf(c))
	case sliceResource:
		a.lookAtControllers(c, serviceResource, look)
	case object.Pods:
		for _, about := range a.index.each(serviceResource, c.Key.Namespace) {
			service := read[corev1.Service](a.controllers, about)
			if service != nil && (selects(service, c.Before) || selects(service, c.After)) {
				look(about)
			}
		}
	}
}

func selects(service *corev1.Service, pod *object.Object) bool {
	return pod != nil && len(service.Spec.Selector) > 0 && labels.SelectorFromSet(service.Spec.Selector).Matches(object.LabelSet(pod))
}

func sameEndpoints(a, b *discoveryv1.EndpointSlice) bool {
	return equality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) && equality.Semantic.DeepEqual(a.Ports, b.Ports) && maps.Equal(a.Labels, b.Labels)
}

func (a endpointKeeper) act(ctx context.Context, about Reference) (time.Duration, error) {
	service := read[corev1.Service](a.controllers, about)
	if service == nil || !object.Unset(service.DeletionTimestamp) || len(service.Spec.Selector) == 0 || service.Spec.Type == corev1.ServiceTypeExternalName {
		return 0, nil
	}
	wanted := a.wanted(service)
	for _, held := range a.index.of(service.UID) {
		slice := read[discoveryv1.EndpointSlice](a.controllers, held)
		if held.GroupResource != sliceResource || slice == nil || slice.Labels[discoveryv1.LabelManagedBy] != slicesKeeper {
			continue
		}
		if len(wanted) == 0 {
			if err := a.discard(ctx, held); err != nil {
				return 0, err
			}
			continue
		}
		is := wanted[0]
		wanted = wanted[1:]
		if sameEndpoints(slice, is) {
			continue
		}
		if _, err := update(ctx, a.controllers, byControllers, held, "", func(slice *discoveryv1.EndpointSlice) {
			slice.Endpoints, slice.Ports, slice.Labels = is.Endpoints, is.Ports, is.Labels
		}); err != nil {
			return 0, err
		}
	}
	for _, slice := range wanted {
		if _, err := a.create(ctx, byControllers, sliceResource, slice); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// wanted returns the EndpointSlices that a Service should have: at least one.
func (a endpointKeeper) wanted(service *corev1.Service) (out []*discoveryv1.EndpointSlice) {
	var endpoints []discoveryv1.Endpoint
	var first *corev1.Pod
	for _, about := range a.index.each(object.Pods, service.Namespace) {
		obj := a.get(about)
		if obj == nil || !selects(service, obj) {
			continue
		}
		pod := read[corev1.Pod](a.controllers, about)
		if pod == nil || pod.Status.PodIP == "" || ended(pod) {
			continue
		}
		first = cmp.Or(first, pod)
		endpoints = append(endpoints, endpointOf(service, pod))
	}
	for chunk := range slices.Chunk(endpoints, perSlice) {
		out = append(out, sliceOf(service, first, chunk))
	}
	if len(out) == 0 {
		out = append(out, sliceOf(service, nil, []discoveryv1.Endpoint{}))
	}
	return out
}

func endpointOf(service *corev1.Service, pod *corev1.Pod) discoveryv1.Endpoint {
	serving, ending := isReady(pod), !object.Unset(pod.DeletionTimestamp)
	ready := serving && !ending || service.Spec.PublishNotReadyAddresses
	e := discoveryv1.Endpoint{
		Addresses:  []string{pod.Status.PodIP},
		Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &ending},
		NodeName:   &pod.Spec.NodeName,
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
	}
	if pod.Spec.Hostname != "" && pod.Spec.Subdomain == service.Name {
		e.Hostname = &pod.Spec.Hostname
	}
	return e
}

func sliceOf(service *corev1.Service, pod *corev1.Pod, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints}
	slice.Namespace, slice.GenerateName = service.Namespace, service.Name+"-"
	slice.Labels = maps.Clone(service.Labels)
	metav1.SetMetaDataLabel(&slice.ObjectMeta, discoveryv1.LabelServiceName, service.Name)
	metav1.SetMetaDataLabel(&slice.ObjectMeta, discoveryv1.LabelManagedBy, slicesKeeper)
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		slice.Labels[corev1.IsHeadlessService] = ""
	}
	slice.OwnerReferences = controlledBy(service, corev1.SchemeGroupVersion.WithKind("Service"))
	for _, port := range service.Spec.Ports {
		number, found := targetOf(port, pod)
		if found {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Protocol: &port.Protocol, Port: &number, AppProtocol: port.AppProtocol})
		}
	}
	return slice
}

// targetOf returns the port of a Pod that a Service's port leads to.
func targetOf(port corev1.ServicePort, pod *corev1.Pod) (int32, bool) {
	if pod == nil {
		return 0, false
	}
	if port.TargetPort.Type == intstr.Int {
		return port.TargetPort.IntVal, true
	}
	for _, container := range pod.Spec.Containers {
		for _, p := range container.Ports {
			if p.Name == port.TargetPort.StrVal && p.Protocol == port.Protocol {
				return p.ContainerPort, true
			}
		}
	}
	return 0, false
}
