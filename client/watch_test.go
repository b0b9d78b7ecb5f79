// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

func frame(kind, object string) string {
	return `{"type":"` + kind + `","object":` + object + `}` + "\n"
}

func numbered(version, fields string) string {
	return strings.Replace(thing("v1", "ConfigMap", "", fields), `"7"`, `"`+version+`"`, 1)
}

func TestWatch_YieldsWhatTheServerTellsAndWhyItEnds(t *testing.T) {
	bookmark := frame("BOOKMARK", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`)
	for _, row := range []struct {
		name   string
		stream string
		want   string // TYPE@version or ! for an error, in order
		why    func(error) bool
	}{
		{"ended in order", frame("ADDED", numbered("7", "")) + frame("MODIFIED", numbered("8", "")) + frame("DELETED", numbered("9", "")), "ADDED@7 MODIFIED@8 DELETED@9 !", endedAt("9")},
		{"ended after a bookmark", frame("ADDED", numbered("7", "")) + bookmark, "ADDED@7 !", endedAt("9")},
		{"ended at once", "", "!", endedAt("5")},
		{"expired", frame("ERROR", `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}`), "!", apierrors.IsResourceExpired},
		{"one that cannot be decoded", frame("ADDED", numbered("7", `"data":7`)) + frame("ADDED", numbered("8", "")), "! ADDED@8 !", endedAt("8")},
		{"cut", frame("ADDED", numbered("7", "")) + `{"type":"ADD`, "ADDED@7 !", says("read the stream")},
		{"no JSON", "<html>", "!", says("read the stream")},
		{"of a type that is none", frame("GREETING", numbered("7", "")), "!", says(`"GREETING"`)},
		{"an error that is no Status", frame("ERROR", "7"), "!", says("read the server's error")},
		{"a bookmark that is none", frame("BOOKMARK", "7"), "!", says("read a bookmark")},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := scripted(t, client.Options{}, reply{body: row.stream})
			var got []string
			var last error
			for event, err := range client.Watch[*corev1.ConfigMap](t.Context(), c, client.InNamespace("prod"), client.Since("5"), client.MatchingLabels{"a": "b"}) {
				if last = err; err != nil {
					got = append(got, "!")
					continue
				}
				got = append(got, fmt.Sprintf("%s@%s", event.Type, event.Object.ResourceVersion))
			}
			if got := strings.Join(got, " "); got != row.want {
				t.Errorf("got %s, want %s", got, row.want)
			}
			if last == nil || !row.why(last) || !strings.HasPrefix(last.Error(), `watch ConfigMap in "prod": `) {
				t.Errorf("it ended with %v; an end says why", last)
			}
			r := s.requests()[0]
			if got, want := r.path+"?"+r.query, "/api/v1/namespaces/prod/configmaps?allowWatchBookmarks=true&labelSelector=a%3Db&resourceVersion=5&watch=true"; got != want {
				t.Errorf("asked %s, want %s", got, want)
			}
			if len(s.requests()) != 1 {
				t.Errorf("%d requests, want one: a watch is not begun anew", len(s.requests()))
			}
		})
	}
}

func endedAt(version string) func(error) bool {
	return func(err error) bool {
		ended, is := errors.AsType[*client.WatchEndedError](err)
		return is && ended.Version == version
	}
}

func says(text string) func(error) bool {
	return func(err error) bool { return strings.Contains(err.Error(), text) }
}

func TestWatch_ErrorsBeforeTheStream_C6(t *testing.T) {
	c, _ := scripted(t, client.Options{RetryWithin: -1}, status(403, "Forbidden", "no", ""), later(429, "1"))
	watch := func() error { return firstOf(client.Watch[*corev1.ConfigMap](t.Context(), c)) }
	if err := watch(); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the server's refusal", err)
	}
	if err := watch(); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("got %v, want the server's refusal", err)
	}
	if err := firstOf(client.Watch[*metav1.PartialObjectMetadata](t.Context(), c)); err == nil || !strings.Contains(err.Error(), "OfKind") {
		t.Errorf("got %v, want an error that names OfKind", err)
	}
}

func TestWatch_LeftOrCancelledItEnds(t *testing.T) {
	stream := frame("ADDED", numbered("7", "")) + frame("ADDED", numbered("8", ""))
	c, _ := scripted(t, client.Options{}, reply{body: stream}, reply{body: stream})
	seen := 0
	for range client.Watch[*corev1.ConfigMap](t.Context(), c) {
		seen++
		break
	}
	if seen != 1 {
		t.Errorf("the loop ran %d times, want once", seen)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if err := firstOf(client.Watch[*corev1.ConfigMap](ctx, c)); !errors.Is(err, enough) && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func FuzzWatch_NoStreamPanics(f *testing.F) {
	f.Add(frame("ADDED", numbered("7", "")))
	f.Add(frame("ERROR", `{}`) + frame("BOOKMARK", `{}`))
	f.Fuzz(func(t *testing.T, stream string) {
		c, _ := scripted(t, client.Options{}, reply{body: stream})
		var last error
		for event, err := range client.Watch[*corev1.ConfigMap](t.Context(), c) {
			if last = err; (event.Object == nil) != (err != nil) {
				t.Fatalf("got %v and %v, want one of them", event, err)
			}
		}
		if _, undecodable := errors.AsType[*kube.UndecodableError](last); last == nil || undecodable {
			t.Errorf("the last thing said is %v, want why it ended", last)
		}
	})
}
