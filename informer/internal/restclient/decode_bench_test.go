// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// benchPod is a Pod as in a cluster: spec, status, and managedFields that are a
// third of its bytes.
func benchPod(i int) *corev1.Pod {
	fields := `{"f:metadata":{"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},"k:{\"uid\":\"0b1c5e42-3a1c-4a4b-8a4b-0d7a4c9a3f77\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{},"f:protocol":{}}},"f:resources":{},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`
	pod := fixture.SeedPod(fmt.Sprintf("web-5d4f8c7b9-%05d", i))
	pod.Labels = map[string]string{"app": "web", "pod-template-hash": "5d4f8c7b9", "tier": "front"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f8c7b9", UID: "0b1c5e42-3a1c-4a4b-8a4b-0d7a4c9a3f77"}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)},
		{Manager: "kubelet", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields)},
	}
	c := &pod.Spec.Containers[0]
	c.Image = "registry.example.com/team/web:v1.2.3"
	for n := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", n), Value: "a value of some length"})
	}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "token", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true}}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", HostIP: "192.168.0.1"}
	for _, cond := range []corev1.PodConditionType{corev1.PodReady, corev1.PodInitialized, corev1.PodScheduled, corev1.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: cond, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	return pod
}

const benchObjects = 500

// BenchmarkDecode_Watch decodes 500 frames of a watch, with our decoder and
// with client-go, which strips managedFields afterwards like an informer's
// transform.
func BenchmarkDecode_Watch(b *testing.B) {
	s := fixture.TestScheme()
	for _, form := range []struct {
		name string
		p    fixture.Peer
	}{{"protobuf", fixture.ProtobufPeer(s)}, {"json", fixture.JSONPeer(s)}} {
		var wire []byte
		for i := range benchObjects {
			wire = append(wire, form.p.Frame(b, listwatch.FrameAdded, benchPod(i))...)
		}
		for how, together := range map[string]bool{"flyball": false, "flyball, a list": true} {
			b.Run(form.name+"/"+how, func(b *testing.B) {
				d, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(wire)))
				b.ReportAllocs()
				for b.Loop() {
					frames, err := stream(d, form.p, bytes.NewReader(wire), together)
					if err != io.EOF || len(frames) != benchObjects || frames[0].Item.Err != nil {
						b.Fatal(len(frames), err)
					}
				}
			})
		}
		b.Run(form.name+"/client-go", func(b *testing.B) {
			info, _ := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(s).SupportedMediaTypes(), form.p.Media)
			b.SetBytes(int64(len(wire)))
			b.ReportAllocs()
			for b.Loop() {
				src := info.StreamSerializer.NewFrameReader(io.NopCloser(bytes.NewReader(wire)))
				d := restwatch.NewDecoder(streaming.NewDecoder(src, info.StreamSerializer.Serializer), info.Serializer)
				n := 0
				for {
					_, obj, err := d.Decode()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					obj.(*corev1.Pod).ManagedFields = nil
					n++
				}
				if n != benchObjects {
					b.Fatal(n)
				}
			}
		})
	}
}

// BenchmarkDecode_List decodes a page of 500 objects.
func BenchmarkDecode_List(b *testing.B) {
	s := fixture.TestScheme()
	list := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for i := range benchObjects {
		list.Items = append(list.Items, *benchPod(i))
	}
	for _, form := range []struct {
		name string
		p    fixture.Peer
	}{{"protobuf", fixture.ProtobufPeer(s)}, {"json", fixture.JSONPeer(s)}} {
		body := form.p.Encode(b, list)
		scratch := make([]byte, len(body))
		b.Run(form.name+"/flyball", func(b *testing.B) {
			d, err := NewDecoder(reflect.TypeFor[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), false)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				copy(scratch, body) // decoding may change its input
				page, err := d.page(form.p.Media, scratch)
				if err != nil || len(page.Items) != benchObjects || page.Items[0].Err != nil {
					b.Fatal(len(page.Items), err)
				}
			}
		})
		b.Run(form.name+"/client-go", func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				var into corev1.PodList
				form.p.Decode(b, body, &into)
				for i := range into.Items {
					into.Items[i].ManagedFields = nil
				}
				if len(into.Items) != benchObjects {
					b.Fatal(len(into.Items))
				}
			}
		})
	}
}
