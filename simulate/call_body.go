// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// decode reads the object of a request, with its defaults.
func (q *writing) decode() (*object.Object, error) {
	obj, problems, err := decode.Object(q.kind, q.media, q.body)
	if problem := q.report(problems); problem != nil {
		return nil, decode.Unreadable(q.kind, problem)
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
