// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 a server takes what old clients send

package decode

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// DeleteOptions reads the options of a delete: from the body or, without one, from the
// query.
func DeleteOptions(media string, body []byte, query url.Values) (opts metav1.DeleteOptions, err error) {
	if len(body) == 0 {
		opts, err = deletionQuery(query)
	} else {
		opts, err = decodeDeletion(media, body)
	}
	if err != nil {
		return opts, err
	}
	if errs := metav1validation.ValidateDeleteOptions(&opts); len(errs) > 0 {
		return opts, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return opts, nil
}

func deletionQuery(query url.Values) (opts metav1.DeleteOptions, err error) {
	if text := query.Get("gracePeriodSeconds"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		opts.GracePeriodSeconds = &seconds
	}
	if text := query.Get("propagationPolicy"); text != "" {
		opts.PropagationPolicy = new(metav1.DeletionPropagation(text))
	}
	if text := query.Get("orphanDependents"); text != "" {
		orphan, err := strconv.ParseBool(text)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		opts.OrphanDependents = &orphan
	}
	opts.DryRun = query["dryRun"]
	return opts, nil
}

func decodeDeletion(media string, body []byte) (opts metav1.DeleteOptions, err error) {
	switch media {
	case runtime.ContentTypeYAML:
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
	case runtime.ContentTypeJSON:
	case runtime.ContentTypeProtobuf:
		kind := corev1.SchemeGroupVersion.WithKind("DeleteOptions")
		decoded, _, err := models.Codecs().UniversalDeserializer().Decode(body, &kind, nil)
		if err != nil {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		if read, ok := decoded.(*metav1.DeleteOptions); ok {
			return *read, nil
		}
		return opts, apierrors.NewBadRequest("decoded object cannot be converted to DeleteOptions")
	default:
		return opts, refusal.Media(runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf)
	}
	if Nesting(body) > Deepest {
		return opts, apierrors.NewBadRequest("exceeded max depth")
	}
	if err := json.Unmarshal(body, &opts); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
			return opts, apierrors.NewBadRequest(err.Error())
		}
		return opts, apierrors.NewBadRequest("couldn't get version/kind; json parse error: " + err.Error())
	}
	if opts.Kind != "" && opts.Kind != "DeleteOptions" {
		return opts, apierrors.NewBadRequest(fmt.Sprintf("no kind %q is registered for version %q in scheme \"pkg/runtime/scheme.go:111\"", opts.Kind, cmp.Or(opts.APIVersion, "meta.k8s.io/v1")))
	}
	return opts, nil
}
