// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// patch stores what a patch makes of the stored object.
func (p *Path) patch(ctx context.Context, q *Request) (*object.Object, bool, error) {
	patch, err := q.readPatch()
	if err != nil {
		return nil, false, err
	}
	return p.Change(ctx, q, false, func(old *object.Object) (*object.Object, error) {
		obj, err := q.patched(patch, old)
		if err != nil {
			return nil, err
		}
		return obj, q.Own(old, obj)
	})
}

// readPatch reads the body of a patch, once for all attempts.
func (q *Request) readPatch() (decode.Patch, error) {
	p, problems, err := decode.ReadPatch(q.Media, q.Body)
	if err != nil {
		return p, err
	}
	if err := q.report(problems); err != nil {
		return p, decode.InvalidPatch(q.Body, err)
	}
	return p, nil
}

// patched returns the object that a patch makes of old.
func (q *Request) patched(patch decode.Patch, old *object.Object) (*object.Object, error) {
	obj, problems, text, err := patch.On(q.Kind, old)
	if err != nil {
		return nil, err
	}
	if err := q.report(problems); err != nil {
		return nil, decode.InvalidPatch(text, err)
	}
	return obj, q.check(obj)
}

// apply stores what a server-side apply makes of the stored object, or creates it.
func (p *Path) apply(ctx context.Context, q *Request) (*object.Object, bool, error) {
	if decode.Nesting(q.Body) > decode.Deepest {
		return nil, false, apierrors.NewBadRequest("error decoding patch: exceeded max depth")
	}
	given, plain := decode.PlainFields(q.Body)
	if !plain {
		given = map[string]any{}
		if err := unmarshalYAML(q.Body, &given, false); err != nil {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	if given == nil {
		given = map[string]any{}
	}
	return p.Change(ctx, q, q.Subresource == "", func(old *object.Object) (*object.Object, error) {
		obj, err := q.writer().Applied(given, old)
		if err != nil {
			return nil, err
		}
		if !plain {
			err = q.reportTwice()
		}
		if err != nil {
			return nil, err
		}
		return obj, q.check(obj)
	})
}

// unmarshalYAML reads YAML into a map. strict: a field must not be there twice.
func unmarshalYAML(body []byte, into *map[string]any, strict bool) error {
	text, err := yaml.YAMLToJSON(body)
	if strict {
		text, err = yaml.YAMLToJSONStrict(body)
	}
	if err != nil {
		return fmt.Errorf("error converting YAML to JSON: %w", err)
	}
	if _, err = decode.Strictly(text, into); err != nil {
		return fmt.Errorf("error unmarshaling JSON: while decoding JSON: %w", err)
	}
	return nil
}

// reportTwice handles fields that the body has twice as q asks for.
func (q *Request) reportTwice() error {
	if q.Validation == metav1.FieldValidationIgnore {
		return nil
	}
	err := unmarshalYAML(q.Body, &map[string]any{}, true)
	switch {
	case err == nil:
	case q.Validation == metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	default:
		q.Warn(err.Error())
	}
	return nil
}
