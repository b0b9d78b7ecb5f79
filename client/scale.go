// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/flyball-dev/flyball/informer"
)

const scaleName = "scale"

// Scale reads the scale of the object that obj names, of any kind that has the
// subresource: Deployments, StatefulSets, custom resources that declare it. It
// says how many replicas are wanted, how many there are, and by which labels
// their Pods are found. obj is read and never written.
func (c *Client) Scale(ctx context.Context, obj informer.Object) (*autoscalingv1.Scale, error) {
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource(scaleName).Get(ctx, obj, scale); err != nil {
		return nil, err
	}
	return scale, nil
}

// SetScale makes replicas the wanted number of the object that obj names, whatever
// it was; Preconditions limit that to one version or UID of the object. obj is read
// and never written. Where the number is a field of what one's own controller
// applies, leave it out there, or the two will undo each other.
func (c *Client) SetScale(ctx context.Context, obj informer.Object, replicas int32, opts ...Option) error {
	at, err := c.aim(ctx, verbPatch, scaleName, obj, opts)
	if err != nil {
		return err
	}
	if replicas < 0 {
		return at.wrap(fmt.Errorf("%d replicas: the number must not be negative", replicas))
	}
	change := map[string]any{"spec": map[string]any{"replicas": replicas}}
	a, err := c.sendPatch(ctx, at, obj, MergePatch(change))
	if err != nil {
		return err
	}
	c.observe(at, touchedBy(at, a))
	return nil
}
