// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"reflect"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/internal/applied"
	"github.com/flyball-dev/flyball/kube"
)

const statusName = "status"

// omitter is a client that does not send writes that would change nothing.
type omitter struct {
	client.Client
	cache   *kinds
	owner   string // of the client's options; a call may name another
	applies applied.Memory
	omitted *prometheus.CounterVec
}

func omitting(c client.Client, cache *kinds, opts client.Options) *omitter {
	return &omitter{Client: c, cache: cache, owner: opts.FieldOwner, omitted: registered(prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "flyball_client_omitted_writes_total", Help: "Writes that were not sent because they would have changed nothing.",
	}, []string{"kind", "verb"}))}
}

func (o *omitter) count(kind schema.GroupVersionKind, verb string) {
	o.omitted.WithLabelValues(kind.GroupKind().String(), verb).Inc()
}

// Update implements client.Writer.
func (o *omitter) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	var with client.UpdateOptions
	with.ApplyOptions(opts)
	plain := len(with.DryRun) == 0 && with.Raw == nil
	if plain && ctx.Err() == nil && o.updated(obj, "") {
		return nil
	}
	return o.Client.Update(ctx, obj, opts...)
}

// Patch implements client.Writer.
func (o *omitter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	var with client.PatchOptions
	with.ApplyOptions(opts)
	return o.patch(ctx, obj, patch, "", with, func(patch client.Patch) error { return o.Client.Patch(ctx, obj, patch, opts...) })
}

// patch sends a patch, unless it would change nothing.
func (o *omitter) patch(ctx context.Context, obj client.Object, patch client.Patch, sub string, with client.PatchOptions,
	send func(client.Patch) error,
) error {
	if patch == nil {
		return send(patch)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	once := client.RawPatch(patch.Type(), data)
	plain := len(with.DryRun) == 0 && with.Raw == nil
	if strings.HasPrefix(string(patch.Type()), "application/apply-patch") {
		a := o.applyOf(data, sub, with.FieldManager, ptr.Deref(with.Force, false), with.FieldValidation)
		a.dryRun, a.may = len(with.DryRun) > 0, a.may && plain
		if kind, err := o.GroupVersionKindFor(obj); err == nil { // the body may be YAML
			a.kind, a.key.Kind, a.key.Object = kind, kind.GroupKind(), kube.KeyOf(obj)
		}
		return o.send(ctx, a, obj, func() error { return send(once) })
	}
	if plain && ctx.Err() == nil {
		if held := o.patched(obj, patch.Type(), data); held != nil {
			fill(obj, held)
			return nil
		}
	}
	return send(once)
}

// Apply implements client.Writer.
func (o *omitter) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	var with client.ApplyOptions
	with.ApplyOptions(opts)
	return o.apply(ctx, obj, "", with, func() error { return o.Client.Apply(ctx, obj, opts...) })
}

// Status implements client.StatusClient.
func (o *omitter) Status() client.SubResourceWriter { return o.SubResource(statusName) }

// SubResource implements client.SubResourceClientConstructor.
func (o *omitter) SubResource(name string) client.SubResourceClient {
	inner := o.Client.SubResource(name)
	if name != statusName {
		return inner
	}
	return &statusOmitter{SubResourceClient: inner, omitter: o}
}

// statusOmitter is the client of the status of an omitter.
type statusOmitter struct {
	client.SubResourceClient
	omitter *omitter
}

// Update implements client.SubResourceWriter.
func (s *statusOmitter) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	var with client.SubResourceUpdateOptions
	with.ApplyOptions(opts)
	plain := len(with.DryRun) == 0 && with.Raw == nil && with.SubResourceBody == nil
	if plain && ctx.Err() == nil && s.omitter.updated(obj, statusName) {
		return nil
	}
	return s.SubResourceClient.Update(ctx, obj, opts...)
}

// Patch implements client.SubResourceWriter.
func (s *statusOmitter) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	var with client.SubResourcePatchOptions
	with.ApplyOptions(opts)
	send := func(patch client.Patch) error { return s.SubResourceClient.Patch(ctx, obj, patch, opts...) }
	if with.SubResourceBody != nil {
		defer s.omitter.forget(obj, with.FieldManager)()
		return send(patch)
	}
	return s.omitter.patch(ctx, obj, patch, statusName, with.PatchOptions, send)
}

// Apply implements client.SubResourceWriter.
func (s *statusOmitter) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	var with client.SubResourceApplyOptions
	with.ApplyOpts(opts)
	send := func() error { return s.SubResourceClient.Apply(ctx, obj, opts...) }
	if with.SubResourceBody != nil {
		defer s.omitter.forget(obj, with.FieldManager)()
		return send()
	}
	return s.omitter.apply(ctx, obj, statusName, with.ApplyOptions, send)
}

// fill sets obj to a copy of an object of the same type, but for its kind.
func fill(obj client.Object, held kube.Object) {
	kind := obj.GetObjectKind().GroupVersionKind()
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(kube.Copy(held)).Elem())
	obj.GetObjectKind().SetGroupVersionKind(kind)
}
