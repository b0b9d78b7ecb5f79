// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package decode parses the bodies of requests: objects in JSON, YAML and protobuf, with
// their defaults, and patches. It refuses what a real server refuses, with the same
// messages. It sees kinds, and no requests.
package decode

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// shownOfBody is how many bytes of an unrecognized body an error shows.
const shownOfBody = 30

// Deepest is the maximum nesting of objects and lists in a body. The decoders are
// recursive.
const Deepest = 10000

func Unreadable(k *kinds.Kind, cause error) error {
	return UnreadableAs(k.GroupVersionKind, k.Kind, cause)
}

func UnreadableAs(given schema.GroupVersionKind, want string, cause error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", given.Kind, given.Version, want, cause))
}

// Unrecognized returns the error for a body without a recognizable kind.
func Unrecognized(k *kinds.Kind, body []byte, cause error) error {
	shown := "<empty>"
	if len(body) > 0 {
		form := "%x"
		if body[0] == '{' {
			form = "%s"
		}
		shown = fmt.Sprintf(form, body[:min(len(body), shownOfBody)])
		if len(body) > shownOfBody {
			shown += " ..."
		}
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", k.Kind, cause, shown))
}

// Object decodes an object of a kind, with its defaults. problems are unknown and duplicate
// fields.
func Object(k *kinds.Kind, media string, body []byte) (obj *object.Object, problems []error, err error) {
	if media != runtime.ContentTypeProtobuf && Nesting(body) > Deepest {
		return nil, nil, Unrecognized(k, body, tooDeep(media, body))
	}
	if k.Builtin {
		return decodeTyped(k, media, body)
	}
	return decodeFields(k, media, body)
}

// tooDeep returns the error of a media type's decoder for a body that is nested too deeply.
func tooDeep(media string, body []byte) error {
	at, depth := 0, 0
	for i, c := range body {
		if c == '{' || c == '[' {
			if depth++; depth > Deepest {
				at = i
				break
			}
		}
	}
	if media == runtime.ContentTypeYAML {
		return fmt.Errorf("yaml: line %d: exceeded max depth of %d", bytes.Count(body[:at], []byte("\n"))+1, Deepest)
	}
	return fmt.Errorf("couldn't get version/kind; json parse error: invalid character '%c' exceeded max depth", body[at])
}

// Nesting returns the maximum nesting of brackets in a text.
func Nesting(text []byte) (most int) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

// decodeTyped decodes an object of a kind with a Go type, through that type.
func decodeTyped(k *kinds.Kind, media string, body []byte) (*object.Object, []error, error) {
	info, ok := runtime.SerializerInfoForMediaType(models.Codecs().SupportedMediaTypes(), media)
	if !ok {
		return nil, nil, apierrors.NewBadRequest("no serializer defined for " + media)
	}
	serializer := cmp.Or(info.StrictSerializer, info.Serializer)
	typed, given, err := serializer.Decode(body, &k.GroupVersionKind, nil)
	var problems []error
	if strict, is := runtime.AsStrictDecodingError(err); is && typed != nil {
		problems, err = strict.Errors(), nil
	}
	switch {
	case err != nil && (given == nil || given.Kind == ""):
		return nil, nil, Unrecognized(k, body, err)
	case err != nil:
		return nil, nil, UnreadableAs(*given, k.Kind, err)
	case given.Kind != k.Kind || given.Group != k.Group:
		return nil, nil, UnreadableAs(*given, k.Kind, fmt.Errorf("converting (%s) to (%s): unknown conversion", kinds.GoType(*given), kinds.GoInternalType(k.GroupVersionKind)))
	case given.GroupVersion() != k.GroupVersion():
		return nil, nil, otherVersion(given.GroupVersion(), k)
	}
	job, isJob := typed.(*batchv1.Job)
	labelled := isJob && len(job.Labels) == 0
	defaults.Set(typed)
	obj, err := kinds.ObjectOfTyped(k, typed)
	if err != nil {
		return nil, nil, Unreadable(k, err)
	}
	obj.Labelled = labelled
	return obj, problems, nil
}

func otherVersion(given schema.GroupVersion, k *kinds.Kind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", given, k.GroupVersion()))
}

// decodeFields decodes an object of a kind without a Go type.
func decodeFields(k *kinds.Kind, media string, body []byte) (*object.Object, []error, error) {
	if media == runtime.ContentTypeYAML {
		text, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, nil, Unrecognized(k, body, err)
		}
		body = text
	}
	given, err := KindIn(body)
	if err != nil {
		return nil, nil, Unrecognized(k, body, err)
	}
	var fields map[string]any
	problems, err := kjson.UnmarshalStrict(body, &fields)
	if k.Schema == nil && given.Empty() && fields != nil {
		// A kind without a schema comes from a test, whose objects may omit it.
		given = k.GroupVersionKind
		fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	}
	switch {
	case err != nil:
		return nil, nil, Unrecognized(k, body, fmt.Errorf("couldn't get version/kind; json parse error: %w", err))
	case given.Kind == "":
		return nil, nil, Unrecognized(k, body, runtime.NewMissingKindErr(string(body)))
	case given.GroupVersion() != k.GroupVersion():
		return nil, append(problems, foreign(k, given, fields)...), otherVersion(given.GroupVersion(), k)
	case given.Kind != k.Kind:
		name, _, _ := unstructured.NestedString(fields, "metadata", "name")
		return nil, nil, apierrors.NewInvalid(given.GroupKind(), name, field.ErrorList{field.Invalid(field.NewPath("kind"), given.Kind, "must be "+k.Kind)})
	}
	unknown, err := coerce(k, fields)
	if err != nil {
		return nil, nil, Unreadable(k, err)
	}
	return &object.Object{Fields: fields}, append(problems, unknown...), nil
}

// KindIn returns the kind that a body names.
func KindIn(body []byte) (schema.GroupVersionKind, error) {
	var given struct {
		APIVersion string `json:"apiVersion,omitempty"`
		Kind       string `json:"kind,omitempty"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &given); err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("couldn't get version/kind; json parse error: %w", err)
	}
	gv, err := schema.ParseGroupVersion(given.APIVersion)
	return gv.WithKind(given.Kind), err
}

// foreign returns the fields of a body that its own version does not have, none if that
// version does not exist.
func foreign(k *kinds.Kind, given schema.GroupVersionKind, fields map[string]any) (unknown []error) {
	if k.Schema == nil || given.GroupKind() != k.GroupKind() {
		return nil
	}
	if other := k.Sibling(given.GroupVersion()); other != nil {
		unknown, _ = coerce(other, fields)
		return unknown
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			unknown = append(unknown, fmt.Errorf(`unknown field "%s"`, name))
		}
	}
	return unknown
}

// coerce brings fields into the form of k's schema, with defaults, and returns the fields
// that it drops.
func coerce(k *kinds.Kind, fields map[string]any) (unknown []error, err error) {
	metadata, found, paths, err := objectmeta.GetObjectMetaWithOptions(fields, objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	if !found || metadata == nil {
		metadata = &metav1.ObjectMeta{}
	}
	if err := objectmeta.SetObjectMeta(fields, metadata); err != nil {
		return nil, err
	}
	if metadata.CreationTimestamp.IsZero() {
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
	}
	if k.Schema != nil {
		pruned, err := k.Schema.Prune(fields)
		if err != nil {
			return nil, err
		}
		paths = append(paths, pruned...)
		k.Schema.SetDefaults(fields)
	}
	for _, path := range paths {
		unknown = append(unknown, fmt.Errorf(`unknown field "%s"`, path))
	}
	return unknown, nil
}

// Typed reads a body of a kind that is not stored, such as a Scale, as its Go type.
func Typed[T any](gvk schema.GroupVersionKind, media string, body []byte) (*T, error) {
	obj, given, err := ofKind(gvk, media, body)
	if err != nil {
		return nil, err
	}
	typed, ok := obj.(any).(*T)
	if !ok {
		return nil, errOtherKind(given, gvk)
	}
	return typed, nil
}

// TypedObject is Typed for a kind that is not known at compile time.
func TypedObject(gvk schema.GroupVersionKind, media string, body []byte) (runtime.Object, error) {
	obj, given, err := ofKind(gvk, media, body)
	if err != nil {
		return nil, err
	}
	if want, err := models.Scheme().New(gvk); err != nil || reflect.TypeOf(obj) != reflect.TypeOf(want) {
		return nil, errOtherKind(given, gvk)
	}
	return obj, nil
}

// ofKind reads a body that is of gvk if it does not name another kind.
func ofKind(gvk schema.GroupVersionKind, media string, body []byte) (obj runtime.Object, given schema.GroupVersionKind, err error) {
	if Nesting(body) > Deepest && media != runtime.ContentTypeProtobuf {
		return nil, given, apierrors.NewBadRequest("exceeded max depth")
	}
	info, ok := runtime.SerializerInfoForMediaType(models.Codecs().SupportedMediaTypes(), media)
	if !ok {
		return nil, given, refusal.Media(runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
	}
	obj, as, err := info.Serializer.Decode(body, &gvk, nil)
	if err != nil {
		return nil, given, Unrecognized((&kinds.Kind{GroupVersionKind: gvk}), body, err)
	}
	return obj, *as, nil
}

func errOtherKind(given, want schema.GroupVersionKind) error {
	return UnreadableAs(given, want.Kind, fmt.Errorf("converting (%s) to (%s): unknown conversion", kinds.GoType(given), kinds.GoInternalType(want)))
}
