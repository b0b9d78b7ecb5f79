// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// walk is what the user does, one step after the other.
type walk struct {
	name  string
	steps []step
	// returns: the state after the last step has to be that after the first one.
	returns bool
	// fresh is the walk that creates at once what this one reaches by its second step; empty: none.
	fresh string
	// gone are the samples that are deleted in the end.
	gone []*unstructured.Unstructured
	// plain: no faults are tried.
	plain bool
	// suite: the specs of a suite are the user. There is one step.
	suite bool
	field *fieldOf // that it changes; nil: none
}

// step is one action of the user.
type step struct {
	text string
	do   func(ctx context.Context, as *client.Client) error
}

// create creates objects in their order.
func create(samples []*unstructured.Unstructured) step {
	return step{"create the samples", func(ctx context.Context, as *client.Client) error {
		for _, sample := range samples {
			err := as.Create(ctx, sample.DeepCopy())
			for range mostEnding {
				if !apierrors.IsAlreadyExists(err) || !ending(ctx, as, sample) {
					break
				}
				time.Sleep(time.Second)
				err = as.Create(ctx, sample.DeepCopy())
			}
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("create the sample %s %s: %w", sample.GetKind(), kube.KeyOf(sample), err)
			}
		}
		return nil
	}}
}

// mostEnding is how many seconds create waits until the object from before is gone.
const mostEnding = 120

// ending reports whether an object is being deleted.
func ending(ctx context.Context, as *client.Client, of *unstructured.Unstructured) bool {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(of.GroupVersionKind())
	err := as.Get(ctx, kube.KeyOf(of), now)
	return apierrors.IsNotFound(err) || err == nil && now.GetDeletionTimestamp() != nil
}

// remove deletes samples as kubectl does, with what they own, the last one first.
func remove(samples []*unstructured.Unstructured) step {
	return step{"delete the samples", func(ctx context.Context, as *client.Client) error {
		for _, sample := range slices.Backward(samples) {
			if err := as.Delete(ctx, sample.DeepCopy(), client.Propagation("Background")); err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete the sample %s %s: %w", sample.GetKind(), kube.KeyOf(sample), err)
			}
		}
		return nil
	}}
}

// set makes the change of a field, or undoes it.
func set(sample *unstructured.Unstructured, m mutation, undo bool) step {
	text, value := fmt.Sprintf("set %s of %s %s to %s", m.path, sample.GetKind(), sample.GetName(), valueText(m.value)), m.value
	if undo {
		text, value = fmt.Sprintf("set %s of %s %s back to %s", m.path, sample.GetKind(), sample.GetName(), valueText(m.was)), m.was
	}
	return step{text, func(ctx context.Context, as *client.Client) error {
		const tries = 20
		var err error
		for range tries {
			now := &unstructured.Unstructured{}
			now.SetGroupVersionKind(sample.GroupVersionKind())
			if err = as.Get(ctx, kube.KeyOf(sample), now); err != nil {
				break
			}
			if err = m.path.set(now.Object, value); err != nil {
				break
			}
			if err = as.Update(ctx, now); !apierrors.IsConflict(err) {
				break
			}
		}
		return err
	}}
}

// walksOf returns the walks with faults that need no field, and those of fields, which have no faults.
func walksOf(samples []*unstructured.Unstructured, custom []*unstructured.Unstructured, fields []fieldOf) (all []walk) {
	made, gone := create(samples), remove(custom)
	all = append(all,
		walk{name: "create", steps: []step{made}},
		walk{name: "delete", steps: []step{made, gone}, gone: custom},
		walk{name: "create again", steps: []step{made, gone, made}, returns: true},
	)
	for i, f := range fields {
		name := f.name()
		all = append(all,
			walk{name: "fresh " + name, steps: []step{createWith(samples, f)}, plain: true},
			walk{name: name, steps: []step{made, set(f.sample, f.mutation, false), set(f.sample, f.mutation, true)}, returns: true, fresh: "fresh " + name, plain: true, field: &fields[i]},
		)
	}
	return all
}

// name names the walk of a field.
func (f fieldOf) name() string {
	return fmt.Sprintf("%s %s %s", f.of, f.path, f.how)
}

// different leaves out changes that another sample of the kind has too, and tells those of the others apart by its name.
func different(fields []fieldOf) (out []fieldOf) {
	known, first := map[string]bool{}, map[string]*unstructured.Unstructured{}
	for _, f := range fields {
		kind := f.sample.GroupVersionKind().GroupKind().String()
		text := fmt.Sprintln(kind, f.path, f.how, f.was, f.value)
		if known[text] {
			continue
		}
		known[text] = true
		if first[kind] == nil {
			first[kind] = f.sample
		}
		if f.of = f.sample.GetKind(); f.sample != first[kind] {
			f.of += " " + aim.KeyText(kube.KeyOf(f.sample))
		}
		out = append(out, f)
	}
	return out
}

// withoutUndo returns the walk of a field whose old value the server does not accept any more.
func (w walk) withoutUndo() walk {
	w.steps, w.returns = w.steps[:2], false
	return w
}

// faulty returns the walks of a field with faults.
func (w walk) faulty() []walk {
	set := walk{name: "set " + w.name, steps: w.steps[:2]}
	if len(w.steps) == 2 {
		return []walk{set}
	}
	return []walk{set, {name: "undo " + w.name, steps: w.steps}}
}

// createWith creates the samples with another value of a field.
func createWith(samples []*unstructured.Unstructured, f fieldOf) step {
	return step{fmt.Sprintf("create the samples with %s %s", f.path, valueText(f.value)), func(ctx context.Context, as *client.Client) error {
		changed := make([]*unstructured.Unstructured, len(samples))
		for i, sample := range samples {
			changed[i] = sample.DeepCopy()
			if sample == f.sample {
				if err := f.path.set(changed[i].Object, f.value); err != nil {
					return err
				}
			}
		}
		return create(changed).do(ctx, as)
	}}
}

// fieldOf is a change of a field of a sample.
type fieldOf struct {
	sample *unstructured.Unstructured
	mutation
	of string // its kind, and the name if it is not the first sample of that
}
