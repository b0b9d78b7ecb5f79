// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/simhook"
)

// Now returns the wall clock time for the reconcile of ctx; outside of one, that of the process. A
// recording keeps it, so that a replay writes the same times, and a simulation steps it. It has no
// monotonic reading: measure durations with time.Since.
func Now(ctx context.Context) time.Time { return contextvalues.Now(ctx) }

// Rand returns random numbers for the reconcile of ctx; outside of one, for the process. A recording
// keeps them, so that a replay draws the same. They are not for secrets. It is not safe for
// concurrent use.
func Rand(ctx context.Context) *rand.Rand { return rand.New(chance{ctx}) }

// chance is the source of Rand.
type chance struct{ context.Context }

// Uint64 implements rand.Source.
func (c chance) Uint64() uint64 {
	half := func() uint64 { return uint64(contextvalues.Random(c, "reconcile") * (1 << 32)) }
	return half()<<32 | half()
}

// replayedKeys are the keys that were added during a replay, by their texts. The zero value is
// ready to use.
type replayedKeys[K comparable] struct {
	mu     sync.Mutex
	byText map[string]K
}

func (k *replayedKeys[K]) add(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byText == nil {
		k.byText = make(map[string]K)
	}
	k.byText[keyText(key)] = key
}

func (k *replayedKeys[K]) of(text string) (key K, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, known = k.byText[text]; known {
		return key, true
	}
	if object, is := any(&key).(*Key); is { // its object may be gone, and its retry recorded
		namespace, name, namespaced := strings.Cut(text, "/")
		if *object = (Key{Namespace: namespace, Name: name}); !namespaced {
			*object = Key{Name: text}
		}
		return key, true
	}
	return key, false
}

// next yields the keys that a replay reconciles, each when the recorded program did.
func (k *replayedKeys[K]) next(ctx context.Context, sim simhook.Replay, controller string) iter.Seq[K] {
	return func(yield func(K) bool) {
		for {
			text, ok := sim.Next(ctx, controller)
			if !ok {
				return
			}
			key, known := k.of(text)
			if !known {
				sim.Unknown(controller, text)
				continue
			}
			if !yield(key) {
				return
			}
		}
	}
}
