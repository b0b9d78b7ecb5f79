// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/flyball-dev/flyball/internal/applied"
)

// HandOver makes an apply the owner of all that the named field owners have written by Create,
// Update or Patch, so that it removes what obj does not have: for a program that wrote by
// Update, and now applies. Otherwise such fields stay for ever. It looks at each object
// before the first apply that is sent, once per process, which costs a read and the right to get,
// and if there is something to hand over a patch of managedFields. It is not reversible. Name
// no owner that still writes the object by Update: the next process would take its fields.
// A dry run hands over nothing. Fits apply.
//
//	children := reconcile.NewChildSet(mgr.Client().With(client.HandOver{"manager"}), …)
type HandOver []string

func (HandOver) fits() verb { return verbApply }

func (o HandOver) set(c *callOptions) error {
	c.handOver = o
	for _, owner := range o {
		if owner == "" {
			return errors.New("a field owner to hand over from is empty")
		}
	}
	return nil
}

// handOverTries is how many times a hand-over is tried while others change the object.
const handOverTries = 5

// handOver hands the fields of an object over to the field owner of an apply, unless that was
// done before.
func (c *Client) handOver(ctx context.Context, at *call, key applied.Key) error {
	if len(at.handOver) == 0 || at.dryRun || c.handed.has(key) {
		return nil
	}
	for tries := 1; ; tries++ {
		done, err := c.handOverOnce(ctx, at)
		if apierrors.IsConflict(err) && tries < handOverTries {
			continue
		}
		if done {
			c.handed.add(key)
		}
		return err
	}
}

// handOverOnce reports whether the object exists, and nothing is left to hand over.
func (c *Client) handOverOnce(ctx context.Context, at *call) (done bool, err error) {
	is := &metav1.PartialObjectMetadata{}
	is.SetGroupVersionKind(at.kind)
	if err := c.Get(ctx, at.key, is); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil // the apply creates it
		}
		return false, err
	}
	fields := is.GetManagedFields()
	for i := range fields {
		if fields[i].FieldsV1 == nil {
			fields[i].FieldsV1 = &metav1.FieldsV1{}
			fields[i].FieldsV1.SetRawBytes([]byte("{}"))
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(is, sets.New(at.handOver...), at.fieldOwner, csaupgrade.Subresource(at.sub))
	if err != nil || patch == nil {
		return err == nil, err
	}
	write, err := c.aim(ctx, verbPatch, "", is, []Option{FieldOwner(at.fieldOwner)})
	if err != nil {
		return false, err
	}
	write.version = is.GetResourceVersion() // which the patch names
	like := c.whole(empty(is), at.kind)
	a, err := c.write(ctx, write, http.MethodPatch, string(types.JSONPatchType), c.accept(like), patch)
	if err != nil {
		return false, err
	}
	return true, c.settled(write, a, like)
}

// maxHanded bounds the memory of hand-overs. When it is full, they are all forgotten.
const maxHanded = 10_000

// handed remembers which applies have been handed over to.
type handed struct {
	mu struct {
		sync.Mutex
		to map[applied.Key]struct{}
	}
}

func (h *handed) has(key applied.Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, has := h.mu.to[key]
	return has
}

func (h *handed) add(key applied.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.to == nil || len(h.mu.to) >= maxHanded {
		h.mu.to = make(map[applied.Key]struct{})
	}
	h.mu.to[key] = struct{}{}
}
