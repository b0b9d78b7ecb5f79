// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
)

// queryParameters are the query parameters of operations: the type and description of each.
var queryParameters = map[string]struct{ typ, about string }{
	"allowWatchBookmarks":  {"boolean", "have a watch say now and then how far it is"},
	"continue":             {"string", "the token of the page before"},
	"dryRun":               {"string", "All: do as if, and store nothing"},
	"fieldManager":         {"string", "who is to own the fields that are written"},
	"fieldSelector":        {"string", "only objects with fields of these values"},
	"fieldValidation":      {"string", "what to do about fields that the kind does not have: Ignore, Warn or Strict"},
	"force":                {"boolean", "take the fields that others own"},
	"gracePeriodSeconds":   {"integer", "how long what runs may take to end"},
	"labelSelector":        {"string", "only objects with labels of these values"},
	"limit":                {"integer", "the greatest number of objects on a page"},
	"orphanDependents":     {"boolean", "leave dependents; propagationPolicy says more"},
	"pretty":               {"string", "true: write for people to read"},
	"propagationPolicy":    {"string", "what becomes of dependents: Orphan, Background or Foreground"},
	"resourceVersion":      {"string", "the version to read at or to watch from"},
	"resourceVersionMatch": {"string", "how the version is meant: Exact or NotOlderThan"},
	"sendInitialEvents":    {"boolean", "begin a watch with all that is there"},
	"shardSelector":        {"string", "only objects whose hash is in these ranges"},
	"timeoutSeconds":       {"integer", "when a list or a watch is to end"},
	"watch":                {"boolean", "tell of changes in place of a list"},
}

var (
	listParameters = []string{"allowWatchBookmarks", "continue", "fieldSelector", "labelSelector",
		"limit", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "shardSelector",
		"timeoutSeconds", "watch"}
	operationByVerb = map[string]struct {
		word, action string
		parameters   []string
		codes        []int
	}{
		"get":    {"read", "get", nil, []int{200}},
		"list":   {"list", "list", listParameters, []int{200}},
		"create": {"create", "post", []string{"dryRun", "fieldManager", "fieldValidation"}, []int{200, 201, 202}},
		"update": {"replace", "put", []string{"dryRun", "fieldManager", "fieldValidation"}, []int{200, 201}},
		"patch":  {"patch", "patch", []string{"dryRun", "fieldManager", "fieldValidation", "force"}, []int{200, 201}},
		"delete": {"delete", "delete", []string{"dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"}, []int{200, 202}},
		"deletecollection": {"delete", "deletecollection",
			[]string{"continue", "dryRun", "fieldSelector", "gracePeriodSeconds", "labelSelector",
				"limit", "orphanDependents", "propagationPolicy", "resourceVersion",
				"resourceVersionMatch", "sendInitialEvents", "shardSelector", "timeoutSeconds"},
			[]int{200}},
	}
)

// parameters returns the query parameters of these names.
func parameters(names ...string) (out []spec.Parameter) {
	for _, name := range names {
		p := queryParameters[name]
		out = append(out, parameter(name, "query", p.typ, p.about))
	}
	return out
}

func parameter(name, in, typ, about string) spec.Parameter {
	return spec.Parameter{
		ParamProps:        spec.ParamProps{Name: name, In: in, Description: about, Required: in == "path"},
		SimpleSchema:      spec.SimpleSchema{Type: typ},
		CommonValidations: spec.CommonValidations{UniqueItems: true},
	}
}

// operation describes a verb of a kind, or of its subresource if sub has a name. scope is a
// part of the operation's name. It returns nil if the verb is not described.
func (d *document) operation(k *kinds.Kind, sub kinds.Subresource, verb, scope string) *spec.Operation {
	by, ok := operationByVerb[verb]
	if !ok {
		return nil
	}
	group, suffix := identifier(k.GroupVersion()), capital(sub.Name)
	if verb == "deletecollection" {
		scope = "Collection" + scope
	}
	if scope == everywhere {
		scope, suffix = "", scope
	}
	op := &spec.Operation{OperationProps: spec.OperationProps{
		ID: by.word + group + capital(k.Version) + scope + k.Kind + suffix, Description: by.word + " " + k.Kind + " " + sub.Name,
		Tags: []string{lower(group) + "_" + k.Version}, Produces: mediaTypes(k), Parameters: parameters(by.parameters...),
	}}
	op.AddExtension("x-kubernetes-action", by.action)
	op.AddExtension("x-kubernetes-group-version-kind", models.GVKFields(sub.Kind))
	answer := d.kind(sub.Kind)
	switch verb {
	case "list":
		answer = d.list(k)
		for _, media := range op.Produces {
			if media != encode.ContentYAML {
				op.Produces = append(op.Produces, media+";stream=watch")
			}
		}
	case "create", "update":
		takes(op, answer, "*/*")
	case "patch":
		takes(op, d.meta("Patch"), patchTypes(k)...)
	case "delete", "deletecollection":
		takes(op, d.meta("DeleteOptions"), "*/*")
		if verb == "deletecollection" || !k.AnswersDeleted() {
			answer = d.meta("Status")
		}
	}
	op.Responses = answers(answer, by.codes...)
	return op
}

// answers returns the responses of an operation: the schema with these codes, and 401.
func answers(schema *spec.Schema, codes ...int) *spec.Responses {
	out := &spec.Responses{ResponsesProps: spec.ResponsesProps{StatusCodeResponses: map[int]spec.Response{
		http.StatusUnauthorized: {ResponseProps: spec.ResponseProps{Description: http.StatusText(http.StatusUnauthorized)}},
	}}}
	for _, code := range codes {
		out.StatusCodeResponses[code] = spec.Response{ResponseProps: spec.ResponseProps{Description: http.StatusText(code), Schema: schema}}
	}
	return out
}

// takes adds a body to an operation.
func takes(op *spec.Operation, schema *spec.Schema, media ...string) {
	op.Consumes = media
	op.Parameters = append(op.Parameters, spec.Parameter{ParamProps: spec.ParamProps{Name: "body", In: "body", Required: true, Schema: schema}})
}

// mediaTypes returns the media types of answers about the kind.
func mediaTypes(k *kinds.Kind) []string {
	out := []string{encode.ContentJSON, encode.ContentYAML}
	if k.Builtin {
		out = append(out, encode.ContentProtobuf)
	}
	return out
}

func patchTypes(k *kinds.Kind) []string {
	out := []types.PatchType{types.JSONPatchType, types.MergePatchType, types.ApplyYAMLPatchType}
	if k.Builtin {
		out = append(out, types.StrategicMergePatchType)
	}
	names := make([]string, len(out))
	for i := range out {
		names[i] = string(out[i])
	}
	return slices.Sorted(slices.Values(names))
}
