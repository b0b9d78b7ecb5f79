// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decode

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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// mostOperations is the maximum number of operations in a JSON patch.
const mostOperations = 10000

// Patch is a decoded patch.
type Patch struct {
	media string
	body  []byte
	// apply patches the JSON of an object.
	apply func(k *kinds.Kind, original []byte) ([]byte, error)
	// Merging is a merge patch; nil for another patch.
	Merging   map[string]any
	strategic map[string]any // a strategic merge patch
}

// ReadPatch decodes the body of a patch. problems are duplicate fields.
func ReadPatch(media string, body []byte) (p Patch, problems []error, err error) {
	p = Patch{media: media, body: body}
	if Nesting(body) > Deepest {
		return p, nil, apierrors.NewBadRequest("error decoding patch: exceeded max depth")
	}
	if !json.Valid(body) {
		return p, nil, apierrors.NewBadRequest("invalid JSON patch")
	}
	switch types.PatchType(media) {
	case types.JSONPatchType:
		p.apply, err = readJSONPatch(body)
		return p, nil, err
	case types.StrategicMergePatchType:
		p.apply, p.strategic, problems, err = readStrategicPatch(body)
		return p, problems, err
	}
	if problems, err = Strictly(body, &p.Merging); err != nil {
		return p, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	p.apply = func(_ *kinds.Kind, original []byte) ([]byte, error) {
		patched, err := jsonpatch.MergePatch(original, body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return patched, err
	}
	return p, problems, nil
}

// On applies the patch to old, an object of kind. problems are unknown fields of the
// result; text is the patched JSON.
func (p Patch) On(kind *kinds.Kind, old *object.Object) (obj *object.Object, problems []error, text []byte, err error) {
	if obj := p.plainlyOn(kind, old); obj != nil {
		return obj, nil, nil, nil
	}
	return p.throughTextOn(kind, old)
}

// throughTextOn applies the patch to the JSON of old.
func (p Patch) throughTextOn(kind *kinds.Kind, old *object.Object) (obj *object.Object, problems []error, text []byte, err error) {
	original, err := json.Marshal(kinds.Loose(old, kind).Object)
	if err != nil {
		return nil, nil, nil, apierrors.NewInternalError(err)
	}
	text, err = p.apply(kind, original)
	if err != nil {
		if known := apierrors.APIStatus(nil); errors.As(err, &known) {
			return nil, nil, nil, err
		}
		return nil, nil, nil, apierrors.NewBadRequest(err.Error())
	}
	obj, problems, err = Object(kind, runtime.ContentTypeJSON, text)
	if err != nil {
		return nil, nil, nil, InvalidPatch(text, errors.New(CauseOf(err)))
	}
	return obj, problems, text, nil
}

// Strictly decodes JSON and returns duplicate and unknown fields too.
func Strictly(body []byte, into any) ([]error, error) { return kjson.UnmarshalStrict(body, into) }

func readJSONPatch(body []byte) (func(k *kinds.Kind, original []byte) ([]byte, error), error) {
	var steps []map[string]any
	if _, err := Strictly(body, &steps); err != nil {
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
	return func(_ *kinds.Kind, original []byte) ([]byte, error) {
		patched, err := ApplyPatch(patch, original)
		if err != nil {
			return nil, errUnprocessable()
		}
		return patched, nil
	}, nil
}

// ApplyPatch applies a JSON patch to a text.
func ApplyPatch(patch jsonpatch.Patch, original []byte) (patched []byte, err error) {
	defer func() {
		// The library indexes with numbers from the patch, unchecked.
		if broken := recover(); broken != nil {
			err = fmt.Errorf("apply a JSON patch: %v", broken)
		}
	}()
	return patch.Apply(original)
}

// errUnprocessable returns the error for every JSON patch that cannot be applied.
func errUnprocessable() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "the server rejected our request due to an error in our request", Details: &metav1.StatusDetails{},
	}}
}

func readStrategicPatch(body []byte) (apply func(k *kinds.Kind, original []byte) ([]byte, error), patch map[string]any, problems []error, err error) {
	patch = map[string]any{}
	if problems, err = Strictly(body, &patch); err != nil {
		return nil, nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return func(k *kinds.Kind, original []byte) ([]byte, error) {
		typed, err := models.Scheme().New(k.GroupVersionKind)
		if err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		var fields map[string]any
		if _, err := Strictly(original, &fields); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
		merged, err := strategicMerge(fields, runtime.DeepCopyJSON(patch), typed)
		if err != nil {
			return nil, err
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(merged, typed); err != nil {
			return nil, InvalidPatch(fmt.Appendf(nil, "%+v", patch), err)
		}
		return json.Marshal(merged)
	}, patch, problems, nil
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

// CauseOf returns the text of an error without the sentence around it.
func CauseOf(err error) string {
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

// InvalidPatch returns the error for an object that a patch made undecodable.
func InvalidPatch(patched []byte, cause error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(patched), cause.Error()),
	})
}
