// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"

	"github.com/flyball-dev/flyball/kube"
)

// ChannelOptions of a Channel.
type ChannelOptions struct {
	// Name in logs and states. Empty: "channel".
	Name string
}

// ChannelSource is the source of a channel's keys. Make it with Channel.
type ChannelSource[K comparable] struct {
	*record
	keys <-chan K
}

// Channel returns a source of keys from outside the cluster, such as those of a
// webhook. Each received key is added at once, so a sender never waits for a
// reconcile. Closing the channel ends the source without an error. Keys that
// were sent but not received when the controller ends are lost: send them again
// after a start if they must not be missed. A nil channel is misuse, returned
// by Run.
func Channel[K comparable](keys <-chan K, opts ChannelOptions) *ChannelSource[K] {
	var misuse error
	if keys == nil {
		misuse = errors.New("the channel is nil; make one and close it when nothing follows")
	}
	return &ChannelSource[K]{record: newRecord(named("channel", opts.Name), misuse), keys: keys}
}

func named(what, name string) string {
	if name == "" {
		return what
	}
	return what + " " + name
}

// Run adds the keys that arrive until the channel is closed or ctx ends. It is
// synced as soon as it runs.
func (s *ChannelSource[K]) Run(ctx context.Context, add func(K, Cause)) error {
	if err := s.begin(); err != nil {
		return err
	}
	close(s.synced)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case key, ok := <-s.keys:
			if !ok {
				return nil
			}
			s.events.Add(1)
			s.record.keys.Add(1)
			add(key, causeWithout(s.name, key))
		}
	}
	return nil
}

// causeWithout returns the cause of a key without an event.
func causeWithout[K comparable](name string, key K) Cause {
	c := Cause{Source: name}
	if object, ok := any(key).(kube.Key); ok {
		c.Object = object
	}
	return c
}
