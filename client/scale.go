// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/flyball-dev/flyball/kube"
)

const scaleName = "scale"

// Scale reads the scale of the object that obj names, of any kind with the subresource:
// Deployments, StatefulSets, custom resources that declare it. It holds the desired and
// the current number of replicas and the label selector of their Pods. obj is not
// modified.
func (c *Client) Scale(ctx context.Context, obj kube.Object) (*autoscalingv1.Scale, error) {
	scale := &autoscalingv1.Scale{}
	if err := c.SubResource(scaleName).Get(ctx, obj, scale); err != nil {
		return nil, err
	}
	return scale, nil
}

// SetScale sets the desired number of replicas of the object that obj names.
// Preconditions limit that to one version or UID of the object. obj is not modified. If
// your own controller applies the field with that number, omit it there, or the two
// will overwrite each other.
func (c *Client) SetScale(ctx context.Context, obj kube.Object, replicas int32, opts ...Option) error {
	at, err := c.newCall(ctx, verbPatch, scaleName, obj, opts)
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
	c.observe(at, at.effect().TouchedBy(a))
	return nil
}
