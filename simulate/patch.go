// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// mostOperations is how many steps a JSON patch may have.
const mostOperations = 10000

// patch stores what a PATCH makes of the object.
func (s *Server) patch(q *writing) (*object.Object, bool, error) {
	if q.applies() {
		return s.apply(q)
	}
	patch, err := q.readPatch()
	if err != nil {
		return nil, false, err
	}
	return s.change(q, false, func(old *object.Object) (*object.Object, error) {
		obj, err := q.patched(patch, old)
		if err != nil {
			return nil, err
		}
		return obj, q.own(old, obj)
	})
}

// patching is how one patch changes the JSON form of an object.
type patching func(k *Kind, original []byte) ([]byte, error)

// readPatch reads the body of a patch. It is read once, however often it is
// tried.
func (q *writing) readPatch() (patching, error) {
	if nesting(q.body) > deepest {
		return nil, apierrors.NewBadRequest("error decoding patch: exceeded max depth")
	}
	if !json.Valid(q.body) {
		return nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch types.PatchType(q.media) {
	case types.JSONPatchType:
		return readJSONPatch(q.body)
	case types.StrategicMergePatchType:
		return q.readStrategicPatch()
	}
	problems, err := strictly(q.body, &q.merging)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if err := q.report(problems); err != nil {
		return nil, invalidPatch(q.body, err)
	}
	return func(_ *Kind, original []byte) ([]byte, error) {
		patched, err := jsonpatch.MergePatch(original, q.body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patched, err
	}, nil
}

// strictly reads JSON and returns also what is there twice.
func strictly(body []byte, into any) ([]error, error) { return kjson.UnmarshalStrict(body, into) }

func readJSONPatch(body []byte) (patching, error) {
	var steps []map[string]any
	if _, err := strictly(body, &steps); err != nil {
		text := strings.ReplaceAll(err.Error(), "[]map[string]interface {}", "[]handlers.jsonPatchOp")
		return nil, apierrors.NewBadRequest("error decoding patch: " + text)
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(patch) > mostOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", mostOperations, len(patch)))
	}
	return func(_ *Kind, original []byte) ([]byte, error) {
		patched, err := applyPatch(patch, original)
		if err != nil {
			return nil, errUnprocessable()
		}
		return patched, nil
	}, nil
}

// applyPatch is what a JSON patch makes of a text.
func applyPatch(patch jsonpatch.Patch, original []byte) (patched []byte, err error) {
	defer func() {
		// The library indexes what the patch's author says is there.
		if broken := recover(); broken != nil {
			err = fmt.Errorf("apply a JSON patch: %v", broken)
		}
	}()
	return patch.Apply(original)
}

// errUnprocessable is all that is said of a JSON patch that cannot be applied.
func errUnprocessable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request", Details: &metav1.StatusDetails{},
	}}
}

func (q *writing) readStrategicPatch() (patching, error) {
	patch := map[string]any{}
	problems, err := strictly(q.body, &patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if err := q.report(problems); err != nil {
		return nil, invalidPatch(q.body, err)
	}
	return func(k *Kind, original []byte) ([]byte, error) {
		typed, err := gotypes.Scheme().New(k.GroupVersionKind)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		var fields map[string]any
		if _, err := strictly(original, &fields); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		merged, err := strategicMerge(fields, runtime.DeepCopyJSON(patch), typed)
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, typed); err != nil {
			return nil, invalidPatch(fmt.Appendf(nil, "%+v", patch), err)
		}
		return json.Marshal(merged)
	}, nil
}

func strategicMerge(fields, patch map[string]any, typed runtime.Object) (merged map[string]any, err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("the patch cannot be applied: %v", broken))
		}
	}()
	merged, err = strategicpatch.StrategicMergeMapPatch(fields, patch, typed)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return merged, nil
}

// patched is the object that a patch makes of old.
func (q *writing) patched(patch patching, old *object.Object) (*object.Object, error) {
	kind := q.kind
	if obj := q.patchedPlainly(old); obj != nil {
		return obj, q.check(obj)
	}
	original, err := json.Marshal(loose(old, kind).Object)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	text, err := patch(kind, original)
	if err != nil {
		if known := apierrors.APIStatus(nil); errors.As(err, &known) {
			return nil, err
		}
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj, problems, err := decodeAs(kind, contentJSON, text)
	if err != nil {
		return nil, invalidPatch(text, errors.New(causeOf(err)))
	}
	if err := q.report(problems); err != nil {
		return nil, invalidPatch(text, err)
	}
	return obj, q.check(obj)
}

// causeOf is an error's text without the sentence around it.
func causeOf(err error) string {
	text := err.Error()
	for _, mark := range []string{" cannot be handled as a ", "(must be of type "} {
		if _, after, ok := strings.Cut(text, mark); ok {
			if _, cause, ok := strings.Cut(after, ": "); ok {
				return cause
			}
		}
	}
	return text
}
