// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package crdinstall installs the CustomResourceDefinitions of a program before its
// informers start.
//
//	read ─▶ Decide ─▶ create or update, of the version that was read ─▶ established
//	 ▲                        │ conflict: another replica was first
//	 └────────────────────────┘
//
// Decide is told what the server has and what the program wants, and keeps, creates, updates, or
// names each change that takes something from clients. The annotation Annotation lists the hashes
// of the specs and labels that programs have installed. By it a program whose spec was replaced
// knows that it is older, and leaves the newer one. A program with a new spec replaces the one on
// the server, unless that narrows it.
//
// # What narrows
//
// A value, stored or sent, that the old schema keeps and accepts and the new one drops or
// refuses; a version that is no longer served or kept while objects may be stored in it; a
// name, a subresource or a selectable field that requests use. Where keywords cannot be
// compared (patterns, formats, CEL rules, oneOf), a change counts as narrowing. A property
// that becomes required has to have a default. Without a conversion, a version that becomes
// the stored one keeps what the stored one before it had. The bounds of quantities that
// flyball crds writes narrow nothing: what they refuse, no program decodes.
//
// # Promises
//
// O6 to O8 of package manager.
//
// # Concurrency
//
// An Installer runs once. It starts no goroutines. Decide and what it needs are pure functions.
//
// # Testing
//
// With managers on a simulated server, and on a real control plane. Decide by tables, and by a
// fuzz target that holds the comparison against a small validator.
package crdinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/manifest"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

const (
	apiVersion = "apiextensions.k8s.io/v1"

	firstPoll = 50 * time.Millisecond
	slowPoll  = time.Second

	firstPause = time.Second // after a fault of the server
	longPause  = 30 * time.Second
)

// Read returns the CustomResourceDefinitions in the YAML and JSON files of files, at any
// depth. It is an error if there is none, or if a file has another object.
func Read(files fs.FS) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)) {
			return err
		}
		file, err := files.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }() // read only
		objects, err := manifest.Parse(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, object := range objects {
			if err := check(object); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if slices.ContainsFunc(all, func(other *unstructured.Unstructured) bool { return other.GetName() == object.GetName() }) {
				return fmt.Errorf("%s: %q is defined twice", name, object.GetName())
			}
			all = append(all, object)
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("no .yaml, .yml or .json file has a CustomResourceDefinition")
	}
	return all, err
}

func check(object *unstructured.Unstructured) error {
	switch {
	case object.GetKind() != manifest.Definition:
		return fmt.Errorf("it has the %s %q; only CustomResourceDefinitions are installed", object.GetKind(), object.GetName())
	case object.GetAPIVersion() != apiVersion:
		return fmt.Errorf("%q has the version %s, want %s", object.GetName(), object.GetAPIVersion(), apiVersion)
	case object.GetName() == "":
		return errors.New("a CustomResourceDefinition has no metadata.name")
	}
	return nil
}

// Installer installs CustomResourceDefinitions.
type Installer struct {
	client  *client.Client
	crds    []*unstructured.Unstructured
	started chan struct{}
}

// New returns an Installer of crds, which it does not change.
func New(c *client.Client, crds []*unstructured.Unstructured) *Installer {
	return &Installer{client: c, crds: crds, started: make(chan struct{})}
}

// Name implements manager.Named.
func (i *Installer) Name() string { return "CRDs" }

// Started is closed when all are established.
func (i *Installer) Started() <-chan struct{} { return i.started }

// Synced is Started: readiness waits for it, too.
func (i *Installer) Synced() <-chan struct{} { return i.started }

// Run installs what is missing or may be updated, waits until all are established, and
// returns. While the server does not answer, it tries again until ctx ends.
func (i *Installer) Run(ctx context.Context) error {
	for _, crd := range i.crds {
		if err := i.until(ctx, crd, i.install); err != nil {
			return about("install", crd, err)
		}
	}
	for _, crd := range i.crds {
		if err := i.until(ctx, crd, i.established); err != nil {
			return about("wait for", crd, err)
		}
	}
	close(i.started)
	return nil
}

func about(doing string, crd *unstructured.Unstructured, err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; the program needs the verbs get, create and update of customresourcedefinitions.apiextensions.k8s.io, "+
			"or the flag -install-crds=false", err)
	}
	return fmt.Errorf("%s CustomResourceDefinition %s: %w", doing, crd.GetName(), err)
}

// errNotYet: another look is needed.
var errNotYet = errors.New("not yet")

// until calls step until it succeeds, or returns an error that does not pass.
func (i *Installer) until(ctx context.Context, crd *unstructured.Unstructured, step func(context.Context, *unstructured.Unstructured) error) error {
	log := logr.FromContextOrDiscard(ctx).WithValues("crd", crd.GetName())
	poll, pause := firstPoll, firstPause
	for {
		err := step(ctx, crd)
		wait := poll
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, errNotYet):
			poll = min(2*poll, slowPoll)
		case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err):
			log.V(1).Info("Another writer was first; reading the CustomResourceDefinition again")
		case !passes(err):
			return err
		default:
			textlog.Warn(log, err, "Cannot install the CustomResourceDefinition yet", "retryAfter", pause.String())
			wait, pause = pause, min(2*pause, longPause)
		}
		if !sleep.For(ctx, wait) {
			return ctx.Err()
		}
	}
}

// passes reports whether an error may pass without a change of the program or of its rights.
func passes(err error) bool {
	if _, narrows := errors.AsType[*NarrowingError](err); narrows {
		return false
	}
	if _, refused := errors.AsType[*namesError](err); refused {
		return false
	}
	return !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err)
}

// install writes crd if the server has none, or one that it may replace.
func (i *Installer) install(ctx context.Context, crd *unstructured.Unstructured) error {
	have, older, err := i.write(ctx, crd)
	if err == nil && older {
		logr.FromContextOrDiscard(ctx).Info("Leaving the CustomResourceDefinition as it is: it has replaced the one of this program",
			"crd", crd.GetName(), "generation", have.GetGeneration())
	}
	return err
}

// write is install. It returns what the server has, nil if that was replaced, and whether it
// is newer than crd.
func (i *Installer) write(ctx context.Context, crd *unstructured.Unstructured) (have *unstructured.Unstructured, older bool, err error) {
	log := logr.FromContextOrDiscard(ctx).WithValues("crd", crd.GetName())
	if have, err = i.read(ctx, crd); err != nil {
		return nil, false, err
	}
	if have.GetDeletionTimestamp() != nil {
		return nil, false, errors.New("it is being deleted")
	}
	decision, err := Decide(have.Object, crd.Object)
	if err != nil {
		return nil, false, err
	}
	to := &unstructured.Unstructured{Object: decision.Object}
	switch decision.Action {
	case Create:
		if err := i.client.Create(ctx, to); err != nil {
			return nil, false, err
		}
		log.Info("Created the CustomResourceDefinition")
		return nil, false, nil
	case Update:
		if err := i.client.Update(ctx, to); err != nil {
			return nil, false, err
		}
		log.Info("Updated the CustomResourceDefinition")
		return nil, false, nil
	}
	return have, decision.Older, nil
}

// read returns the CustomResourceDefinition of the server, without content if there is none.
func (i *Installer) read(ctx context.Context, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	have := &unstructured.Unstructured{}
	have.SetAPIVersion(apiVersion)
	have.SetKind(manifest.Definition)
	err := i.client.Get(ctx, kube.Key{Name: crd.GetName()}, have)
	if apierrors.IsNotFound(err) {
		return &unstructured.Unstructured{}, nil
	}
	return have, err
}

// namesError is why the server does not accept the names of a CustomResourceDefinition.
type namesError struct{ message string }

func (e *namesError) Error() string { return "its names are not accepted: " + e.message }

// established returns nil when the server serves crd.
func (i *Installer) established(ctx context.Context, crd *unstructured.Unstructured) error {
	have, _, err := i.write(ctx, crd)
	if err != nil {
		return err
	}
	if have == nil {
		return errNotYet
	}
	conditions, _, _ := unstructured.NestedSlice(have.Object, "status", "conditions")
	for _, each := range conditions {
		condition, _ := each.(map[string]any)
		switch status := condition["status"]; condition["type"] {
		case "Established":
			if status == "True" {
				return nil
			}
		case "NamesAccepted":
			if message, _ := condition["message"].(string); status == "False" {
				return &namesError{message}
			}
		}
	}
	return errNotYet
}
