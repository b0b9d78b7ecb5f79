// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// conversionKind is the only version of ConversionReview that current servers send.
func conversionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "ConversionReview"}
}

type conversionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *conversionRequest  `json:"request,omitempty"`
	Response        *conversionResponse `json:"response,omitempty"`
}

type conversionRequest struct {
	UID               types.UID         `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

type conversionResponse struct {
	UID              types.UID         `json:"uid"`
	ConvertedObjects []json.RawMessage `json:"convertedObjects"`
	Result           metav1.Status     `json:"result"`
}

// conversions maps each kind that can be converted to its versions.
type conversions map[schema.GroupKind]map[string]version

// conversion answers ConversionReviews with the conversions that kinds returns.
func conversion(kinds func() conversions) hook {
	return func(ctx context.Context, body []byte, room *decoding) ([]byte, outcome, error) {
		if err := isReview(body, conversionKind(), "conversionReviewVersions"); err != nil {
			return nil, failed, err
		}
		known := kinds()
		bytes, err := known.weigh(body, room)
		if err != nil {
			return nil, failed, err
		}
		leave, err := room.enter(ctx, bytes)
		if err != nil {
			return nil, failed, err
		}
		defer leave()
		req, err := decodeConversion(body)
		if err != nil {
			return nil, failed, err
		}
		response := conversionResponse{UID: req.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		end := passed
		response.ConvertedObjects, err = known.all(ctx, req.Objects, req.DesiredAPIVersion)
		if err != nil {
			end, response.Result = failed, metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
		answer, encoding := json.Marshal(conversionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: conversionKind().GroupVersion().String(), Kind: conversionKind().Kind},
			Response: &response,
		})
		if encoding != nil {
			return nil, failed, internal(fmt.Errorf("encode the answer: %w", encoding))
		}
		return answer, end, err
	}
}

func decodeConversion(body []byte) (*conversionRequest, error) {
	var review conversionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return nil, badRequest("decode ConversionReview: %w", err)
	}
	switch {
	case review.Request == nil:
		return nil, badRequest("the ConversionReview has no request")
	case review.Request.UID == "":
		return nil, badRequest("the request of the ConversionReview has no uid, so no answer could be matched to it")
	}
	return review.Request, nil
}

// weigh estimates the memory that a body takes if its objects are of the most expensive
// version.
func (c conversions) weigh(body []byte, room *decoding) (most int64, err error) {
	for _, versions := range c {
		for _, v := range versions {
			bytes, err := room.weigh(body, v.plan, toConvert)
			if err != nil {
				return 0, err
			}
			most = max(most, bytes)
		}
	}
	return most, nil
}

func (c conversions) all(ctx context.Context, objects []json.RawMessage, want string) ([]json.RawMessage, error) {
	to, err := schema.ParseGroupVersion(want)
	if err != nil {
		return nil, fmt.Errorf("desiredAPIVersion %q: %w", want, err)
	}
	out := make([]json.RawMessage, len(objects))
	for i, raw := range objects {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("convert object %d of %d: the request has ended: %w", i, len(objects), err)
		}
		if out[i], err = guarded(func() (json.RawMessage, error) { return c.one(raw, to) }); err != nil {
			return nil, fmt.Errorf("convert object %d of %d%s to %s: %w", i, len(objects), called(raw), want, err)
		}
	}
	return out, nil
}

func called(raw json.RawMessage) string {
	var named metav1.PartialObjectMetadata
	if kjson.UnmarshalCaseSensitivePreserveInts(raw, &named) != nil {
		return ""
	}
	name := named.Name
	if named.Namespace != "" {
		name = named.Namespace + "/" + name
	}
	return fmt.Sprintf(" (%s %s)", named.Kind, name)
}

// one converts an object through the hub.
func (c conversions) one(raw json.RawMessage, to schema.GroupVersion) (json.RawMessage, error) {
	var tree map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &tree); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	var is metav1.TypeMeta
	is.APIVersion, _ = tree["apiVersion"].(string)
	is.Kind, _ = tree["kind"].(string)
	from := is.GroupVersionKind()
	versions := c[from.GroupKind()]
	source, destination := versions[from.Version], versions[to.Version]
	switch {
	case from.GroupVersion() == to:
		return raw, nil
	case from.Group != to.Group:
		return nil, fmt.Errorf("an object of %s cannot become one of group %q", words(from), to.Group)
	case versions == nil:
		return nil, fmt.Errorf("this webhook does not convert kind %s; give its versions to webhook.Convert", from.GroupKind())
	case source.zero():
		return nil, fmt.Errorf("this webhook does not know version %q of %s; give a webhook.Spoke for it", from.Version, from.GroupKind())
	case destination.zero():
		return nil, fmt.Errorf("this webhook does not know version %q of %s; give a webhook.Spoke for it", to.Version, from.GroupKind())
	}
	obj := source.new()
	if err := unmarshal(raw, obj); err != nil {
		return nil, fmt.Errorf("decode as %T: %w", obj, err)
	}
	hub, err := source.toHub(obj)
	if err != nil {
		return nil, err
	}
	converted, err := destination.fromHub(hub)
	if err != nil {
		return nil, err
	}
	result, err := jsontree.Of[any](converted)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", converted, err)
	}
	return finish(result, tree, to.WithKind(from.Kind))
}

// finish sets the kind of a converted object, and its metadata to that of the original,
// except for labels and annotations. The server requires the same identity and ignores
// other metadata.
func finish(result any, original map[string]any, kind schema.GroupVersionKind) (json.RawMessage, error) {
	tree, ok := result.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the converted object is no JSON object")
	}
	tree["apiVersion"], tree["kind"] = kind.ToAPIVersionAndKind()
	converted, _ := tree["metadata"].(map[string]any)
	before, _ := original["metadata"].(map[string]any)
	metadata := maps.Clone(before)
	if metadata == nil {
		metadata = map[string]any{}
	}
	for _, field := range []string{"labels", "annotations"} {
		if value, there := converted[field]; there && value != nil {
			metadata[field] = value
		} else {
			delete(metadata, field)
		}
	}
	tree["metadata"] = metadata
	return json.Marshal(tree)
}
