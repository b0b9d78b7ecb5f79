// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// conversionTimeout is how long a conversion webhook may take.
const conversionTimeout = 30 * time.Second

// conversionWebhook asks a webhook to turn objects of one version into those of
// another, one at a time, as a real server does when it reads what is stored.
type conversionWebhook struct {
	webhookClient
	version string // of the reviews; empty: none that the server knows
}

// Conversion is how objects of a CRD are converted; nil: only the version is
// written anew.
func Conversion(c *apiextensionsv1.CustomResourceConversion, dialer Dialer) func(*object.Object, *kinds.Kind, *kinds.Kind) (*object.Object, error) {
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return nil
	}
	w := &conversionWebhook{webhookClient: webhookClient{dialer: dialer, url: c.Webhook.ClientConfig.URL, bundle: c.Webhook.ClientConfig.CABundle, timeout: conversionTimeout}}
	if s := c.Webhook.ClientConfig.Service; s != nil {
		w.service(s.Namespace, s.Name, s.Path, s.Port)
	}
	for _, v := range c.Webhook.ConversionReviewVersions {
		if v == "v1" && w.version == "" {
			w.version = v
		}
	}
	return w.convert
}

// convert is obj as an object of another version. Its metadata stays as it is,
// but for labels and annotations.
func (w *conversionWebhook) convert(obj *object.Object, from, to *kinds.Kind) (*object.Object, error) {
	in := kinds.Loose(obj, from)
	if len(in.Object) == 3 && len(obj.Meta().GetUID()) == 0 && len(obj.Meta().GetName()) == 0 {
		return &object.Object{Fields: kinds.Loose(obj, to).Object}, nil // nothing yet
	}
	out, err := w.ask(in, to.GroupVersion())
	if err != nil {
		return nil, refusal.Plain(fmt.Errorf("conversion webhook for %v failed: %w", from.GroupVersionKind, err))
	}
	switch given := out.GroupVersionKind(); {
	case given.GroupVersion() != to.GroupVersion():
		return nil, refusal.Plain(fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid groupVersion (expected %v, received %v)", from.GroupVersionKind, to.GroupVersion(), given.GroupVersion()))
	case given.Kind != from.Kind:
		return nil, refusal.Plain(fmt.Errorf("conversion webhook for %v returned invalid object at index 0: invalid kind (expected %v, received %v)", from.GroupVersionKind, from.Kind, given.Kind))
	}
	if err := sameObject(in, out); err != nil {
		return nil, refusal.Plain(fmt.Errorf("conversion webhook for %v returned invalid object: %w", from.GroupVersionKind, err))
	}
	if err := restoreMetadata(in, out); err != nil {
		return nil, refusal.Plain(fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", from.GroupVersionKind, err))
	}
	return &object.Object{Fields: out.Object, Corrupt: obj.Corrupt}, nil
}

// ask sends one object, and returns what it becomes.
func (w *conversionWebhook) ask(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	if w.version == "" {
		return nil, errors.New("the webhook takes no version of reviews that the server sends")
	}
	raw, err := in.MarshalJSON()
	if err != nil {
		return nil, err
	}
	review := &apiextensionsv1.ConversionReview{Request: &apiextensionsv1.ConversionRequest{
		UID: reviewUID(0, int(in.GetGeneration())), DesiredAPIVersion: to.String(), Objects: []runtime.RawExtension{{Raw: raw}},
	}}
	review.APIVersion, review.Kind = apiextensionsv1.SchemeGroupVersion.String(), "ConversionReview"
	ctx, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	body, err := w.post(ctx, review)
	if err != nil {
		return nil, err
	}
	answer := &apiextensionsv1.ConversionReview{}
	if err := decodeReview(body, review.GroupVersionKind(), answer); err != nil {
		return nil, err
	}
	r := answer.Response
	switch {
	case answer.GroupVersionKind() != review.GroupVersionKind():
		want, got := review.GroupVersionKind(), answer.GroupVersionKind()
		return nil, fmt.Errorf("expected webhook response of %v, got %v", want.String(), got.String())
	case r == nil:
		return nil, errors.New("no response provided")
	case r.UID != review.Request.UID:
		return nil, fmt.Errorf("expected response.uid=%q, got %q", review.Request.UID, r.UID)
	case r.Result.Status != metav1.StatusSuccess && r.Result.Message != "":
		return nil, errors.New(r.Result.Message)
	case r.Result.Status != metav1.StatusSuccess:
		return nil, fmt.Errorf("response.result.status was '%s', not 'Success'", r.Result.Status)
	case len(r.ConvertedObjects) != 1:
		return nil, fmt.Errorf("returned %d objects, expected 1", len(r.ConvertedObjects))
	}
	out := &unstructured.Unstructured{}
	return out, out.UnmarshalJSON(r.ConvertedObjects[0].Raw)
}

// sameObject holds a converted object against the one that it was.
func sameObject(in, out *unstructured.Unstructured) error {
	for _, each := range []struct{ what, is, was string }{
		{"name", out.GetName(), in.GetName()}, {"namespace", out.GetNamespace(), in.GetNamespace()}, {"UID", string(out.GetUID()), string(in.GetUID())},
	} {
		if each.is != each.was {
			return fmt.Errorf("must have the same %s: %v != %v", each.what, each.was, each.is)
		}
	}
	return nil
}

// restoreMetadata gives a converted object the metadata that it had, and the
// labels and annotations that the webhook wants.
func restoreMetadata(in, out *unstructured.Unstructured) error {
	given, ok := out.Object["metadata"].(map[string]any)
	if !ok {
		return errors.New("missing metadata in converted object")
	}
	was, _ := in.Object["metadata"].(map[string]any)
	metadata := runtime.DeepCopyJSON(was)
	for _, name := range []string{"labels", "annotations"} {
		values, found, err := unstructured.NestedStringMap(given, name)
		if err != nil {
			return fmt.Errorf("invalid metadata.%s of type %T in converted object", name, given[name])
		}
		if !found {
			delete(metadata, name)
			continue
		}
		var errs field.ErrorList
		if name == "labels" {
			errs = metav1validation.ValidateLabels(values, field.NewPath("metadata", "labels"))
		} else {
			errs = apivalidation.ValidateAnnotations(values, field.NewPath("metadata", "annotation"))
		}
		if len(errs) > 0 {
			return errs.ToAggregate()
		}
		metadata[name] = given[name]
	}
	out.Object["metadata"] = metadata
	return nil
}
