// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// request is one line of a conversation, and what its answer has to hold.
type request struct {
	line   string // method, path and media type in short
	body   string
	status int
	want   string // parts of the answer, each after a blank
}

var mediaTypes = map[string]string{
	"json": "application/json", "yaml": "application/yaml", "jsonpatch": "application/json-patch+json",
	"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
	"text": "text/plain",
}

var pathsInShort = strings.NewReplacer(
	"cm", mapsPath, "deploy", "/apis/apps/v1/namespaces/ns/deployments", "pod", "/api/v1/namespaces/ns/pods",
	"svc", "/api/v1/namespaces/ns/services", "secret", "/api/v1/namespaces/ns/secrets",
	"widget", "/apis/test.example.com/v1/namespaces/ns/widgets", "nsp", "/api/v1/namespaces", "lease", "/apis/coordination.k8s.io/v1/namespaces/ns/leases",
	"csr", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
)

// converse sends requests one after the other and holds each answer.
func converse(t *testing.T, requests ...request) {
	t.Helper()
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		for n, r := range requests {
			f := strings.Fields(r.line + " json")
			path, query, _ := strings.Cut(f[1], "?")
			kind, rest, _ := strings.Cut(path, "/")
			path = pathsInShort.Replace(kind)
			if rest != "" {
				path += "/" + rest
			}
			before := w.Revision()
			answer, body := ask(t, w, f[0], path+"?"+query, mediaTypes[f[2]], r.body)
			if answer == nil {
				t.Fatalf("%d. %s: %v", n, r.line, body)
			}
			text, err := json.Marshal(body)
			w.Must(err)
			said := string(text) + fmt.Sprint(answer.Header["Warning"])
			if answer.StatusCode != r.status {
				t.Errorf("%d. %s %s: got %d %s, want %d", n, r.line, r.body, answer.StatusCode, said, r.status)
			}
			for _, part := range strings.Fields(r.want) {
				absent := strings.HasPrefix(part, "!")
				if part = strings.ReplaceAll(strings.TrimPrefix(part, "!"), "_", " "); strings.Contains(said, part) == absent {
					t.Errorf("%d. %s %s: got %s, want %q in it: %v", n, r.line, r.body, said, part, !absent)
				}
			}
			if after := w.Revision(); r.status >= 400 && after != before {
				t.Errorf("%d. %s: refused, but the revision went from %d to %d", n, r.line, before, after)
			}
		}
	})
}

func TestServer_BadBodiesAreRefused_S7(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000)
	converse(t,
		request{"POST cm", `{"metadata":`, 400, `unrecognized unexpected_end`},
		request{"POST cm", ``, 400, `empty unexpected_end`},
		request{"POST cm", `[]`, 400, `BadRequest`},
		request{"POST cm yaml", "metadata: [", 400, `BadRequest`},
		request{"POST cm text", `{}`, 415, `application/json,_application/yaml`},
		request{"POST cm", `{"metadata":{"name":"a"},"data":{"v":1}}`, 400, `cannot_unmarshal_number`},
		request{"POST cm", `{"kind":"Secret","apiVersion":"v1"}`, 400, `(v1.Secret)_to_(core.ConfigMap)`},
		request{"POST cm", `{"kind":"ConfigMap","apiVersion":"v2"}`, 400, `BadRequest`},
		request{"POST cm", deep, 400, `BadRequest`},
		request{"POST widget", deep, 400, `BadRequest`},
		request{"POST cm", strings.Repeat(" ", 3<<20+1), 413, `limit_is_3145728`},
		request{"POST cm", `{"metadata":{"name":"a"}}`, 201, ``},
		request{"PATCH cm/a json", `{}`, 415, `UnsupportedMediaType`},
		request{"PATCH cm/a merge", `x`, 400, `invalid_JSON_patch`},
		request{"PATCH cm/a merge", deep, 400, `BadRequest`},
		request{"PATCH cm/a merge", `{"data":{"v":1}}`, 422, `cannot_unmarshal`},
		request{"PATCH cm/a strategic", `{"data":3}`, 422, `cannot_restore_map`},
		request{"PATCH cm/a jsonpatch", `{"op":"remove"}`, 400, `jsonPatchOp`},
		request{"PATCH cm/a jsonpatch", `[{"op":"test","path":"/data/v","value":"1"}]`, 422, `due_to_an_error`},
		request{"PATCH cm/a apply", `{}`, 422, `is_required_for_apply_patch`},
		request{"PATCH cm/a?fieldManager=m apply", `x: [`, 400, `error_decoding_patch`},
		request{"PATCH cm/a?fieldManager=m apply", deep, 400, `BadRequest`},
		request{"PATCH widget/a strategic", `{}`, 415, `application/merge-patch+json,_application/apply`},
		request{"DELETE cm/a", `x`, 400, `BadRequest`},
		request{"DELETE cm/a", `{"propagationPolicy":"No"}`, 422, `propagationPolicy`},
		request{"POST cm?dryRun=Some", `{"metadata":{"name":"b"}}`, 422, `CreateOptions dryRun`},
		request{"POST cm?fieldValidation=No", `{"metadata":{"name":"b"}}`, 422, `fieldValidation`},
	)
}

func TestServer_UnknownFieldsAreWarnedOf_S7(t *testing.T) {
	converse(t,
		request{"POST cm", `{"metadata":{"name":"a"},"daata":{},"data":{"v":"1","v":"2"}}`, 201, `299_-_"unknown_field_\"daata\" duplicate_field_\"data.v\" "v":"2"`},
		request{"POST cm?fieldValidation=Ignore", `{"metadata":{"name":"b"},"daata":{}}`, 201, `!unknown`},
		request{"POST cm?fieldValidation=Strict", `{"metadata":{"name":"c"},"daata":{}}`, 400, `strict_decoding_error:_unknown_field`},
		request{"PATCH cm/a?fieldValidation=Strict merge", `{"daata":1}`, 422, `strict_decoding_error`},
		request{"PATCH cm/a merge", `{"daata":1}`, 200, `unknown_field`},
		request{"POST widget", `{"metadata":{"name":"a","nonsense":1},"spec":{"value":"1"}}`, 201, `unknown_field !nonsense":1`},
	)
}

func TestServer_UpdatesLockOptimistically_S8(t *testing.T) {
	converse(t,
		request{"POST cm", `{"metadata":{"name":"a"},"data":{"v":"1"}}`, 201, `"resourceVersion":"2"`},
		request{"PUT cm/a", `{"metadata":{"name":"a"},"data":{"v":"1"}}`, 200, `"resourceVersion":"2"`},
		request{"PATCH cm/a merge", `{"data":{"v":"1"}}`, 200, `"resourceVersion":"2"`},
		request{"PUT cm/a", `{"metadata":{"name":"a"},"data":{"v":"2"}}`, 200, `"resourceVersion":"3"`},
		request{"PUT cm/a", `{"metadata":{"name":"a","resourceVersion":"2"},"data":{"v":"3"}}`, 409, `the_object_has_been_modified`},
		request{"PUT cm/a", `{"metadata":{"name":"a","uid":"other"}}`, 409, `Precondition_failed:_UID`},
		request{"PUT cm/z", `{"metadata":{"name":"z"}}`, 404, `NotFound`},
		request{"POST widget", `{"metadata":{"name":"a"},"spec":{"value":"1"}}`, 201, `"generation":1`},
		request{"PUT widget/a", `{"metadata":{"name":"a"},"spec":{"value":"2"}}`, 422, `must_be_specified_for_an_update`},
		request{"PUT lease/l", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"x"}}`, 201, `holderIdentity`},
		request{"PUT lease/l", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"y"}}`, 422, `must_be_specified_for_an_update`},
		request{"DELETE cm/a", `{"preconditions":{"resourceVersion":"2"}}`, 409, `ResourceVersion_in_the_precondition_(2)`},
	)
}

func TestServer_ApplyKnowsOwners_S9(t *testing.T) {
	mine := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"v":"1","w":"1"}}`
	yours := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"v":"2","w":"2"}}`
	converse(t,
		request{"PATCH cm/a?fieldManager=me apply", mine, 201, `"manager":"me" "operation":"Apply" !Update`},
		request{"PATCH cm/a?fieldManager=me apply", mine, 200, `"resourceVersion":"2"`},
		request{"PATCH cm/a?fieldManager=you apply", yours, 409, `2_conflicts .data.v .data.w FieldManagerConflict conflict_with_\"me\"`},
		request{"PATCH cm/a?fieldManager=you&force=true apply", yours, 200, `"v":"2" !"me"`},
		request{"PATCH cm/a?fieldManager=me apply", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, 200, `"v":"2"`},
		request{"PATCH cm/a?fieldManager=you apply", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"v":"2"}}`, 200, `!"w":"2"`},
		request{"PATCH cm/a merge", `{"data":{"v":"3"}}`, 200, `"operation":"Update" Go-http-client`},
		request{"PATCH cm/a?fieldManager=you apply", yours, 409, `1_conflict Go-http-client`},
		request{"PATCH widget/a?fieldManager=me apply", `{"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"value":"1"}}`, 201, `f:value`},
		request{"PATCH widget/a?fieldManager=you apply", `{"apiVersion":"test.example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"value":"2"}}`, 409, `.spec.value`},
	)
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}},"status":{"replicas":3}}`

func TestServer_StatusAndSpecAreWrittenApart_S10(t *testing.T) {
	converse(t,
		request{"POST deploy", deployment, 201, `"status":{} "generation":1 "replicas":1 "maxSurge":"25%" "imagePullPolicy":"Always"`},
		request{"PATCH deploy/d merge", `{"status":{"replicas":5}}`, 200, `"status":{} "generation":1`},
		request{"PATCH deploy/d/status merge", `{"status":{"replicas":5},"spec":{"replicas":9},"metadata":{"labels":{"x":"y"}}}`, 200, `"status":{"replicas":5} "generation":1 !"replicas":9 !"x":"y" "subresource":"status"`},
		request{"PATCH deploy/d merge", `{"spec":{"replicas":2}}`, 200, `"generation":2`},
		request{"GET deploy/d/scale", ``, 200, `"kind":"Scale" "replicas":2 "replicas":5 "selector":"a=b"`},
		request{"PUT deploy/d/scale", `{"metadata":{"name":"d"},"spec":{"replicas":7}}`, 200, `"replicas":7`},
		request{"PATCH deploy/d/scale merge", `{"spec":{"replicas":-1}}`, 422, `greater_than_or_equal`},
		request{"PATCH deploy/d/scale?fieldManager=s apply", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"d"},"spec":{"replicas":8}}`, 409, `.spec.replicas`},
		request{"GET deploy/d", ``, 200, `"generation":3 "replicas":7 "subresource":"scale"`},
		request{"PATCH deploy/d merge", `{"spec":{"selector":{"matchLabels":{"a":"c"}}}}`, 422, `field_is_immutable`},
		request{"PATCH deploy/d/nothing merge", `{}`, 404, `NotFound`},
	)
}

func TestServer_DeletionWaitsForFinalizersAndGrace_S11(t *testing.T) {
	bound := `{"metadata":{"name":"p"},"target":{"name":"node"}}`
	converse(t,
		request{"POST cm", `{"metadata":{"name":"a"}}`, 201, ``},
		request{"DELETE cm/a?propagationPolicy=Orphan", ``, 200, `"finalizers":["orphan"] deletionTimestamp`},
		request{"DELETE cm/a", ``, 200, `"resourceVersion":"3"`},
		request{"PATCH cm/a merge", `{"metadata":{"finalizers":["orphan","x/y"]}}`, 422, `no_new_finalizers`},
		request{"PATCH cm/a merge", `{"metadata":{"finalizers":null}}`, 200, `"resourceVersion":"3"`},
		request{"GET cm/a", ``, 404, `NotFound`},
		request{"POST pod", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`, 201, `"phase":"Pending" BestEffort`},
		request{"POST pod/p/binding", bound, 201, `Success`},
		request{"POST pod/p/binding", bound, 409, `already_assigned`},
		request{"DELETE pod/p", ``, 200, `"deletionGracePeriodSeconds":30`},
		request{"DELETE pod/p", ``, 200, `"deletionGracePeriodSeconds":30`},
		request{"DELETE pod/p", `{"gracePeriodSeconds":0}`, 200, ``},
		request{"GET pod/p", ``, 404, `NotFound`},
		request{"POST cm", `{"metadata":{"name":"a"}}`, 201, ``},
		request{"POST cm", `{"metadata":{"name":"f","finalizers":["x/y"]}}`, 201, ``},
		request{"POST cm", `{"metadata":{"name":"l","labels":{"a":"b"}}}`, 201, ``},
		request{"DELETE cm?labelSelector=a%3Db", ``, 200, `ConfigMapList "name":"l" !"name":"a"`},
		request{"DELETE cm", ``, 200, `"name":"a"`},
		request{"GET cm", ``, 200, `"name":"f" !"name":"a"`},
		request{"POST nsp", `{"metadata":{"name":"n"}}`, 201, `"kubernetes.io/metadata.name":"n" "finalizers":["kubernetes"] Active`},
		request{"DELETE nsp/n", ``, 200, `Terminating`},
		request{"PUT nsp/n/finalize", `{"metadata":{"name":"n"},"spec":{}}`, 200, ``},
		request{"GET nsp/n", ``, 404, `NotFound`},
	)
}

func TestServer_RehearsalsStoreNothing_S12(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		w.Store(fixture.ConfigMap("a", "1"))
		before := w.Revision()
		for _, r := range [][4]string{
			{"POST", "", "application/json", `{"metadata":{"name":"b"}}`}, {"POST", "", "application/json", `{"metadata":{"name":"b","resourceVersion":"1"}}`}, {"PUT", "/a", "application/json", `{"metadata":{"name":"a"}}`},
			{"PATCH", "/a", "application/merge-patch+json", `{"data":{"v":"2"}}`}, {"DELETE", "/a", "application/json", ``},
			{"DELETE", "", "application/json", ``}, {"PATCH", "/c", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`},
		} {
			answer, body := ask(t, w, r[0], mapsPath+r[1]+"?dryRun=All&fieldManager=m", r[2], r[3])
			if answer.StatusCode >= 300 {
				t.Errorf("%v: got %d %v, want success", r, answer.StatusCode, body)
			}
		}
		if after := w.Revision(); after != before {
			t.Errorf("the revision went from %d to %d by rehearsals, want no change", before, after)
		}
	})
}

func TestServer_RulesOfBuiltinKinds(t *testing.T) {
	converse(t,
		request{"POST secret", `{"metadata":{"name":"s"},"stringData":{"a":"b"}}`, 201, `"a":"Yg==" Opaque !stringData`},
		request{"POST secret", `{"metadata":{"name":"t"},"type":"kubernetes.io/tls"}`, 422, `tls.crt`},
		request{"PATCH secret/s merge", `{"type":"other"}`, 422, `field_is_immutable`},
		request{"POST cm", `{"metadata":{"name":"i"},"data":{"a":"b"},"immutable":true}`, 201, ``},
		request{"PATCH cm/i merge", `{"data":{"a":"c"}}`, 422, `immutable`},
		request{"POST cm", `{"metadata":{"name":"Up"}}`, 422, `lowercase_RFC_1123`},
		request{"POST cm", `{"metadata":{"name":"l","labels":{"a b":"c"}}}`, 422, `metadata.labels`},
		request{"POST svc", `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`, 201, `"clusterIP":"10.96.0.10" "targetPort":80`},
		request{"PATCH svc/s strategic", `{"spec":{"ports":[{"port":81,"name":"b"}]}}`, 422, `spec.ports`},
		request{"PATCH svc/s merge", `{"spec":{"clusterIP":"10.0.0.9"}}`, 422, `may_not_change_once_set`},
		request{"POST svc", `{"metadata":{"name":"n"},"spec":{"type":"NodePort","ports":[{"port":80}]}}`, 201, `"nodePort":30001`},
		request{"POST pod", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"C"}]}}`, 422, `containers[0].name containers[0].image`},
		request{"POST deploy", `{"metadata":{"name":"x"},"spec":{}}`, 422, `spec.selector containers`},
		request{"POST cm/a", `{}`, 405, `MethodNotAllowed`},
		request{"POST cm yaml", "metadata:\n  name: of-yaml\ndata:\n  a: b\n", 201, `"a":"b"`},
	)
}

// Two that change different fields at once both succeed: who comes second is
// tried again.
func TestServer_PatchesAtOnceAllCount_S8(t *testing.T) {
	fixture.Run(t, func(t *testing.T, w *fixture.World) {
		w.Store(fixture.ConfigMap("a", "1"))
		const writers = 20
		var group sync.WaitGroup
		for n := range writers {
			group.Go(func() {
				ask(t, w, http.MethodPatch, mapsPath+"/a", mediaTypes["merge"], fmt.Sprintf(`{"data":{"w%d":"x"}}`, n))
			})
		}
		group.Wait()
		_, body := get(t, w, mapsPath+"/a")
		if data, _ := body["data"].(map[string]any); len(data) != writers+1 {
			t.Errorf("%d of %d fields are there, want all: a patch that finds another version is tried again", len(data)-1, writers)
		}
	})
}

func TestServer_ApplyNamesUnknownFieldsInOneOrder_S7(t *testing.T) {
	s := simulate.New(simulate.Options{Namespaces: []string{"ns"}})
	const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"f":1,"e":1,"d":{"x":1},"c":[1],"b":1,"g":1}`
	for range 20 {
		answer := directly(s, "PATCH", mapsPath+"/a?fieldManager=m", "application/apply-patch+yaml", body)
		if said := answer.Body.String(); answer.Code != 500 || !strings.Contains(said, "/v1, Kind=ConfigMap): .b: field not declared in schema") {
			t.Fatalf("got %d %s, want 500 that names the first field, b", answer.Code, said)
		}
	}
}
