// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// apply stores what a server-side apply makes of the object, or of nothing.
func (s *Server) apply(q *writing) (*object.Object, bool, error) {
	if decode.Nesting(q.body) > decode.Deepest {
		return nil, false, apierrors.NewBadRequest("error decoding patch: exceeded max depth")
	}
	given, plain := decode.PlainFields(q.body)
	if !plain {
		given = map[string]any{}
		if err := unmarshalYAML(q.body, &given, false); err != nil {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
	}
	if given == nil {
		given = map[string]any{}
	}
	return s.change(q, q.subresource == "", func(old *object.Object) (*object.Object, error) {
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

// reportTwice treats fields that the body has twice.
func (q *writing) reportTwice() error {
	if q.validation == metav1.FieldValidationIgnore {
		return nil
	}
	err := unmarshalYAML(q.body, &map[string]any{}, true)
	switch {
	case err == nil:
	case q.validation == metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
	default:
		q.warn(err.Error())
	}
	return nil
}
