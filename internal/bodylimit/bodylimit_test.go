// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bodylimit

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// zeros is a body of that many bytes, with a pause before the end.
type zeros struct {
	left  int64
	pause func()
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		z.pause()
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	z.left -= n
	return int(n), nil
}

func (z *zeros) Close() error { return nil }

// serving answers each request with a body.
type serving func() *zeros

func (s serving) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: s(), Uncompressed: true, Request: req}, nil
}

func get(t *testing.T, rt http.RoundTripper, ctx context.Context, path string) (int64, error) {
	t.Helper()
	resp, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	return io.Copy(io.Discard, resp.Body)
}

func TestBudget_AnswerBeyondTheLimitIsAnError_C12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewBudget().Wrap(serving(func() *zeros { return &zeros{1000, func() { time.Sleep(time.Second) }} }))
		for _, limit := range []int64{999, 1000, 1001} {
			n, err := get(t, rt, WithLimit(t.Context(), limit), "/api/v1/pods")
			var large *TooLargeError
			if limit < 1000 && (!errors.As(err, &large) || large.Limit != limit || !large.Compressed || n > limit) {
				t.Errorf("limit %d: read %d bytes, %v; want the limit in an error", limit, n, err)
			}
			if limit >= 1000 && (err != nil || n != 1000) {
				t.Errorf("limit %d: read %d bytes, %v; want all", limit, n, err)
			}
		}
	})
}

func TestBudget_LargeAnswersTakeTurns_C12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			size   int64
			atOnce int
		}{{small, 24}, {small + 1, middleAtOnce}, {middle, middleAtOnce}, {middle + 1, largeAtOnce}, {4 * middle, largeAtOnce}} {
			rt := NewBudget().Wrap(serving(func() *zeros { return &zeros{c.size, func() { time.Sleep(time.Second) }} }))
			begun := time.Now()
			var all sync.WaitGroup
			for range 24 {
				all.Go(func() {
					if n, err := get(t, rt, t.Context(), "/api/v1/pods"); err != nil || n != c.size {
						t.Errorf("%d bytes: read %d, %v", c.size, n, err)
					}
				})
			}
			all.Wait()
			if took, want := time.Since(begun), time.Duration(24/c.atOnce)*time.Second; took != want {
				t.Errorf("24 answers of %d bytes took %v, want %v: %d at once", c.size, took, want, c.atOnce)
			}
		}
	})
}

// A wait for a place ends with its context, with Close, and after a time.
func TestBudget_WaitingEnds_C12(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget()
		rt := budget.Wrap(serving(func() *zeros { return &zeros{2 * middle, func() { time.Sleep(time.Second) }} }))
		if !budget.large.TryAcquire(1) {
			t.Fatal("a new budget is taken")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		if _, err := get(t, rt, ctx, "/api/v1/pods"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("after %v: %v, want the end of the context", time.Since(begun), err)
		}
		begun = time.Now()
		if _, err := get(t, rt, t.Context(), "/api/v1/pods"); err == nil || time.Since(begun) != longestWaiting {
			t.Errorf("after %v: %v, want an error after %v", time.Since(begun), err, longestWaiting)
		}
		resp, err := rt.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/pods", nil).WithContext(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		begun = time.Now()
		time.AfterFunc(2*time.Second, func() { _ = resp.Body.Close() })
		if _, err := io.Copy(io.Discard, resp.Body); err == nil || time.Since(begun) != 2*time.Second {
			t.Errorf("after %v: %v, want an error when the body is closed", time.Since(begun), err)
		}
		budget.large.Release(1)
		if !budget.large.TryAcquire(largeAtOnce) || !budget.middle.TryAcquire(middleAtOnce) {
			t.Error("not all places were given back")
		}
	})
}

func TestBudget_StreamsHaveNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := NewBudget().Wrap(serving(func() *zeros { return &zeros{1000, func() { time.Sleep(time.Second) }} }))
		for path, bounded := range map[string]bool{
			"/api/v1/pods":                                  true,
			"/api/v1/pods?watch=true":                       false,
			"/api/v1/pods?watch=1":                          false,
			"/api/v1/pods?watch=false":                      true,
			"/api/v1/watch/pods":                            false,
			"/apis/apps/v1/watch/deployments":               false,
			"/api/v1/namespaces/a/pods/b/log":               false,
			"/api/v1/namespaces/a/pods/b/exec":              false,
			"/api/v1/namespaces/a/services/b/proxy/c":       false,
			"/api/v1/nodes/a/proxy/metrics":                 false,
			"/api/v1/namespaces/a/configmaps/log":           true,
			"/api/v1/namespaces/watch/pods":                 true,
			"/apis/example.dev/v1/namespaces/a/proxy/proxy": true,
			"/openapi/v3":                                   true,
		} {
			n, err := get(t, rt, WithLimit(t.Context(), 10), path)
			if bounded != (err != nil) {
				t.Errorf("%s: read %d bytes, %v; want a limit: %v", path, n, err, bounded)
			}
		}
	})
}

func TestEnsure_BoundsOnce(t *testing.T) {
	if rt := Ensure(nil); rt.(bounded).next != http.DefaultTransport {
		t.Error("nil is not the default transport")
	}
	once := Ensure(serving(func() *zeros { return nil }))
	if again := Ensure(once); again.(bounded).budget != once.(bounded).budget {
		t.Error("what is bounded has two budgets")
	}
}
