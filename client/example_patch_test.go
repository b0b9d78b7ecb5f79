// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

func pause(ctx context.Context, c *client.Client, d *appsv1.Deployment) error {
	to := kube.Copy(d)
	to.Spec.Paused = true
	_, err := c.PatchChanges(ctx, d, to)
	return err
}

// printingServer stands in for an API server. It prints each patch.
type printingServer struct{}

func (printingServer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := `{"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [
		{"name": "deployments", "namespaced": true, "kind": "Deployment"}]}`
	if r.Method == http.MethodPatch {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s %s\n%s\n", r.Method, r.URL.Path, body)
		answer = `{"kind": "Deployment", "apiVersion": "apps/v1"}`
	}
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

// PatchChanges sends only what differs, and the UID of the object that was read.
func ExampleClient_PatchChanges() {
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: printingServer{}}, scheme.Scheme, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "8f14", ResourceVersion: "12"}}
	if err := pause(context.Background(), c, d); err != nil {
		fmt.Println(err)
	}
	// Output:
	// PATCH /apis/apps/v1/namespaces/prod/deployments/web
	// {"metadata":{"uid":"8f14"},"spec":{"paused":true}}
}
