// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// named are the tokens of the users of these tests.
var named = simulate.Options{Authorization: true, Tokens: map[string]simulate.User{
	"root": {Name: "root", Groups: []string{"system:masters"}}, "carol": {Name: "carol", UID: "7", Groups: []string{"team"}}, "dave": {Name: "dave"},
}}

// as sends a request with a token, and holds the answer: its status and a part
// of what it says.
func (p *play) as(token, line, body string, status int, part string, headers ...string) map[string]any {
	p.t.Helper()
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	before := p.Revision()
	code, answer := p.ask(line, body, headers...)
	said := fmt.Sprint(answer)
	if code != status || !strings.Contains(said, part) {
		p.t.Errorf("%s as %q: got %d %s, want %d and %q in it", line, token, code, said, status, part)
	}
	if code >= 400 && p.Revision() != before {
		p.t.Errorf("%s as %q: refused with %d, but something was stored", line, token, code)
	}
	return answer
}

const (
	whoAmI       = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews"
	tokenReviews = "POST /apis/authentication.k8s.io/v1/tokenreviews"
	accountsPath = "/api/v1/namespaces/ns/serviceaccounts"
	rbacPath     = "/apis/rbac.authorization.k8s.io/v1"
)

func TestServer_EachRequestIsOfOneUser_S19(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.as("carol", whoAmI, `{}`, 201, "groups:[team system:authenticated] uid:7 username:carol")
		p.as("unknown", "GET /version", "", 401, "message:Unauthorized")
		p.as("", whoAmI, `{}`, 403, `User "system:anonymous" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope`)
		p.as("", "GET /version", "", 200, "gitVersion")
		p.as("root", whoAmI, `{}`, 403, `User "system:anonymous" cannot create`, "Impersonate-User", "system:anonymous")
		for _, header := range []string{"Basic Zm9vOmJhcg==", "Bearer", "Bearer ", "Bearer  carol", "carol"} {
			p.as("", "GET /api/v1/pods", "", 403, "system:anonymous", "Authorization", header)
		}
		p.as("", "GET /api/v1/pods", "", 401, "Unauthorized", "Authorization", "Bearer "+strings.Repeat("x.", 1<<16))
		p.as("", whoAmI, `{}`, 201, "username:carol", "Authorization", "  bEARER carol")
	})
	acting(t, simulate.Options{}, simulate.Actors{}, func(p *play) {
		p.as("", whoAmI, `{}`, 201, "groups:[system:masters system:authenticated] username:simulated")
		p.AcceptTokens("a")
		p.as("b", "GET /version", "", 401, "Unauthorized")
		p.as("", "GET /version", "", 401, "Unauthorized")
		p.as("a", whoAmI, `{}`, 201, "username:simulated")
	})
}

func TestServer_CertificatesNameTheirUser_S19(t *testing.T) {
	s := simulate.New(simulate.Options{Authorization: true, Namespaces: []string{"ns"}})
	ask := func(verified bool) int {
		cert := &x509.Certificate{Raw: []byte("raw"), Subject: pkix.Name{CommonName: "carol", Organization: []string{"system:masters"}}}
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/v1/secrets", nil)
		r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		if verified {
			r.TLS.VerifiedChains = [][]*x509.Certificate{{cert}}
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code
	}
	if got := ask(true); got != http.StatusOK {
		t.Errorf("got %d, want a verified certificate to name a user and its groups", got)
	}
	if got := ask(false); got != http.StatusForbidden {
		t.Errorf("got %d, want a certificate that nobody has verified to name nobody", got)
	}
}

// token issues a token for the ServiceAccount "sa".
func (p *play) token(spec string) string {
	p.t.Helper()
	answer := p.as("root", "POST "+accountsPath+"/sa/token", `{"spec":{`+spec+`}}`, 201, "token")
	token, _ := in(answer, "status", "token").(string)
	return token
}

func TestServer_AccountTokensCountAsLongAsWhatTheyAreBoundTo_S19(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.as("root", "POST "+accountsPath, `{"metadata":{"name":"sa"}}`, 201, "")
		token := p.token("")
		p.as(token, whoAmI, `{}`, 201, "groups:[system:serviceaccounts system:serviceaccounts:ns system:authenticated]")
		p.as(token, whoAmI, `{}`, 201, "username:system:serviceaccount:ns:sa")
		other := p.token(`"audiences":["vault"]`)
		p.as(other, whoAmI, `{}`, 401, "Unauthorized")
		review := func(token, more string) string { return fmt.Sprintf(`{"spec":{"token":%q%s}}`, token, more) }
		p.as("root", tokenReviews, review(other, `,"audiences":["vault","x"]`), 201, "audiences:[vault] authenticated:true")
		p.as("root", tokenReviews, review(other, ""), 201, `token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc.cluster.local"]`)
		p.as("root", tokenReviews, review("nope", ""), 201, "error:invalid bearer token")
		p.as("root", tokenReviews, review("carol", ""), 201, "authenticated:true")
		p.as("root", tokenReviews, review("", ""), 400, "token is required for TokenReview in authentication")

		p.as("root", "POST /api/v1/namespaces/ns/secrets", `{"metadata":{"name":"s"}}`, 201, "")
		bound := p.token(`"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s"}`)
		p.as(bound, whoAmI, `{}`, 201, "sa")
		p.as("root", "DELETE /api/v1/namespaces/ns/secrets/s", "", 200, "")
		p.as(bound, whoAmI, `{}`, 401, "Unauthorized")

		short := p.token(`"expirationSeconds":600`)
		fixture.Pass(10 * time.Minute)
		p.as(short, whoAmI, `{}`, 201, "sa") // clocks may differ by a minute
		fixture.Pass(2 * time.Minute)
		p.as(short, whoAmI, `{}`, 401, "Unauthorized")
		p.as(token, whoAmI, `{}`, 201, "sa")
		p.as("root", "DELETE "+accountsPath+"/sa", "", 200, "")
		p.as("root", "POST "+accountsPath, `{"metadata":{"name":"sa"}}`, 201, "")
		p.as(token, whoAmI, `{}`, 401, "Unauthorized")
	})
}

func TestServer_ForgedTokensAreRefused_S19(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.as("root", "POST "+accountsPath, `{"metadata":{"name":"sa"}}`, 201, "")
		token := p.token("")
		parts := strings.Split(token, ".")
		part := base64.RawURLEncoding.EncodeToString
		none := part([]byte(`{"alg":"none"}`))
		for _, forged := range []string{
			none + "." + parts[1] + ".", none + "." + parts[1] + "." + parts[2], parts[0] + "." + parts[1] + ".", parts[0] + "." + parts[1],
			token[:len(token)-2], token + "AA", "..", "a.b.c", part([]byte(`null`)) + "." + part([]byte(`null`)) + ".",
			parts[0] + "." + part([]byte(`{"iss":"https://kubernetes.default.svc.cluster.local","aud":["https://kubernetes.default.svc.cluster.local"],"exp":99999999999}`)) + "." + parts[2],
		} {
			p.as(forged, whoAmI, `{}`, 401, "Unauthorized")
		}
	})
}

func TestServer_TokenRequestsAreHeldToTheirRules_S19(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		p.as("root", "POST "+accountsPath, `{"metadata":{"name":"sa"}}`, 201, "")
		path := "POST " + accountsPath + "/sa/token"
		p.as("root", path, `{"spec":{"expirationSeconds":10}}`, 422, `TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes`)
		p.as("root", path, `{"spec":{"expirationSeconds":100000000000}}`, 422, "may not specify a duration larger than 2^32 seconds")
		p.as("root", path, `{"spec":{"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"none"}}}`, 404, `pods "none" not found`)
		p.as("root", path, `{"spec":{"boundObjectRef":{"kind":"ConfigMap","apiVersion":"v1","name":"none"}}}`, 400, "cannot bind token to object of type /v1, Kind=ConfigMap")
		p.as("root", path, `{"metadata":{"name":"other"}}`, 422, "must match the service account name if specified")
		p.as("root", path, `{"metadata":{"namespace":"other"}}`, 400, "does not match the namespace sent on the request")
		p.as("root", path, `{`, 400, "unrecognized")
		p.as("root", "POST "+accountsPath+"/nope/token", `{}`, 404, `serviceaccounts "nope" not found`)
		p.as("root", "GET "+accountsPath+"/sa/token", "", 405, "does not allow this method")
		p.as("carol", path, `{}`, 403, `serviceaccounts "sa" is forbidden: User "carol" cannot create resource "serviceaccounts/token" in API group "" in the namespace "ns"`)
	})
}

func TestServer_WhoMayBeAnother_S19(t *testing.T) {
	acting(t, named, simulate.Actors{}, func(p *play) {
		nodes := "GET /api/v1/nodes"
		p.as("root", whoAmI, `{}`, 201, "extra:map[foo/bar:[b] scopes:[a]] groups:[system:authenticated] uid:1 username:erin",
			"Impersonate-User", "erin", "Impersonate-Uid", "1", "Impersonate-Extra-Scopes", "a", "Impersonate-Extra-Foo%2fbar", "b")
		p.as("root", whoAmI, `{}`, 201, "system:serviceaccounts:a system:authenticated", "Impersonate-User", "system:serviceaccount:a:b")
		p.as("root", nodes, "", 403, `User "erin" cannot list resource "nodes"`, "Impersonate-User", "erin")
		p.as("root", nodes, "", 400, `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)} without impersonating a user name`, "Impersonate-Group", "g")
		p.as("carol", nodes, "", 403, `User "carol" cannot impersonate-on:user-info:list resource "nodes" in API group "" at the cluster scope`, "Impersonate-User", "erin")
		p.as("carol", nodes, "", 403, `cannot impersonate-on:serviceaccount:list resource "nodes"`, "Impersonate-User", "system:serviceaccount:a:b")
		p.as("root", "POST "+rbacPath+"/clusterroles", `{"metadata":{"name":"be"},"rules":[{"apiGroups":[""],"resources":["users"],"resourceNames":["dave"],"verbs":["impersonate"]}]}`, 201, "")
		p.as("root", "POST "+rbacPath+"/clusterrolebindings", `{"metadata":{"name":"be"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"be"},"subjects":[{"kind":"User","name":"carol"}]}`, 201, "")
		p.as("carol", whoAmI, `{}`, 201, "username:dave", "Impersonate-User", "dave")
		p.as("carol", nodes, "", 403, "impersonate", "Impersonate-User", "erin")
		p.as("carol", nodes, "", 403, "impersonate", "Impersonate-User", "dave", "Impersonate-Group", "system:masters")
	})
}

// FuzzServer_Authorization sends what may stand in the header. Only the token
// itself is let in.
func FuzzServer_Authorization(f *testing.F) {
	s := simulate.New(simulate.Options{Authorization: true, Namespaces: []string{"ns"}})
	send := func(t *testing.T, header, user string) *httptest.ResponseRecorder {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/secrets", nil)
		r.Header["Authorization"] = []string{header}
		r.Header["Impersonate-User"] = []string{user}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if _, err := s.Put(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}}); err != nil {
		f.Fatal(err)
	}
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"EdDSA"}`))
	body := base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://kubernetes.default.svc.cluster.local","aud":["https://kubernetes.default.svc.cluster.local"],"kubernetes.io":{"namespace":"ns","serviceaccount":{"name":"sa"}}}`))
	for _, seed := range []string{"Bearer ..", "Bearer " + head + "." + body + ".", "bearer\tx", "Bearer " + body, "Basic eA=="} {
		f.Add(seed, "")
		f.Add(seed, "carol")
	}
	before := s.Revision()
	f.Fuzz(func(t *testing.T, header, user string) {
		w := send(t, header, user)
		if w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden && w.Code != http.StatusBadRequest {
			t.Errorf("got %d %s for %q, want nobody let in", w.Code, w.Body, header)
		}
		if after := s.Revision(); after != before {
			t.Errorf("got revision %d, want %d: nothing is stored", after, before)
		}
	})
}
