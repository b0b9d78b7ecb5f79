// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// leaseKeeper is a server of one Lease and of ConfigMaps that are created slowly. It
// records what happens in order.
type leaseKeeper struct {
	takes time.Duration // the creation of a ConfigMap
	code  int           // of its answer; 0: 201

	mu    sync.Mutex
	lease *coordinationv1.Lease
	log   []string
}

func (k *leaseKeeper) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case r.URL.Query().Has("watch"), r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/leases/website"):
		return reply(http.StatusServiceUnavailable, nil), nil
	case strings.Contains(r.URL.Path, "/leases"):
		return k.keep(r)
	}
	select {
	case <-time.After(k.takes):
	case <-r.Context().Done():
		k.note("a write was cut off")
		return nil, r.Context().Err()
	}
	k.note("a write was carried out")
	if k.code != 0 {
		return reply(k.code, nil), nil
	}
	return reply(http.StatusCreated, &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x", ResourceVersion: "9", UID: "x"},
	}), nil
}

func (k *leaseKeeper) keep(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.Method == http.MethodGet {
		if k.lease == nil {
			return reply(http.StatusNotFound, &metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			}), nil
		}
		return reply(http.StatusOK, k.lease), nil
	}
	lease := &coordinationv1.Lease{}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, lease); err != nil {
		return nil, err
	}
	lease.APIVersion, lease.Kind, lease.UID, lease.ResourceVersion = "coordination.k8s.io/v1", "Lease", "l", "7"
	k.lease = lease
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		k.log = append(k.log, "the lease was given back")
	}
	return reply(http.StatusOK, lease), nil
}

func (k *leaseKeeper) note(what string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.log = append(k.log, what)
}

func (k *leaseKeeper) story() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.log, ", ")
}

func reply(code int, obj any) *http.Response {
	body, _ := json.Marshal(obj)
	return &http.Response{
		StatusCode: code, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

func TestManager_LeaseIsGivenBackAfterTheLastWrite_M11(t *testing.T) {
	const given = "the lease was given back"
	for _, tc := range []struct {
		name  string
		takes time.Duration // the write
		code  int
		limit time.Duration // of the write's own context; 0: none
		after time.Duration // from the start of the write to the stop
		want  string
	}{
		{"it is answered in time", 3 * time.Second, 0, 0, time.Second, "a write was carried out, " + given},
		{"it was answered before", time.Second, 0, 0, 2 * time.Second, "a write was carried out, " + given},
		{"it was refused", time.Second, http.StatusConflict, 0, 2 * time.Second, "a write was carried out, " + given},
		{"it is never answered", time.Hour, 0, 0, time.Second, "a write was cut off"},
		{"its caller gave up shortly before", time.Hour, 0, time.Second, 2 * time.Second, "a write was cut off"},
		{"its caller gave up long before", time.Hour, 0, time.Second, time.Minute, "a write was cut off, " + given},
		{"a proxy gave up", time.Second, http.StatusGatewayTimeout, 0, 2 * time.Second, "a write was carried out"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &leaseKeeper{takes: tc.takes, code: tc.code}
				m := newManager(t, manager.Options{
					Config:         &rest.Config{Host: "http://keeper", Transport: k, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
					LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"},
				})
				api, err := kubernetes.NewForConfig(m.Config())
				must(t, err)
				stop, wait := run(t, m)
				<-m.Elected()
				var writer sync.WaitGroup
				writer.Go(func() {
					ctx := context.WithoutCancel(t.Context())
					if tc.limit > 0 {
						limited, cancel := context.WithTimeout(ctx, tc.limit)
						defer cancel()
						ctx = limited
					}
					_, _ = api.CoreV1().ConfigMaps("shop").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{})
				})
				time.Sleep(tc.after)
				stop()
				must(t, wait())
				writer.Wait()
				if got := k.story(); got != tc.want {
					t.Errorf("%s; want: %s", got, tc.want)
				}
			})
		})
	}
}
