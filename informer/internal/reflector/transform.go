// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// decodingAgain is a ListerWatcher that can decode an item again until the next
// item or frame is read.
type decodingAgain interface {
	Again(listwatch.Item[kube.Object]) (kube.Object, error)
}

// Again returns the function with which lw decodes an item again, because a failed transform
// may have modified it. Nil: that is not possible, so objects are copied before.
func Again(lw listwatch.ListerWatcher[kube.Object]) func(listwatch.Item[kube.Object]) (kube.Object, error) {
	if d, ok := lw.(decodingAgain); ok {
		return d.Again
	}
	return nil
}

// grafting is a ListerWatcher whose transformed objects can share parts. Nil: they do not.
type grafting interface{ Grafter() *restclient.Grafter }

// processor transforms and packs the items of one page or stream.
type processor struct {
	transform Transform                           // nil: none
	again     func(listItem) (kube.Object, error) // as of Again
	probe     Probe
	pack      func(listItem) listItem
	grafter   *restclient.Grafter // nil: none
}

func (l ListerWatcher) processor() processor {
	p := processor{again: Again(l.From), probe: l.Probe, pack: l.Pack}
	if l.Transform != nil {
		p.transform = l.Transform()
	}
	if from, ok := l.From.(grafting); ok && p.transform != nil {
		p.grafter = from.Grafter()
	}
	return p
}

func (p processor) setGoroutine() {
	if p.transform != nil && p.probe != nil {
		p.probe.SetGoroutine()
	}
}

// process returns the transformed and packed item.
func (p processor) process(i listItem) listItem {
	if i.Anomaly == base.Foreign {
		i.Raw = nil
		return i
	}
	if p.transform != nil && i.Err == nil && i.Anomaly != base.OtherKind && i.Anomaly != base.OtherNamespace {
		if p.probe != nil {
			p.probe.Begin()
			defer p.probe.End()
		}
		i = p.transformed(i)
	}
	if p.pack != nil {
		i = p.pack(i)
	}
	i.Raw = nil // its buffer is used again
	return i
}

// transformed returns the transformed item. An error or panic of the transform becomes the
// item's.
func (p processor) transformed(i listItem) listItem {
	var none kube.Object
	original := none
	if p.again == nil {
		original = kube.Copy(i.Object)
	}
	if p.grafter != nil {
		p.grafter.Begin(i)
	}
	obj, err := base.CallTransform(p.transform, i.Object)
	if err == nil {
		i.Object = obj
		if p.grafter != nil {
			i = p.grafter.End(i)
		}
		return i
	}
	i.Object, i.Err = none, fmt.Errorf("transform: %w", err)
	if p.again != nil {
		if original, err = p.again(i); err != nil {
			return i // retried only with its next version
		}
	}
	i.Refused = original
	i.Metadata = base.MetadataOf(original, original.GetObjectKind().GroupVersionKind())
	return i
}
