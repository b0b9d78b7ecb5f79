// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// An object that an own write ended stays gone while the watch, or lists from a cache that
// lags, catch up with the states before its end.
func TestInformer_OwnEndIsNotUndoneByLateStates_A31(t *testing.T) {
	for name, dying := range map[string]bool{"deleted and released": false, "dying, patched and released": true} {
		for mode, lists := range map[string]bool{"watches": false, "lists": true} {
			t.Run(name+", "+mode, func(t *testing.T) {
				simulated(t, informer.Options{}, func(t *testing.T, w *world) {
					c, err := client.New(w.Config, w.Scheme, client.Options{Observer: w.factory, FieldOwner: "test"})
					w.Must(err)
					maps := informer.For[cmap](w.factory)
					start(w)
					obj := configMap("a", "1")
					obj.Finalizers = []string{"test.example.com/held"}
					w.Must(c.Create(w.ctx, obj))
					remove := func() {
						w.Must(c.Delete(w.ctx, obj))
						w.Must(c.Get(w.ctx, kube.KeyOf(obj), obj))
					}
					if dying {
						remove()
					}
					pass(time.Second)
					from := w.Revision()
					w.LagKindTo(configMaps, from)
					if dying {
						obj.Annotations = map[string]string{"cleaned": "up"}
						w.Must(c.Update(w.ctx, obj))
					} else {
						remove()
					}
					w.Must(c.SetFinalizers(w.ctx, obj, nil))
					for at := from; at <= w.Revision(); at++ {
						w.LagKindTo(configMaps, at)
						if lists {
							w.CloseWatches(configMaps)
						}
						pass(time.Minute)
						holds(t, maps, "", "A31: an object that an own write ended is there again")
					}
				})
			})
		}
	}
}
