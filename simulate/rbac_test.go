// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// role makes a role of rules; without a namespace a ClusterRole.
func (p *play) role(namespace, name, rules string) {
	p.t.Helper()
	p.as("root", "POST "+rolesPath(namespace, "roles"), fmt.Sprintf(`{"metadata":{"name":%q},"rules":[%s]}`, name, rules), 201, "")
}

// rolesPath is where roles or bindings are.
func rolesPath(namespace, plural string) string {
	if namespace == "" {
		return rbacPath + "/cluster" + plural
	}
	return rbacPath + "/namespaces/" + namespace + "/" + plural
}

func binding(name, kind, role, subjects string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q},"subjects":[%s]}`, name, kind, role, subjects)
}

// bind gives a role to subjects.
func (p *play) bind(namespace, name, kind, role, subjects string) {
	p.t.Helper()
	p.as("root", "POST "+rolesPath(namespace, "rolebindings"), binding(name, kind, role, subjects), 201, "")
}

const carol = `{"kind":"User","name":"carol"}`

func TestServer_NothingGoesThroughThatNoRuleGrants_S20(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		secret := "/api/v1/namespaces/ns/secrets"
		for line, said := range map[string]string{
			"GET /api/v1/namespaces/ns/pods":                      `pods is forbidden: User "carol" cannot list resource "pods" in API group "" in the namespace "ns"`,
			"GET /api/v1/namespaces/ns/pods/x/log":                `pods "x" is forbidden: User "carol" cannot get resource "pods/log"`,
			"GET /api/v1/pods?watch=1":                            `cannot watch resource "pods" in API group "" at the cluster scope`,
			"GET /api/v1/watch/pods":                              `cannot watch resource "pods" in API group "" at the cluster scope`,
			"GET /apis/nope/v1/x":                                 `x.nope is forbidden: User "carol" cannot list resource "x" in API group "nope" at the cluster scope`,
			"GET /api/v1/namespaces/ns":                           `namespaces "ns" is forbidden: User "carol" cannot get resource "namespaces" in API group "" in the namespace "ns"`,
			"DELETE " + secret:                                    `cannot deletecollection resource "secrets"`,
			"POST " + secret:                                      `cannot create resource "secrets"`,
			"PATCH " + secret + "/x merge":                        `cannot patch resource "secrets"`,
			"PUT /apis/apps/v1/namespaces/ns/deployments/x/scale": `deployments.apps "x" is forbidden: User "carol" cannot update resource "deployments/scale" in API group "apps" in the namespace "ns"`,
			"GET /metrics":                                        `forbidden: User "carol" cannot get path "/metrics"`,
			"POST /apis":                                          `forbidden: User "carol" cannot post path "/apis"`,
		} {
			p.as("carol", line, `{}`, 403, said)
		}
		p.as("carol", "GET /apis", "", 200, "groups")
		p.as("", "GET /apis", "", 403, `cannot get path "/apis"`)
		p.as("root", "GET "+secret, "", 200, "SecretList")
	})
}

func TestServer_RulesGrantWhatTheySay_S20(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		cms := "/api/v1/namespaces/ns/configmaps"
		p.role("ns", "one", `{"apiGroups":[""],"resources":["configmaps"],"resourceNames":["a"],"verbs":["get","patch","list"]}`)
		p.bind("ns", "one", "Role", "one", `{"kind":"ServiceAccount","name":"sa"},{"kind":"Group","name":"team"}`)
		p.as("carol", "GET "+cms+"/a", "", 404, "not found")
		p.as("carol", "GET "+cms+"/b", "", 403, "forbidden")
		p.as("carol", "GET "+cms, "", 403, "forbidden")
		p.as("carol", "GET "+cms+"?fieldSelector=metadata.name%3Da", "", 200, "")
		p.as("dave", "GET "+cms+"/a", "", 403, "forbidden")
		p.as("carol", "GET /api/v1/namespaces/other/configmaps/a", "", 403, "forbidden")
		p.as("root", "GET "+cms+"/a", "", 404, "not found", "Impersonate-User", "system:serviceaccount:ns:sa")
		p.as("root", "GET "+cms+"/a", "", 403, "forbidden", "Impersonate-User", "system:serviceaccount:other:sa")

		p.role("", "parts", `{"apiGroups":["*"],"resources":["*/scale","pods/log"],"verbs":["*"]},{"nonResourceURLs":["/metrics","/x/*"],"verbs":["get"]}`)
		p.bind("", "parts", "ClusterRole", "parts", carol)
		p.as("carol", "GET /apis/apps/v1/namespaces/ns/deployments/d/scale", "", 404, "not found")
		p.as("carol", "GET /apis/apps/v1/namespaces/ns/deployments/d", "", 403, "forbidden")
		p.as("carol", "GET /api/v1/namespaces/ns/pods/x", "", 403, "forbidden")
		p.as("carol", "GET /metrics", "", 404, "")
		p.as("carol", "GET /x/y/z", "", 404, "")
		p.as("carol", "GET /xy", "", 403, "forbidden")

		p.role("", "nodes", `{"apiGroups":[""],"resources":["nodes","secrets"],"verbs":["list"]}`)
		p.bind("ns", "nodes", "ClusterRole", "nodes", carol)
		p.as("carol", "GET /api/v1/namespaces/ns/secrets", "", 200, "")
		p.as("carol", "GET /api/v1/secrets", "", 403, "at the cluster scope")
		p.as("carol", "GET /api/v1/nodes", "", 403, "at the cluster scope")
		p.as("root", "DELETE "+rolesPath("ns", "rolebindings")+"/nodes", "", 200, "")
		p.as("carol", "GET /api/v1/namespaces/ns/secrets", "", 403, "forbidden")

		p.bind("ns", "dangling", "ClusterRole", "nope", carol)
		p.as("carol", "GET /api/v1/namespaces/ns/secrets", "", 403, `in the namespace "ns": rbac: RBAC: clusterrole.rbac.authorization.k8s.io "nope" not found`)
	})
}

func TestServer_RolesAreMadeOfOthers_S20(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.bind("ns", "view", "ClusterRole", "view", carol)
		p.bind("ns", "edit", "ClusterRole", "edit", `{"kind":"User","name":"dave"}`)
		p.as("carol", "GET /api/v1/namespaces/ns/pods", "", 200, "")
		p.as("carol", "GET /api/v1/namespaces/ns/secrets", "", 403, "forbidden")
		p.as("dave", "GET /api/v1/namespaces/ns/secrets", "", 200, "")
		p.as("dave", "GET /api/v1/namespaces/ns/pods", "", 200, "") // edit has what view has
		p.as("carol", "GET /apis/test.example.com/v1/namespaces/ns/widgets", "", 403, "forbidden")
		p.as("root", "POST "+rolesPath("", "roles"), `{"metadata":{"name":"widgets","labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},"rules":[{"apiGroups":["test.example.com"],"resources":["widgets"],"verbs":["list"]}]}`, 201, "")
		p.as("carol", "GET /apis/test.example.com/v1/namespaces/ns/widgets", "", 404, "")
	})
}

func TestServer_NobodyGivesWhatTheyDoNotHave_S20(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.role("", "roles", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings","clusterroles","clusterrolebindings"],"verbs":["create","get","update","patch"]},{"apiGroups":[""],"resources":["pods"],"verbs":["get","list"]}`)
		p.bind("", "roles", "ClusterRole", "roles", carol)
		p.role("ns", "held", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}`)
		const lacks = `user "carol" (groups=["team" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:` + "\n"
		create := "POST " + rolesPath("ns", "roles")
		p.as("carol", create, `{"metadata":{"name":"a"},"rules":[{"apiGroups":[""],"resources":["secrets","pods"],"verbs":["get","list","watch"]},{"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["a"],"verbs":["get"]}]}`,
			403, `roles.rbac.authorization.k8s.io "a" is forbidden: `+lacks+
				`{APIGroups:[""], Resources:["pods"], Verbs:["watch"]}`+"\n"+`{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}`+"\n"+
				`{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["a"], Verbs:["get"]}`)
		p.as("carol", create, `{"metadata":{"name":"a"},"rules":[{"apiGroups":[""],"resources":["pods"],"resourceNames":["x"],"verbs":["get"]}]}`, 201, "")
		p.as("carol", "POST "+rolesPath("", "roles"), `{"metadata":{"name":"b"},"rules":[{"nonResourceURLs":["/metrics","/api"],"verbs":["get"]}]}`, 403, lacks+`{NonResourceURLs:["/metrics"], Verbs:["get"]}`)
		p.as("carol", "POST "+rolesPath("", "roles"), `{"metadata":{"name":"b"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}`, 403, "must have cluster-admin privileges to use the aggregationRule")
		bindings := rolesPath("ns", "rolebindings")
		p.as("carol", "POST "+bindings, binding("c", "ClusterRole", "cluster-admin", carol), 403, lacks+`{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`+"\n"+`{NonResourceURLs:["*"], Verbs:["*"]}`)
		p.as("carol", "POST "+bindings, binding("c", "ClusterRole", "nope", carol), 404, `rolebindings.rbac.authorization.k8s.io "nope" not found`)
		p.as("carol", "POST "+bindings, binding("c", "Role", "held", carol), 403, lacks+`{APIGroups:[""], Resources:["configmaps"], Verbs:["get" "list"]}`)
		p.as("carol", "POST "+bindings, binding("c", "Role", "a", carol), 201, "")
		p.as("carol", "PATCH "+rolesPath("ns", "roles")+"/held merge", `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, 403, lacks)
		p.as("carol", "PATCH "+rolesPath("ns", "roles")+"/held merge", `{"metadata":{"labels":{"a":"b"}}}`, 403, lacks)
		p.as("carol", "PATCH "+rolesPath("ns", "roles")+"/held merge", `{"metadata":{"finalizers":["test.example.com/held"]}}`, 200, "")

		p.role("", "more", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]},{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"resourceNames":["held"],"verbs":["bind"]}`)
		p.bind("", "more", "ClusterRole", "more", carol)
		p.as("carol", create, `{"metadata":{"name":"all"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`, 201, "")
		p.as("carol", "POST "+bindings, binding("d", "Role", "held", carol), 201, "")
		p.as("carol", "POST "+bindings, binding("e", "Role", "all", carol), 403, lacks)
	})
}

func TestServer_ReviewsTellWhatIsAllowed_S20(t *testing.T) {
	const access = "POST /apis/authorization.k8s.io/v1/"
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.as("root", "POST "+accountsPath, `{"metadata":{"name":"sa"}}`, 201, "")
		p.role("ns", "r", `{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}`)
		p.bind("ns", "b", "Role", "r", carol+`,{"kind":"ServiceAccount","name":"sa"}`)
		before := p.Revision()
		pods := `"resourceAttributes":{"verb":"get","resource":"pods","namespace":"ns"}`
		p.as("root", access+"subjectaccessreviews", `{"spec":{"user":"carol",`+pods+`}}`, 201, `allowed:true reason:RBAC: allowed by RoleBinding "b/ns" of Role "r" to User "carol"`)
		p.as("root", access+"subjectaccessreviews", `{"spec":{"user":"system:serviceaccount:ns:sa",`+pods+`}}`, 201, `to ServiceAccount "sa/ns"`)
		p.as("root", access+"subjectaccessreviews", `{"spec":{"user":"dave",`+pods+`}}`, 201, "status:map[allowed:false]")
		p.as("root", access+"subjectaccessreviews", `{"spec":{"user":"x","groups":["system:authenticated"],"nonResourceAttributes":{"verb":"get","path":"/api/v1"}}}`, 201,
			`RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"`)
		p.as("root", access+"subjectaccessreviews", `{"spec":{"user":"x"}}`, 422, `.authorization.k8s.io "" is invalid: spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified`)
		p.as("root", access+"subjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get"},"nonResourceAttributes":{"path":"/","verb":"get"}}}`, 422,
			`[spec: Invalid value: {"Path":"/","Verb":"get"}: exactly one of nonResourceAttributes or resourceAttributes must be specified, spec.user: Invalid value: "": at least one of user or group must be specified]`)
		p.as("root", access+"namespaces/ns/localsubjectaccessreviews", `{"spec":{"user":"carol",`+pods+`}}`, 201, "allowed:true")
		p.as("root", access+"namespaces/other/localsubjectaccessreviews", `{"spec":{"user":"carol",`+pods+`}}`, 422, `spec.resourceAttributes.namespace: Invalid value: "ns": must match metadata.namespace`)
		p.as("carol", access+"selfsubjectaccessreviews", `{"spec":{`+pods+`}}`, 201, "allowed:true")
		p.as("dave", access+"selfsubjectaccessreviews", `{"spec":{`+pods+`}}`, 201, "allowed:false")
		p.as("carol", access+"selfsubjectrulesreviews", `{"spec":{"namespace":"ns"}}`, 201, "map[apiGroups:[] resources:[pods] verbs:[get]]")
		p.as("carol", access+"selfsubjectrulesreviews", `{"spec":{}}`, 400, "no namespace on request")
		p.as("dave", access+"subjectaccessreviews", `{"spec":{"user":"carol",`+pods+`}}`, 403, "forbidden")
		if after := p.Revision(); after != before {
			t.Errorf("reviews moved the revision from %d to %d, want nothing of them stored", before, after)
		}
	})
	acting(t, simulate.Options{}, simulate.Actors{}, func(p *play) {
		p.as("", access+"subjectaccessreviews", `{"spec":{"user":"x","resourceAttributes":{"verb":"get","resource":"pods"}}}`, 201, "allowed:true")
		p.as("", access+"selfsubjectrulesreviews", `{"spec":{"namespace":"ns"}}`, 201, "apiGroups:[*] resources:[*] verbs:[*]")
	})
}

func TestServer_OpenWatchOutlivesItsRight_S20(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.role("ns", "r", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["watch"]}`)
		p.bind("ns", "b", "Role", "r", carol)
		ctx, stop := context.WithCancel(p.t.Context())
		defer stop()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, mapsPath+"?watch=1", nil)
		r.Header.Set("Authorization", "Bearer carol")
		w := httptest.NewRecorder()
		p.group.Go(func() { p.ServeHTTP(w, r) })
		fixture.Pass(time.Second)
		p.as("root", "DELETE "+rolesPath("ns", "rolebindings")+"/b", "", 200, "")
		p.as("root", "POST "+mapsPath, `{"metadata":{"name":"a"}}`, 201, "")
		fixture.Pass(time.Second)
		if got := w.Body.String(); !strings.Contains(got, "ADDED") {
			p.t.Errorf("got %q, want the open watch to go on", got)
		}
		p.as("carol", "GET "+mapsPath+"?watch=1", "", 403, "forbidden")
	})
}
