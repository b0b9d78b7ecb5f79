// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/simulate"
)

// user is who changes objects besides the programs: the scenario, and the administrator
// who prepares the cluster. No fault affects its requests.
type user struct {
	client   *client.Client
	server   *simulate.Server
	clock    *clock
	patience time.Duration // how long a webhook may be unavailable
}

// act carries out an action at an instant of its own.
func (u *user) act(name, of, key string, do func() error) error {
	what := "user " + name + " " + of + " " + key
	u.clock.rest(what, u.clock.draws.UpTo(what, time.Millisecond))
	return u.patiently(name+" "+key, do)
}

// patiently carries out an action, and retries while a required webhook cannot be
// called.
func (u *user) patiently(name string, do func() error) error {
	deadline := time.Now().Add(u.patience)
	for {
		err := do()
		if !unanswered(err) || time.Now().After(deadline) || u.clock.ctx.Err() != nil {
			return err
		}
		u.clock.rest("user again "+name, time.Second+u.clock.draws.UpTo("user again "+name, time.Millisecond))
	}
}

// unanswered reports whether the server could not call a webhook. A user then retries.
func unanswered(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "failed calling webhook") || strings.Contains(text, "conversion webhook for")
}

// installDefinitions stores CRDs.
func (u *user) installDefinitions(crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		if err := u.install("the CRD "+crd.GetName(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd); err != nil {
			return err
		}
	}
	return nil
}

// installWebhooks stores webhook configurations.
func (u *user) installWebhooks(configurations []*unstructured.Unstructured) error {
	for _, given := range configurations {
		collection := "/apis/" + given.GetAPIVersion() + "/" + strings.ToLower(given.GetKind()) + "s"
		if err := u.install(given.GetKind()+" "+given.GetName(), collection, given); err != nil {
			return err
		}
	}
	return nil
}

func (u *user) install(what, collection string, object *unstructured.Unstructured) error {
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, "http://simulated"+collection, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := u.server.Direct("user").RoundTrip(r)
	if err != nil || answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("install %s: the server answers %s", what, textOf(answer))
	}
	return nil
}

func textOf(answer *http.Response) string {
	if answer == nil {
		return "nothing"
	}
	body, _ := io.ReadAll(answer.Body) // from memory
	return fmt.Sprintf("%s: %s", answer.Status, body)
}
