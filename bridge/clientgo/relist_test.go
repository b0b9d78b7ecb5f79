// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
)

// relisted runs an informer on a server with two objects, breaks its watch and
// returns what a handler received from the relist: one object has changed.
func relisted(t *testing.T, opts clientgo.Options) (told []string) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "1"), configMap("c", "1"))
		i := adaptWith(s, informer.Options{}, opts)
		l := &log{}
		join(t, i, l, cache.HandlerOptions{})
		run(t, i)
		synctest.Wait()
		expect(t, "first list", sorted(l.take()), "add a 1 initial", "add b 1 initial", "add c 1 initial")
		s.ModifyDropWatch(configMap("b", "2"))
		s.ResetWatch() // the watch ends and the events in between are lost
		time.Sleep(time.Minute)
		synctest.Wait()
		told = sorted(l.take())
		time.Sleep(time.Hour)
		synctest.Wait()
		expect(t, "while the watch works", l.take())
	})
	return told
}

func TestInformer_RelistGivesEachObjectAgain_G9(t *testing.T) {
	expect(t, "after a relist", relisted(t, clientgo.Options{}), "update a 1>1", "update b 1>2", "update c 1>1")
}

func TestInformer_RelistGivesOnlyDifferencesWhereAskedTo_G9(t *testing.T) {
	expect(t, "after a relist", relisted(t, clientgo.Options{OnlyDifferences: true}), "update b 1>2")
}
