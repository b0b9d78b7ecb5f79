// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/gotypes"
	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// shownOfBody is how much of a body that means nothing is shown, in bytes.
const shownOfBody = 30

// deepest is how deeply the objects and lists of a body may be nested. What
// reads them calls itself for each level.
const deepest = 10000

// decode reads the object of a request, with its defaults.
func (q *writing) decode() (*object.Object, error) {
	obj, problems, err := decodeAs(q.kind, q.media, q.body)
	if problem := q.report(problems); problem != nil {
		return nil, q.kind.unreadable(problem)
	}
	if err != nil {
		return nil, err
	}
	return obj, q.check(obj)
}

// report treats what is wrong with the fields of a body as q asks for. An error
// is to be answered.
func (q *writing) report(problems []error) error {
	switch {
	case len(problems) == 0 || q.validation == metav1.FieldValidationIgnore:
	case q.validation == metav1.FieldValidationStrict:
		return runtime.NewStrictDecodingError(problems)
	default:
		for _, p := range problems {
			q.warn(p.Error())
		}
	}
	return nil
}

func (k *Kind) unreadable(cause error) error { return unreadableAs(k.GroupVersionKind, k.Kind, cause) }

func unreadableAs(given schema.GroupVersionKind, want string, cause error) error {
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", given.Kind, given.Version, want, cause))
}

// unrecognized is what is said of a body that has not even a kind.
func (k *Kind) unrecognized(body []byte, cause error) error {
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

// decodeAs reads an object of a kind, with its defaults. problems are fields
// that the kind does not have, or that are there twice.
func decodeAs(k *Kind, media string, body []byte) (obj *object.Object, problems []error, err error) {
	if media != contentProtobuf && nesting(body) > deepest {
		return nil, nil, k.unrecognized(body, tooDeep(media, body))
	}
	if k.builtin {
		return decodeTyped(k, media, body)
	}
	return decodeFields(k, media, body)
}

// tooDeep is what the reader of a medium says of a body that is nested deeper
// than it reads.
func tooDeep(media string, body []byte) error {
	at, depth := 0, 0
	for i, c := range body {
		if c == '{' || c == '[' {
			if depth++; depth > deepest {
				at = i
				break
			}
		}
	}
	if media == contentYAML {
		return fmt.Errorf("yaml: line %d: exceeded max depth of %d", bytes.Count(body[:at], []byte("\n"))+1, deepest)
	}
	return fmt.Errorf("couldn't get version/kind; json parse error: invalid character '%c' exceeded max depth", body[at])
}

// nesting is how deeply brackets are nested in a text, at most.
func nesting(text []byte) (most int) {
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

// decodeTyped reads an object of a kind that has a Go type, through that type.
func decodeTyped(k *Kind, media string, body []byte) (*object.Object, []error, error) {
	info, ok := runtime.SerializerInfoForMediaType(gotypes.Codecs().SupportedMediaTypes(), media)
	if !ok {
		return nil, nil, apierrors.NewBadRequest("no serializer defined for " + media)
	}
	serializer := info.StrictSerializer
	if serializer == nil {
		serializer = info.Serializer
	}
	typed, given, err := serializer.Decode(body, &k.GroupVersionKind, nil)
	var problems []error
	if strict, is := runtime.AsStrictDecodingError(err); is && typed != nil {
		problems, err = strict.Errors(), nil
	}
	switch {
	case err != nil && (given == nil || given.Kind == ""):
		return nil, nil, k.unrecognized(body, err)
	case err != nil:
		return nil, nil, unreadableAs(*given, k.Kind, err)
	case given.Kind != k.Kind || given.Group != k.Group:
		return nil, nil, unreadableAs(*given, k.Kind, fmt.Errorf("converting (%s) to (%s): unknown conversion", goType(*given), goInternalType(k.GroupVersionKind)))
	case given.GroupVersion() != k.GroupVersion():
		return nil, nil, otherVersion(given.GroupVersion(), k)
	}
	job, isJob := typed.(*batchv1.Job)
	labelled := isJob && len(job.Labels) == 0
	defaults.Set(typed)
	obj, err := objectOfTyped(k, typed)
	if err != nil {
		return nil, nil, k.unreadable(err)
	}
	obj.Labelled = labelled
	return obj, problems, nil
}

func otherVersion(given schema.GroupVersion, k *Kind) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", given, k.GroupVersion()))
}

// objectOfTyped is a typed object as the server holds it.
func objectOfTyped(k *Kind, typed runtime.Object) (*object.Object, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	return &object.Object{Fields: fields}, nil
}

// goType is what Kubernetes calls a type of one version, goInternalType the one
// that all versions become.
func goType(gvk schema.GroupVersionKind) string { return gvk.Version + "." + gvk.Kind }

func goInternalType(gvk schema.GroupVersionKind) string {
	group, _, _ := strings.Cut(gvk.Group, ".")
	if group == "" {
		group = "core"
	}
	return group + "." + gvk.Kind
}

// decodeFields reads an object of a kind that has no Go type.
func decodeFields(k *Kind, media string, body []byte) (*object.Object, []error, error) {
	if media == contentYAML {
		text, err := yaml.YAMLToJSON(body)
		if err != nil {
			return nil, nil, k.unrecognized(body, err)
		}
		body = text
	}
	given, err := kindIn(body)
	if err != nil {
		return nil, nil, k.unrecognized(body, err)
	}
	var fields map[string]any
	problems, err := kjson.UnmarshalStrict(body, &fields)
	if k.schema == nil && given.Empty() && fields != nil {
		// A kind without a schema is a test's own, which may be short about it.
		given = k.GroupVersionKind
		fields["apiVersion"], fields["kind"] = k.GroupVersion().String(), k.Kind
	}
	switch {
	case err != nil:
		return nil, nil, k.unrecognized(body, fmt.Errorf("couldn't get version/kind; json parse error: %w", err))
	case given.Kind == "":
		return nil, nil, k.unrecognized(body, runtime.NewMissingKindErr(string(body)))
	case given.GroupVersion() != k.GroupVersion():
		return nil, append(problems, k.foreign(given, fields)...), otherVersion(given.GroupVersion(), k)
	case given.Kind != k.Kind:
		name, _, _ := unstructured.NestedString(fields, "metadata", "name")
		return nil, nil, apierrors.NewInvalid(given.GroupKind(), name, field.ErrorList{field.Invalid(field.NewPath("kind"), given.Kind, "must be "+k.Kind)})
	}
	unknown, err := k.coerce(fields)
	if err != nil {
		return nil, nil, k.unreadable(err)
	}
	return &object.Object{Fields: fields}, append(problems, unknown...), nil
}

// kindIn is what a body says that it is.
func kindIn(body []byte) (schema.GroupVersionKind, error) {
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

// foreign are the fields of a body that its own version does not have. One that
// there is not has none.
func (k *Kind) foreign(given schema.GroupVersionKind, fields map[string]any) (unknown []error) {
	if k.schema == nil || given.GroupKind() != k.GroupKind() {
		return nil
	}
	if other := k.sibling(given.GroupVersion()); other != nil {
		unknown, _ = other.coerce(fields)
		return unknown
	}
	for _, name := range jsonvalue.SortedKeys(fields) {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			unknown = append(unknown, fmt.Errorf(`unknown field "%s"`, name))
		}
	}
	return unknown
}

// coerce brings fields into the form that k's schema gives them, with its
// defaults, and returns what it drops.
func (k *Kind) coerce(fields map[string]any) (unknown []error, err error) {
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
	if k.schema != nil {
		pruned, err := k.schema.Prune(fields)
		if err != nil {
			return nil, err
		}
		paths = append(paths, pruned...)
		k.schema.SetDefaults(fields)
	}
	for _, path := range paths {
		unknown = append(unknown, fmt.Errorf(`unknown field "%s"`, path))
	}
	return unknown, nil
}

// check holds the object of a request against its path.
func (c *call) check(obj *object.Object) error {
	m := obj.Meta()
	if m.GetNamespace() == "" && c.kind.Namespaced {
		m.SetNamespace(c.namespace)
	}
	switch {
	case !c.kind.Namespaced && m.GetNamespace() != "":
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case m.GetNamespace() != c.namespace && c.kind.Namespaced:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case c.name != "" && m.GetName() == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", c.name))
	case c.name != "" && m.GetName() != c.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), c.name))
	}
	return nil
}

func (c *call) key() types.NamespacedName {
	if !c.kind.Namespaced {
		return types.NamespacedName{Name: c.name}
	}
	return types.NamespacedName{Namespace: c.namespace, Name: c.name}
}
