// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/webhook"
)

// setUpJudge is the copier with a webhook that rejects a ConfigMap with a bad word.
func setUpJudge(mgr *manager.Manager) error {
	webhook.Validate(mgr.Webhooks(), "", func(_ context.Context, _ *webhook.Request, _, cm *corev1.ConfigMap) error {
		if cm != nil && cm.Data["word"] == "bad" {
			return errors.New("a bad word")
		}
		return nil
	})
	return setUpCopier(mgr)
}

func TestKit_WebhooksAreCalledOverTheSimulatedNetwork_K11(t *testing.T) {
	cfg := kit.Config{Faults: kit.Plan{}, Webhooks: []string{"testdata"}}
	sound(t, kit.Run(t, cfg, 1, func(w *kit.World) {
		create := func(name, word string) error {
			return w.Client().Create(context.Background(), configMap(name, map[string]string{"word": word}))
		}
		says := func(when string, err error, want string) {
			if err == nil || !strings.Contains(err.Error(), want) {
				w.Errorf("%s a write ends with %v, want %q", when, err, want)
			}
		}
		says("before the program runs", create("early", "good"), "connection refused")
		w.Run(setUpJudge)
		w.Create(configMap("a", map[string]string{"word": "good"})) // waits until the webhook can be called
		says("when the webhook runs", create("bad", "bad"), "a bad word")
		w.Do(kit.Partition(3 * time.Second))
		says("while the network is cut in two", create("lost", "good"), "deadline exceeded")
		w.Sleep(5 * time.Second)
		w.Do(kit.Crash(2 * time.Second))
		says("after a crash", create("crashed", "good"), "connection refused")
		w.Create(configMap("b", map[string]string{"word": "good"})) // waits for the next life
		w.Settled(func() error {
			if copied := configMap("copy-of-b", nil); !w.Get(copied) || copied.Data["word"] != "good" {
				return errors.New("the ConfigMap is not copied")
			}
			return nil
		})
	}))
}

func TestKit_SwarmLeavesAProgramWithWebhooksWhole_K11(t *testing.T) {
	kit.Test(t, kit.Config{Seeds: 10, Webhooks: []string{"testdata/webhooks.yaml"}}, func(w *kit.World) {
		changesUnder(w, setUpJudge)
	})
}
