// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
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
		"detail":         {func(l logr.Logger) { l.V(1).Info("detail") }, "DEBUG detail\n"},
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
	var text bytes.Buffer // not safe for concurrent use: checked by the race detector
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

func TestForm_SaysWhatIsShownAndHow(t *testing.T) {
	all := func(log logr.Logger) {
		log.V(5).Info("trace")
		log.V(1).Info("debug")
		log.Info("info", "a", 1)
		textlog.Warn(log.WithName("n").WithValues("k", "v"), errors.New("no"), "warn", "key", types.NamespacedName{Name: "x"})
		log.Error(nil, "error")
	}
	for name, c := range map[string]struct {
		form textlog.Form
		want []string
	}{
		"zero":  {textlog.Form{}, []string{"INFO  info a=1", "WARN  n: warn k=v key=/x err=no", "ERROR error"}},
		"warn":  {textlog.Form{Least: textlog.Warning}, []string{"WARN  n: warn k=v key=/x err=no", "ERROR error"}},
		"error": {textlog.Form{Least: textlog.Error}, []string{"ERROR error"}},
		"debug": {textlog.Form{Least: textlog.Debug}, []string{"DEBUG debug", "INFO  info a=1", "WARN  n: warn k=v key=/x err=no", "ERROR error"}},
		"trace": {textlog.Form{Least: textlog.Trace}, []string{"TRACE trace", "DEBUG debug", "INFO  info a=1", "WARN  n: warn k=v key=/x err=no", "ERROR error"}},
		"json": {textlog.Form{JSON: true}, []string{
			`"level":"INFO","msg":"info","a":1}`, `"level":"WARN","msg":"warn","logger":"n","k":"v","key":"/x","err":"no"}`, `"level":"ERROR","msg":"error"}`,
		}},
	} {
		var out bytes.Buffer
		all(c.form.Logger(&out))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != len(c.want) {
			t.Errorf("%s: %d lines, want %d:\n%s", name, len(lines), len(c.want), out.String())
			continue
		}
		for i, line := range lines {
			if !strings.HasSuffix(line, c.want[i]) {
				t.Errorf("%s: line %q, want it to end in %q", name, line, c.want[i])
			}
			if c.form.JSON && !json.Valid([]byte(line)) {
				t.Errorf("%s: %s is no JSON", name, line)
			}
		}
	}
}

// A warning stays one in log/slog, and is an error in a sink without warnings.
func TestWarn_ReachesOtherLoggers(t *testing.T) {
	var out bytes.Buffer
	textlog.Warn(logr.FromSlogHandler(slog.NewTextHandler(&out, nil)).WithValues("k", "v"), errors.New("no"), "odd", "a", 1)
	if got := out.String(); !strings.Contains(got, "level=WARN msg=odd k=v a=1 err=no") {
		t.Errorf("log/slog has %q, want a warning with all values", got)
	}
	out.Reset()
	textlog.Warn(funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{}), errors.New("no"), "odd", "a", 1)
	if got := out.String(); !strings.Contains(got, `"msg"="odd" "error"="no" "a"=1`) {
		t.Errorf("another logger has %q, want an error", got)
	}
	textlog.Warn(logr.Logger{}, nil, "nobody listens")
}
