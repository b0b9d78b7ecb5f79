// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/internal/applied"
	"github.com/flyball-dev/flyball/kube"
)

// apply is an apply as it is sent, as far as it decides whether its outcome is known.
type apply struct {
	kind   schema.GroupVersionKind
	key    applied.Key
	wanted applied.Digest
	part   applied.Part
	may    bool // be omitted and remembered
	dryRun bool
}

// applyOf reads an apply from its body.
func (o *omitter) applyOf(body []byte, sub, owner string, force bool, validation string) apply {
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        struct {
			Namespace       string `json:"namespace"`
			Name            string `json:"name"`
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Status json.RawMessage `json:"status"`
	}
	err := json.Unmarshal(body, &head)
	a := apply{kind: head.GroupVersionKind(), wanted: applied.WantedOf(body, force, validation)}
	a.may = err == nil && head.Metadata.Name != "" && head.Metadata.ResourceVersion == ""
	a.key = applied.Key{
		Kind: a.kind.GroupKind(), Object: kube.Key{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name},
		Owner: cmp.Or(owner, o.owner), Subresource: sub,
	}
	switch {
	case sub == statusName:
		a.part = applied.Status
	case head.Status == nil:
		a.part = applied.Main
	}
	return a
}

func (o *omitter) apply(ctx context.Context, obj runtime.ApplyConfiguration, sub string, with client.ApplyOptions, send func() error) error {
	body, err := json.Marshal(obj)
	if err != nil {
		return send()
	}
	a := o.applyOf(body, sub, with.FieldManager, ptr.Deref(with.Force, false), "")
	a.dryRun = len(with.DryRun) > 0
	a.may = a.may && !a.dryRun
	return o.send(ctx, a, obj, send)
}

// forget drops what is known of the status of obj until the write that follows has ended.
func (o *omitter) forget(obj any, owner string) (end func()) {
	body, err := json.Marshal(obj)
	if err != nil {
		return func() {}
	}
	done := o.applies.Begin(o.applyOf(body, statusName, owner, false, "").key, time.Now())
	return func() { done(nil) }
}

// send sends an apply of obj unless its outcome is known. obj is then as the server would answer.
func (o *omitter) send(ctx context.Context, a apply, obj any, send func() error) (err error) {
	if a.dryRun {
		return send()
	}
	if held := o.known(a); held != nil && ctx.Err() == nil && answer(obj, held, a.kind) {
		o.count(a.kind, "apply")
		return nil
	}
	var known *applied.Known
	end := o.applies.Begin(a.key, time.Now())
	defer func() { end(known) }()
	if err = send(); err == nil && a.may {
		known = o.answered(a, obj)
	}
	return err
}

// known returns the cached object if the outcome of a is known; else nil.
func (o *omitter) known(a apply) kube.Object {
	if !a.may || !o.applies.Wants(a.key, a.wanted, time.Now()) {
		return nil
	}
	held := o.whole(a)
	if held == nil {
		return nil
	}
	if is, ok := applied.StateOf(held, a.part); !ok || !o.applies.Knows(a.key, a.wanted, is, time.Now()) {
		return nil
	}
	return held
}

// answered returns what to remember of the answer, which is in obj, as the cache would hold it if
// it has all of its fields; nil: nothing.
func (o *omitter) answered(a apply, obj any) *applied.Known {
	held := o.whole(a)
	if held == nil {
		return nil
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	got := reflect.New(reflect.TypeOf(held).Elem()).Interface().(kube.Object)
	if err := json.Unmarshal(text, got); err != nil {
		return nil
	}
	is, ok := applied.StateOf(got, a.part)
	if !ok {
		return nil
	}
	return &applied.Known{Wanted: a.wanted, Answered: is, At: time.Now()}
}

// whole returns the object of a in the cache, shared, if an informer of its version has all of
// its fields; else nil.
func (o *omitter) whole(a apply) kube.Object {
	var forms []kube.Object
	if typed, err := o.cache.Scheme.New(a.kind); err == nil {
		if like, ok := typed.(kube.Object); ok {
			forms = append(forms, like)
		}
	}
	for _, like := range append(forms, &unstructured.Unstructured{}) {
		held := o.cache.factory.Cached(a.kind, a.key.Object, like)
		if held == nil {
			continue
		}
		if _, projected := o.cache.factory.Projected(a.kind, held); !projected {
			return held
		}
	}
	return nil
}

// answer writes held to what the program has applied, as an answer of the server.
func answer(to any, held kube.Object, kind schema.GroupVersionKind) bool {
	if obj, ok := to.(client.Object); ok && reflect.TypeOf(obj) == reflect.TypeOf(held) {
		fill(obj, held)
		return true
	}
	held = kube.Copy(held)
	held.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(held)
	return err == nil && json.Unmarshal(text, to) == nil
}
