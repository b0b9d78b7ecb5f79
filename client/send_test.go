// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// later is a refusal with Retry-After.
func later(code int, seconds string) reply {
	r := status(code, "InternalError", "not now", "")
	r.header = http.Header{"Retry-After": {seconds}}
	return r
}

func TestClient_SendsAgainWhatMayBeSentAgain_C8(t *testing.T) {
	key := kube.Key{Namespace: "prod", Name: "web"}
	known := func() *corev1.ConfigMap {
		cm := configMap("prod", "web", nil)
		cm.UID, cm.ResourceVersion = "u", "6"
		return cm
	}
	blocked := status(429, "TooManyRequests", "no", `"causes":[{"reason":"DisruptionBudget","message":"no"}],"retryAfterSeconds":10`)
	blocked.header = http.Header{"Retry-After": {"10"}}
	patch := client.MergePatch([]byte(`{}`))
	for _, row := range []struct {
		name  string
		call  func(context.Context, *client.Client) error
		first reply
		again bool
	}{
		{"get, 429", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, later(429, "3"), true},
		{"get, 503", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, later(503, "3"), true},
		{"get, 500", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, later(500, "3"), true},
		{"get, 500 that asks for nothing", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, status(500, "InternalError", "no", ""), false},
		{"get, 429 that asks for nothing", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, status(429, "TooManyRequests", "no", ""), false},
		{"get, 429 with a date", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, later(429, "Fri, 31 Dec 1999 23:59:59 GMT"), false},
		{"get, 404", func(ctx context.Context, c *client.Client) error { return c.Get(ctx, key, known()) }, later(404, "3"), false},

		{"create, 429", func(ctx context.Context, c *client.Client) error { return c.Create(ctx, known()) }, later(429, "3"), true},
		{"create, 503", func(ctx context.Context, c *client.Client) error { return c.Create(ctx, known()) }, later(503, "3"), false},
		{"create, dry run, 503", func(ctx context.Context, c *client.Client) error { return c.Create(ctx, known(), client.DryRun{}) }, later(503, "3"), true},
		{"update, 500", func(ctx context.Context, c *client.Client) error { return c.Update(ctx, known()) }, later(500, "3"), true},
		{"apply, 500", func(ctx context.Context, c *client.Client) error { return c.Apply(ctx, known()) }, later(500, "3"), true},
		{"patch, 429", func(ctx context.Context, c *client.Client) error { return c.Patch(ctx, known(), patch) }, later(429, "3"), true},
		{"patch, 500", func(ctx context.Context, c *client.Client) error { return c.Patch(ctx, known(), patch) }, later(500, "3"), false},
		{"patch of one version, 500", func(ctx context.Context, c *client.Client) error {
			return c.Patch(ctx, known(), patch, client.Preconditions{ResourceVersion: "6"})
		}, later(500, "3"), true},
		{"delete, 500", func(ctx context.Context, c *client.Client) error { return c.Delete(ctx, known()) }, later(500, "3"), false},
		{"delete of one UID, 500", func(ctx context.Context, c *client.Client) error {
			return c.Delete(ctx, known(), client.Preconditions{UID: "u"})
		}, later(500, "3"), true},
		{"delete all of, 500", func(ctx context.Context, c *client.Client) error {
			return client.DeleteAllOf[*corev1.ConfigMap](ctx, c, client.InNamespace("prod"))
		}, later(500, "3"), false},
		{"evict, 429", func(ctx context.Context, c *client.Client) error { return c.Evict(ctx, pod("prod", "web")) }, later(429, "3"), true},
		{"evict, a budget says no", func(ctx context.Context, c *client.Client) error { return c.Evict(ctx, pod("prod", "web")) }, blocked, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := scripted(t, client.Options{FieldOwner: "test"}, row.first, reply{body: thing("v1", "ConfigMap", "", "")})
				begin := time.Now()
				err := row.call(t.Context(), c)
				sent, waited := len(s.requests()), time.Since(begin)
				switch {
				case row.again && (sent != 2 || waited != 3*time.Second || err != nil):
					t.Errorf("sent %d times within %v (%v), want twice, 3 s apart, as the server asked", sent, waited, err)
				case !row.again && (sent != 1 || waited != 0 || err == nil):
					t.Errorf("sent %d times within %v (%v), want once and the server's error", sent, waited, err)
				}
				if sent == 2 && s.requests()[0].body != s.requests()[1].body {
					t.Errorf("sent %q, then %q, want the same twice", s.requests()[0].body, s.requests()[1].body)
				}
			})
		})
	}
}

func TestClient_WaitingForTheServerHasAnEnd_C8(t *testing.T) {
	for _, row := range []struct {
		name   string
		within time.Duration
		budget time.Duration // of the context; 0: none
		answer reply
		sent   int
		waited time.Duration
	}{
		{"thirty seconds in all", 0, 0, later(429, "12"), 3, 24 * time.Second},
		{"more than that at once", 0, 0, later(429, "31"), 1, 0},
		{"at once is in a second", 0, 0, later(429, "0"), 31, 30 * time.Second},
		{"never", -1, 0, later(429, "1"), 1, 0},
		{"as long as the options say", 5 * time.Second, 0, later(503, "2"), 3, 4 * time.Second},
		{"the context ends before", 0, 10 * time.Second, later(429, "4"), 3, 8 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := make([]reply, 40)
				for i := range answers {
					answers[i] = row.answer
				}
				c, s := scripted(t, client.Options{RetryWithin: row.within}, answers...)
				ctx := t.Context()
				if row.budget > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, row.budget)
					defer cancel()
				}
				begin := time.Now()
				err := c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
				if n, waited := len(s.requests()), time.Since(begin); n != row.sent || waited != row.waited {
					t.Errorf("sent %d times within %v, want %d within %v", n, waited, row.sent, row.waited)
				}
				if _, is := errors.AsType[*apierrors.StatusError](err); !is || !strings.Contains(err.Error(), "not now") {
					t.Errorf("got %v, want the server's own error", err)
				}
			})
		})
	}
}

func TestClient_CancelledWaitReturnsAtOnce_C8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := scripted(t, client.Options{}, later(429, "20"))
		ctx, cancel := context.WithCancel(t.Context())
		stop := time.AfterFunc(2*time.Second, cancel)
		defer stop.Stop()
		begin := time.Now()
		err := c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
		if waited := time.Since(begin); err == nil || waited != 2*time.Second || len(s.requests()) != 1 {
			t.Errorf("got %v after %v and %d requests, want the server's error after 2 s and one", err, waited, len(s.requests()))
		}
	})
}

// cut breaks the connection of the first request.
type cut struct {
	*script
	sent int
	by   error
}

func (c *cut) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/v1") {
		return c.script.RoundTrip(r)
	}
	if c.sent++; c.sent == 1 {
		return nil, c.by
	}
	return c.script.RoundTrip(r)
}

func TestClient_BrokenReadsAreSentAgainAndWritesAreNot_C8(t *testing.T) {
	for name, row := range map[string]struct {
		by   error
		call func(context.Context, *client.Client) error
		want int
	}{
		"get, reset": {syscall.ECONNRESET, func(ctx context.Context, c *client.Client) error {
			return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
		}, 2},
		"get, end of file": {io.EOF, func(ctx context.Context, c *client.Client) error {
			return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
		}, 2},
		"get, refused": {syscall.ECONNREFUSED, func(ctx context.Context, c *client.Client) error {
			return c.Get(ctx, kube.Key{Namespace: "prod", Name: "web"}, &corev1.ConfigMap{})
		}, 1},
		"apply, reset":  {syscall.ECONNRESET, func(ctx context.Context, c *client.Client) error { return c.Apply(ctx, configMap("prod", "web", nil)) }, 1},
		"create, reset": {syscall.ECONNRESET, func(ctx context.Context, c *client.Client) error { return c.Create(ctx, configMap("prod", "web", nil)) }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			broken := &cut{script: &script{answers: []reply{{body: thing("v1", "ConfigMap", "", "")}}}, by: row.by}
			c, err := client.New(&rest.Config{Host: "http://api.test", Transport: broken}, testScheme(t), client.Options{FieldOwner: "test"})
			if err != nil {
				t.Fatal(err)
			}
			err = row.call(t.Context(), c)
			if broken.sent != row.want || (err == nil) != (row.want == 2) {
				t.Errorf("%s: sent %d times (%v), want %d", name, broken.sent, err, row.want)
			}
		})
	}
}

type mute struct{ *script }

func (m mute) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/v1") {
		return m.script.RoundTrip(r)
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestClient_EachRequestHasATimeout(t *testing.T) {
	for name, row := range map[string]struct {
		config, option, want time.Duration
	}{
		"by default":            {0, 0, 90 * time.Second},
		"of the configuration":  {7 * time.Second, 0, 7 * time.Second},
		"of the options":        {7 * time.Second, 8 * time.Second, 8 * time.Second},
		"none, but the context": {0, -1, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, err := client.New(&rest.Config{Host: "http://api.test", Transport: mute{&script{}}, Timeout: row.config}, testScheme(t), client.Options{Timeout: row.option})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			begin := time.Now()
			err = c.Create(ctx, configMap("prod", "web", nil))
			if waited := time.Since(begin); waited != row.want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v after %v, want an exceeded deadline after %v", name, err, waited, row.want)
			}
		})
	}
}
