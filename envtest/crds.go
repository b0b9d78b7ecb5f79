// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/internal/manifest"
)

const (
	crdAPIVersion = "apiextensions.k8s.io/v1"
	crdKind       = "CustomResourceDefinition"
	crdPath       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// InstallCRDs applies the CustomResourceDefinitions in paths and returns when each of their versions is served and listed
// by discovery. A path is a YAML or JSON file, or a directory, of which the .yaml, .yml and .json files are read, without
// subdirectories. Other objects in the files are ignored; a path without any CustomResourceDefinition is an error. An
// existing CustomResourceDefinition is updated. A conversion webhook that refers to a Service is called at the address of
// Webhooks instead.
func (e *Environment) InstallCRDs(ctx context.Context, paths ...string) error {
	crds, err := readCRDs(paths)
	if err != nil {
		return err
	}
	return e.installCRDs(ctx, crds)
}

// InstallCRDObjects is InstallCRDs for CustomResourceDefinitions given as objects, typed or unstructured.
func (e *Environment) InstallCRDObjects(ctx context.Context, objects ...runtime.Object) error {
	crds, err := crdsOf(objects)
	if err != nil {
		return err
	}
	return e.installCRDs(ctx, crds)
}

// ParseCRDs parses the CustomResourceDefinitions in YAML or JSON documents, including those in Lists, and ignores other
// objects.
func ParseCRDs(r io.Reader) ([]runtime.Object, error) {
	objects, err := manifest.Parse(r)
	if err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	return currentCRDs(slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return !isCRD(object) }))
}

func readCRDs(paths []string) ([]*unstructured.Unstructured, error) {
	objects, err := manifest.Read(paths, crdKind+" of "+crdAPIVersion, isCRD)
	if err != nil {
		return nil, fmt.Errorf("read CRDs: %w", err)
	}
	crds, err := currentCRDs(objects)
	if err != nil {
		return nil, err
	}
	return crdsOf(crds)
}

func isCRD(object *unstructured.Unstructured) bool { return object.GetKind() == crdKind }

// currentCRDs returns objects, which are CRDs, or an error if one has an API version that is no longer served.
func currentCRDs(objects []*unstructured.Unstructured) ([]runtime.Object, error) {
	crds := make([]runtime.Object, 0, len(objects))
	for _, object := range objects {
		if object.GetAPIVersion() != crdAPIVersion {
			return nil, fmt.Errorf("read the CRD %q: its version is %s, want %s", object.GetName(), object.GetAPIVersion(), crdAPIVersion)
		}
		crds = append(crds, object)
	}
	return crds, nil
}

// crdsOf prepares objects for apply: with a name and kind, which typed objects may lack, and without status.
func crdsOf(objects []runtime.Object) ([]*unstructured.Unstructured, error) {
	crds := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if object == nil {
			return nil, errors.New("read CRDs: a CRD is nil")
		}
		var fields any = object
		if u, ok := object.(*unstructured.Unstructured); ok {
			fields = u.Object // its own encoding requires a kind
		}
		content, err := jsontree.Of[map[string]any](fields)
		if err != nil {
			return nil, fmt.Errorf("read a CRD of type %T: %w", object, err)
		}
		crd := &unstructured.Unstructured{Object: content}
		if kind := crd.GetKind(); kind != "" && kind != crdKind || crd.GetName() == "" {
			return nil, fmt.Errorf("read a CRD of type %T: it is a %q named %q, want a named %s", object, kind, crd.GetName(), crdKind)
		}
		crd.SetAPIVersion(crdAPIVersion)
		crd.SetKind(crdKind)
		unstructured.RemoveNestedField(crd.Object, "status")
		removeServerFields(crd)
		crds = append(crds, crd)
	}
	return crds, nil
}

// removeServerFields removes fields that an apply must not contain.
func removeServerFields(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
}

// apply creates or updates an object of the collection, whose path ends in a slash.
func (e *Environment) apply(ctx context.Context, collection string, object *unstructured.Unstructured) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	path := collection + object.GetName() + "?fieldManager=envtest&force=true"
	_, err = e.api.do(ctx, http.MethodPatch, path, "application/apply-patch+yaml", body)
	return err
}

func (e *Environment) installCRDs(ctx context.Context, crds []*unstructured.Unstructured) error {
	for _, crd := range crds {
		err := e.webhooks.redirect(crd)
		if err == nil {
			err = e.replaceService(ctx, crd)
		}
		if err == nil {
			err = e.apply(ctx, crdPath, crd)
		}
		if err != nil {
			return fmt.Errorf("install the CRD %q: %w", crd.GetName(), err)
		}
	}
	if err := e.waitServed(ctx, crds); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, crd := range crds {
		e.mu.crds = slices.DeleteFunc(e.mu.crds, func(old *unstructured.Unstructured) bool { return old.GetName() == crd.GetName() })
		e.mu.crds = append(e.mu.crds, crd)
	}
	return nil
}

// replaceService replaces the Service of an existing CRD's conversion webhook by the URL of crd: an apply would leave the
// Service, which another field manager such as kubectl has set.
func (e *Environment) replaceService(ctx context.Context, crd *unstructured.Unstructured) error {
	conversion, _, err := unstructured.NestedMap(crd.Object, "spec", "conversion")
	if _, isURL, _ := unstructured.NestedString(conversion, "webhook", "clientConfig", "url"); err != nil || !isURL {
		return err
	}
	if err := unstructured.SetNestedField(conversion, nil, "webhook", "clientConfig", "service"); err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": conversion}})
	if err == nil {
		_, err = e.api.do(ctx, http.MethodPatch, crdPath+crd.GetName(), "application/merge-patch+json", body)
	}
	if missing, ok := errors.AsType[*answerError](err); ok && missing.code == http.StatusNotFound {
		return nil
	}
	return err
}

// waitServed waits until every version of crds is served. It stops waiting for a CRD that was deleted, and returns an error
// for one that the API server rejects.
func (e *Environment) waitServed(ctx context.Context, crds []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeoutCause(ctx, e.opts.StartTimeout, fmt.Errorf("not served within %s", e.opts.StartTimeout))
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for _, crd := range crds {
		for {
			waiting, err := e.served(ctx, crd)
			if err != nil {
				return fmt.Errorf("install the CRD %q: %w", crd.GetName(), err)
			}
			if waiting == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("install the CRD %q: %w: %w", crd.GetName(), context.Cause(ctx), waiting)
			case <-tick.C:
			}
		}
	}
	return nil
}

// served reports whether a CRD is served: waiting is why not yet, err why it never will be.
func (e *Environment) served(ctx context.Context, crd *unstructured.Unstructured) (waiting, err error) {
	answer, waiting := e.api.do(ctx, http.MethodGet, crdPath+crd.GetName(), "", nil)
	if gone, ok := errors.AsType[*answerError](waiting); ok && gone.code == http.StatusNotFound {
		return nil, nil
	}
	if waiting != nil {
		return waiting, nil
	}
	var state crdState
	if err := json.Unmarshal(answer, &state); err != nil {
		return nil, err
	}
	if waiting, err := state.accepted(); waiting != nil || err != nil {
		return waiting, err
	}
	groups, waiting := e.api.do(ctx, http.MethodGet, "/apis", "", nil)
	if waiting != nil {
		return waiting, nil
	}
	for _, version := range state.Spec.Versions {
		if !version.Served {
			continue
		}
		path := "/apis/" + state.Spec.Group + "/" + version.Name
		if _, waiting := e.api.do(ctx, http.MethodGet, path+"/"+state.Spec.Names.Plural+"?limit=1", "", nil); waiting != nil {
			return waiting, nil
		}
		if !discovered(groups, state.Spec.Group, version.Name, state.Spec.Names.Plural) {
			return fmt.Errorf("discovery does not list %s/%s", path, state.Spec.Names.Plural), nil
		}
	}
	return nil, nil
}
