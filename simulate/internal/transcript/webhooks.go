// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
)

// Webhooks answers the reviews that servers send in cases. The path selects the answer:
//
//	/allow, /deny, /refuse, /warn   the verdict; deny says why, refuse does not
//	/mark      labels the object with the operation
//	/copy      labels it with what /mark has said
//	/facts     notes on it what the question says
//	/elsewhere patches what is not there
//	/broken, /garbled, /mistaken    no verdict: 500, half an answer, another's
//	/convert   between versions: what is count in v2 is size in all others; the
//	           label batch says how many objects came together
//	/unable    converts nothing
//
// It is stateless and safe for concurrent use.
func Webhooks() http.Handler { return http.HandlerFunc(answerReview) }

func answerReview(w http.ResponseWriter, r *http.Request) {
	var review map[string]any
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	request, _ := review["request"].(map[string]any)
	delete(review, "request")
	response := verdict(strings.TrimPrefix(r.URL.Path, "/"), request)
	if response == nil {
		http.Error(w, "it is broken", http.StatusInternalServerError)
		return
	}
	if _, other := response["uid"]; !other {
		response["uid"] = request["uid"]
	}
	review["response"] = response
	text, err := json.Marshal(review)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.URL.Path == "/garbled" {
		text = text[:len(text)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// verdict returns the answer of the webhook of that name; nil: it has none.
func verdict(name string, request map[string]any) map[string]any {
	switch name {
	case "allow", "garbled":
		return map[string]any{"allowed": true}
	case "deny":
		return map[string]any{"allowed": false, "status": map[string]any{"message": "not today", "reason": "Teapot", "code": http.StatusTeapot}}
	case "refuse":
		return map[string]any{"allowed": false}
	case "warn":
		return map[string]any{"allowed": true, "warnings": []any{"mind the gap", "and the \"step\""}}
	case "mistaken":
		return map[string]any{"allowed": true, "uid": "00000000-0000-0000-0000-000000000000"}
	case "mark":
		return labels(request, "marked", request["operation"])
	case "copy":
		return labels(request, "copied", fmt.Sprint(field(request, ".object.metadata.labels.marked")))
	case "facts":
		return annotations(request)
	case "elsewhere":
		return patch(map[string]any{"op": "remove", "path": "/data/none"})
	case "convert":
		return converted(request)
	case "unable":
		return map[string]any{"result": map[string]any{"status": "Failure", "message": "it cannot be told"}}
	}
	return nil
}

// patch returns a verdict that allows, with changes.
func patch(operations ...any) map[string]any {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil
	}
	return map[string]any{"allowed": true, "patchType": "JSONPatch", "patch": text}
}

// labels returns a patch that adds a label.
func labels(request map[string]any, name string, value any) map[string]any {
	all := map[string]any{name: value}
	if old, ok := field(request, ".object.metadata.labels").(map[string]any); ok {
		maps.Copy(all, old)
		all[name] = value
	}
	return patch(map[string]any{"op": "add", "path": "/metadata/labels", "value": all})
}

// annotations returns a patch that records the request in annotations.
func annotations(request map[string]any) map[string]any {
	facts := map[string]any{}
	for _, name := range []string{"operation", "name", "namespace", "dryRun", "subResource", "requestSubResource", "kind", "requestKind", "resource", "requestResource", "options"} {
		text, err := json.Marshal(request[name])
		if err != nil {
			return nil
		}
		facts[name] = string(text)
	}
	facts["user"] = fmt.Sprint(field(request, ".userInfo.username"))
	facts["old"] = fmt.Sprint(request["oldObject"] != nil)
	return patch(map[string]any{"op": "add", "path": "/metadata/annotations", "value": facts})
}

// converted returns all objects of a review in the version that it asks for.
func converted(request map[string]any) map[string]any {
	objects, _ := request["objects"].([]any)
	for _, each := range objects {
		obj, _ := each.(map[string]any)
		obj["apiVersion"] = request["desiredAPIVersion"]
		from, to := "count", "size"
		if strings.HasSuffix(fmt.Sprint(request["desiredAPIVersion"]), "/v2") {
			from, to = to, from
		}
		if spec, ok := obj["spec"].(map[string]any); ok && spec[from] != nil {
			spec[to] = spec[from]
			delete(spec, from)
		}
		metadata, _ := obj["metadata"].(map[string]any)
		metadata["labels"] = map[string]any{"batch": fmt.Sprint(len(objects))}
	}
	return map[string]any{"convertedObjects": objects, "result": map[string]any{"status": "Success"}}
}
