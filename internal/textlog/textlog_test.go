// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/textlog"
)

type angry struct{}

func (angry) MarshalLog() any { panic("no") }

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		log  func(logr.Logger)
		want string
	}{
		"plain":          {func(l logr.Logger) { l.Info("runs") }, "INFO  runs\n"},
		"values":         {func(l logr.Logger) { l.Info("runs", "n", 3, "s", "a b", "e", "") }, "INFO  runs n=3 s=\"a b\" e=\"\"\n"},
		"detail":         {func(l logr.Logger) { l.V(1).Info("detail") }, "V1    detail\n"},
		"too detailed":   {func(l logr.Logger) { l.V(2).Info("detail") }, ""},
		"error":          {func(l logr.Logger) { l.Error(errors.New("a b"), "x", "k", "v") }, "ERROR x k=v err=\"a b\"\n"},
		"no error":       {func(l logr.Logger) { l.V(9).Error(nil, "x") }, "ERROR x\n"},
		"name":           {func(l logr.Logger) { l.WithName("a").WithName("b").Info("x") }, "INFO  a.b: x\n"},
		"with":           {func(l logr.Logger) { l.WithValues("a", 1).WithValues("b", 2).Info("x", "c", 3) }, "INFO  x a=1 b=2 c=3\n"},
		"stringer":       {func(l logr.Logger) { l.Info("x", "key", types.NamespacedName{Namespace: "n", Name: "a"}) }, "INFO  x key=n/a\n"},
		"nil":            {func(l logr.Logger) { l.Info("x", "key", nil) }, "INFO  x key=<nil>\n"},
		"odd":            {func(l logr.Logger) { l.Info("x", "key") }, "INFO  x key=(missing)\n"},
		"panics":         {func(l logr.Logger) { l.Info("x", "k", angry{}) }, "INFO  x k=\"(panic: no)\"\n"},
		"lines":          {func(l logr.Logger) { l.Info("x", "stack", "a\n\tb\n", "k", 1) }, "INFO  x k=1\n\tstack:\n\t\ta\n\t\t\tb\n"},
		"lines in words": {func(l logr.Logger) { l.Info("x\ny") }, "INFO  x y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text bytes.Buffer
				c.log(textlog.New(&text, 1))
				want := c.want
				if want != "" {
					want = "2000-01-01T00:00:00.000Z " + want
				}
				if got := text.String(); got != want {
					t.Errorf("got  %q\nwant %q", got, want)
				}
			})
		})
	}
}

func TestWith_CopiesShareNoValues(t *testing.T) {
	var text bytes.Buffer
	parent := textlog.New(&text, 0).WithValues("a", 1, "b", 2, "c", 3)
	one, two := parent.WithValues("k", "one"), parent.WithValues("k", "two")
	one.Info("x")
	two.Info("x")
	if got := text.String(); strings.Count(got, "k=one") != 1 || strings.Count(got, "k=two") != 1 {
		t.Errorf("got %q: one logger's values stand in the other's lines", got)
	}
}

func TestWrite_EntriesDoNotMix(t *testing.T) {
	var text bytes.Buffer // not safe by itself: the race detector looks on
	log := textlog.New(&text, 0)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				log.Info("x", "k", "v")
			}
		})
	}
	all.Wait()
	if got := strings.Count(text.String(), " INFO  x k=v\n"); got != 800 {
		t.Errorf("%d whole lines of 800", got)
	}
}
