// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/kube"
)

// endless writes bytes that compress well.
func endless(w io.Writer, size int64) {
	_, _ = io.Copy(w, io.LimitReader(spaces{}, size))
}

type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// packed serves what f writes, compressed.
func packed(t *testing.T, f func(w io.Writer, r *http.Request)) *client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/api/v1" {
			_, _ = io.WriteString(w, coreDiscovery)
			return
		}
		if r.Header.Get("Accept-Encoding") != "gzip" {
			t.Errorf("%s: the client takes no compressed answer, so that this tests nothing", r.URL)
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		f(z, r)
		_ = z.Close()
	}))
	t.Cleanup(server.Close)
	// Compressing and reading what is too large takes minutes on a busy machine.
	c, err := client.New(&rest.Config{Host: server.URL}, testScheme(t), client.Options{RetryWithin: -1, Timeout: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGet_CompressedAnswerHasALimit_C12(t *testing.T) {
	const bomb = 2 << 30
	c := packed(t, func(w io.Writer, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}`)
		endless(w, bomb)
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := c.Get(t.Context(), kube.Key{Namespace: "prod", Name: "a"}, &corev1.ConfigMap{})
	runtime.ReadMemStats(&after)
	var large *client.TooLargeError
	if !errors.As(err, &large) || large.Limit != bodylimit.Limit || !large.Compressed || !strings.Contains(err.Error(), "larger than 134217728 bytes when decompressed") {
		t.Errorf("Get = %v, want an error that names the size", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > bomb/2 {
		t.Errorf("Get of an answer of %d bytes allocated %d", bomb, took)
	}
}

func TestList_PageThatIsTooLargeIsAskedForInSmallerOnes_C12(t *testing.T) {
	var limits []string
	c := packed(t, func(w io.Writer, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		limits = append(limits, r.URL.Query().Get("limit"))
		from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		fmt.Fprintf(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"`)
		const all = 40
		to := min(from+limit, all)
		if to < all {
			fmt.Fprintf(w, `,"continue":"%d"`, to)
		}
		fmt.Fprint(w, `},"items":[`)
		for i := from; i < to; i++ {
			fmt.Fprintf(w, `%s{"metadata":{"namespace":"prod","name":"a%d","annotations":{"a":"%s"}}}`, map[bool]string{true: ","}[i > from], i, strings.Repeat("x", 100_000))
		}
		fmt.Fprint(w, "]}")
	})
	n := 0
	for _, err := range client.List[*corev1.Pod](bodylimit.WithLimit(t.Context(), 1<<20), c) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if got := strings.Join(limits, " "); n != 40 || !strings.HasPrefix(got, "500 125 31 7 7") {
		t.Errorf("listed %d Pods by pages of %s; want 40, by pages of which ten objects are too large", n, got)
	}
	for _, err := range client.List[*corev1.Pod](bodylimit.WithLimit(t.Context(), 1<<10), c) {
		var large *client.TooLargeError
		if !errors.As(err, &large) {
			t.Errorf("a list of which one object is too large: %v, want a TooLargeError", err)
		}
	}
}

func TestWatch_FrameHasALimit_C12(t *testing.T) {
	c := packed(t, func(w io.Writer, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"namespace":"prod","name":"a%d"}}}`+"\n", i)
		}
		_, _ = io.WriteString(w, `{"type":"ADDED","object":{"data":{"a":"`)
		endless(w, 4<<20)
	})
	var got []string
	for event, err := range client.Watch[*corev1.ConfigMap](bodylimit.WithLimit(t.Context(), 1<<20), c) {
		if err != nil {
			var large *client.TooLargeError
			if !errors.As(err, &large) || !strings.Contains(err.Error(), "a frame of watch ConfigMap") {
				t.Errorf("Watch = %v, want a TooLargeError", err)
			}
			break
		}
		got = append(got, event.Object.Name)
	}
	if len(got) != 3 {
		t.Errorf("before the large frame came %v, want three objects", got)
	}
}
