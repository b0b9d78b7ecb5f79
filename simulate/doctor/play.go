// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate"
)

// stage is where a walk is played: a bubble in virtual time, or processes in real time.
type stage interface {
	server() *simulate.Server
	// client is the user's.
	client() *client.Client
	// begin is called before each step.
	begin(step int)
	// pause lets time pass.
	pause(d time.Duration)
	// hurry lets pass what a user waits who does not wait for rest. A run without faults took so long.
	hurry(took time.Duration)
	// rest blocks until nothing moves, and returns what still does when that takes too long. expected reports
	// whether the objects are those of a run without faults.
	rest(expected func() bool) (moves string)
}

// mostCalls is how often a step of the user is tried while a webhook does not answer, once a second.
const mostCalls = 20

// isWebhookDown reports whether the server could not ask a webhook: the program that serves it may start again.
func isWebhookDown(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// play does the steps of a walk one after the other. like is a run without faults; nil: there is none yet.
func (t *trial) play(ctx context.Context, w walk, on stage, like *trial) {
	for i, s := range w.steps {
		on.begin(i)
		begun := time.Now()
		err := s.do(ctx, on.client())
		for range mostCalls {
			if !isWebhookDown(err) {
				break
			}
			on.pause(time.Second)
			err = s.do(ctx, on.client())
		}
		if err != nil {
			t.refused = fmt.Sprintf("%s: %v", s.text, err)
			return
		}
		var end objects
		if i+1 == t.plan.Hurry && like != nil && i < len(like.took) {
			on.hurry(like.took[i])
		} else if moves := on.rest(func() bool { return like.expects(i, t.content(on.server())) }); moves != "" {
			t.addWrong(wrong{neverRests, fmt.Sprintf("the program does not come to rest after '%s': %s", s.text, moves)})
		} else {
			end = t.content(on.server())
		}
		t.ends = append(t.ends, end)
		t.took = append(t.took, time.Since(begun).Round(time.Millisecond))
	}
	t.stubs = refusalsOf(on.server())
}
