// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encode

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/munnerz/goautoneg"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

const (
	ContentJSON     = runtime.ContentTypeJSON
	ContentYAML     = runtime.ContentTypeYAML
	ContentProtobuf = runtime.ContentTypeProtobuf

	AsTable        = "Table"
	asMetadata     = "PartialObjectMetadata"
	asMetadataList = "PartialObjectMetadataList"

	streamed = ";stream=watch"
)

// media are the media types that the server supports, in its order of preference.
var media = []string{ContentJSON, ContentYAML, ContentProtobuf}

// For selects the preferred media type of an Accept header among those of the kind. Without
// a kind, these are the types of a Status.
func For(kind *kinds.Kind, accept string) Encoder {
	if accept == "" {
		return Encoder{kind: kind}
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, each := range media {
			if e, ok := clauseFor(kind, each, clause); ok {
				return e
			}
		}
	}
	e := Encoder{unacceptable: true}
	if kind != nil && !kind.Builtin {
		e = For(nil, accept) // a refusal has more forms than the kind
	}
	e.kind, e.unacceptable = kind, true
	return e
}

// clauseFor returns an encoder of a media type if a clause of an Accept header allows it.
func clauseFor(kind *kinds.Kind, media string, clause goautoneg.Accept) (e Encoder, ok bool) {
	family, name, _ := strings.Cut(media, "/")
	if !slices.Contains([]string{"*", family}, clause.Type) || !slices.Contains([]string{"*", name}, clause.SubType) {
		return e, false
	}
	e = Encoder{kind: kind, Protobuf: media == ContentProtobuf, yaml: media == ContentYAML, Pretty: clause.Params["pretty"] == "1"}
	if stream := clause.Params["stream"]; stream != "" && (stream != "watch" || e.yaml) {
		return e, false
	}
	if !slices.Contains([]string{"", "v1"}, clause.Params["sv"]) {
		return e, false
	}
	if !slices.ContainsFunc([]string{"as", "g", "v"}, func(name string) bool { _, has := clause.Params[name]; return has }) {
		return e, !e.Protobuf || kind == nil || kind.Builtin
	}
	e.as, e.version = clause.Params["as"], clause.Params["v"]
	if kind == nil || clause.Params["g"] != metav1.GroupName || !slices.Contains([]string{"v1", "v1beta1"}, e.version) {
		return e, false
	}
	switch e.as {
	case AsTable:
		return e, !e.Protobuf
	case asMetadata, asMetadataList:
		return e, true
	}
	return e, false
}

// WantsPretty reports whether the answer is for a person to read.
func WantsPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if given := r.URL.Query().Get("pretty"); given != "" {
			pretty, _ := strconv.ParseBool(given)
			return pretty
		}
	}
	return slices.ContainsFunc([]string{"curl", "Wget", "Mozilla/5.0"}, func(agent string) bool {
		return strings.HasPrefix(r.UserAgent(), agent)
	})
}

// Acceptable returns an error if the server has no form that r asks for, and reads the
// includeObject option of tables from r.
func (e *Encoder) Acceptable(r *http.Request, verb string) error {
	switch {
	case e.kind.Builtin && !routed(r.Header.Get("Accept")):
		available := media
		if verb == "list" || verb == "watch" {
			available = append(slices.Clone(media), ContentJSON+streamed, ContentProtobuf+streamed)
		}
		err := errNotAcceptable("406: Not Acceptable\n\nAvailable representations: " + strings.Join(available, ", "))
		err.ErrStatus.Details = &metav1.StatusDetails{}
		return err
	case e.unacceptable:
		return errAccepted(media...)
	case verb == "watch" && e.yaml:
		return errAccepted(ContentJSON+streamed, ContentProtobuf+streamed)
	case e.as == AsTable && (verb == "get" || verb == "list" || verb == "watch"):
		return e.tableOptions(r.URL.Query())
	}
	return nil
}

// routed reports whether the router of a real server, whose only wildcard is */*, finds a
// supported media type in an Accept header.
func routed(accept string) bool {
	if accept == "" {
		return true
	}
	for clause := range strings.SplitSeq(accept, ",") {
		name, _, _ := strings.Cut(clause, ";")
		if name = strings.TrimSpace(name); name == "*/*" || slices.Contains(media, name) {
			return true
		}
	}
	return false
}

func errAccepted(accepted ...string) error {
	return errNotAcceptable("only the following media types are accepted: " + strings.Join(accepted, ", "))
}

func errNotAcceptable(message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: message,
	}}
}
