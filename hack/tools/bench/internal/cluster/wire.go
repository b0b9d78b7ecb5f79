// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Form is a media type that a kube-apiserver answers in.
type Form string

// The forms. A kube-apiserver sends custom resources only as JSON.
const (
	JSON     Form = "application/json"
	Protobuf Form = "application/vnd.kubernetes.protobuf"
)

// Encoder encodes objects as a kube-apiserver does. What it returns is the caller's.
type Encoder struct {
	form  Form
	codec runtime.Encoder // of Pods
}

// NewEncoder returns an encoder of form.
func NewEncoder(form Form) (*Encoder, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), string(form))
	if !ok {
		return nil, fmt.Errorf("there is no serializer of %q", form)
	}
	return &Encoder{form: form, codec: scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)}, nil
}

// Body returns obj as the body of an answer: protobuf in the frame of runtime.Unknown.
func (e *Encoder) Body(obj runtime.Object) ([]byte, error) {
	codec := e.codec
	if _, ok := obj.(runtime.Unstructured); ok {
		if e.form != JSON {
			return nil, fmt.Errorf("encode a custom resource as %q: a server sends them as JSON", e.form)
		}
		codec = unstructured.UnstructuredJSONScheme
	}
	return runtime.Encode(codec, obj)
}

// Event returns one frame of a watch.
func (e *Encoder) Event(typ watch.EventType, obj runtime.Object) ([]byte, error) {
	body, err := e.Body(obj)
	if err != nil {
		return nil, err
	}
	if e.form == JSON {
		return fmt.Appendf(nil, "{\"type\":%q,\"object\":%s}\n", typ, bytes.TrimSpace(body)), nil
	}
	event := metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: body}}
	frame := make([]byte, 4+event.Size())
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-4))
	if _, err := event.MarshalTo(frame[4:]); err != nil {
		return nil, err
	}
	return frame, nil
}

// Collection is what a server has of a kind.
type Collection[T runtime.Object] struct {
	// Objects in the order of a list.
	Objects iter.Seq[T]
	// Len is the number of objects.
	Len int
	// Version is the resource version of a list.
	Version int64

	empty func(metav1.ObjectMeta) T
	list  func(metav1.ListMeta, []T) runtime.Object
}

// Events returns the frames of a streaming list: an event per object, and the bookmark that
// ends the initial events.
func Events[T runtime.Object](e *Encoder, c Collection[T]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for obj := range c.Objects {
			if frame, err := e.Event(watch.Added, obj); !yield(frame, err) || err != nil {
				return
			}
		}
		yield(e.Event(watch.Bookmark, c.empty(metav1.ObjectMeta{
			ResourceVersion: strconv.FormatInt(c.Version, 10), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		})))
	}
}

// Pages returns the bodies of a paged list, with limit objects each; the token of the n-th
// page, from 1, is n in decimal digits. limit 0: one page.
func Pages[T runtime.Object](e *Encoder, c Collection[T], limit int) iter.Seq2[[]byte, error] {
	if limit <= 0 {
		limit = max(c.Len, 1)
	}
	return func(yield func([]byte, error) bool) {
		page, sent := make([]T, 0, limit), 0
		flush := func() bool {
			sent += len(page)
			meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(c.Version, 10)}
			if left := int64(c.Len - sent); left > 0 {
				meta.Continue, meta.RemainingItemCount = strconv.Itoa(sent/limit), &left
			}
			body, err := e.Body(c.list(meta, page))
			page = page[:0]
			return yield(body, err) && err == nil
		}
		for obj := range c.Objects {
			if page = append(page, obj); len(page) == limit && !flush() {
				return
			}
		}
		if len(page) > 0 || sent == 0 {
			flush()
		}
	}
}

// Collection returns the Pods as a server has them.
func (p *Pods) Collection() Collection[*corev1.Pod] {
	return Collection[*corev1.Pod]{
		Objects: p.All(), Len: p.Len(), Version: p.Version(),
		empty: func(meta metav1.ObjectMeta) *corev1.Pod {
			return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
		},
		list: func(meta metav1.ListMeta, pods []*corev1.Pod) runtime.Object {
			list := &corev1.PodList{ListMeta: meta, Items: make([]corev1.Pod, len(pods))}
			for i, pod := range pods {
				list.Items[i] = *pod
				list.Items[i].TypeMeta = metav1.TypeMeta{} // as a server sends the items of a list
			}
			return list
		},
	}
}
