// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// judge is an API server for reviews, without a network.
type judge struct {
	mu      sync.Mutex
	users   map[string]string // by token
	may     []string          // "user verb path"
	fails   error             // all requests
	refuses string            // resource that may not be created
	takes   time.Duration
	tokens  int // reviews of tokens
	rights  int // reviews of access
	groups  []string
}

func (j *judge) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	j.mu.Lock()
	takes := j.takes
	j.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var answer any
	code := http.StatusCreated
	_, resource, _ := strings.Cut(r.URL.Path, "/v1/")
	switch {
	case j.fails != nil:
		return nil, j.fails
	case resource == j.refuses:
		status := apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New(`User "operator" cannot create resource`)).Status()
		status.APIVersion, status.Kind = "v1", "Status"
		answer, code = status, http.StatusForbidden
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authentication.k8s.io/v1/tokenreviews":
		j.tokens++
		var review authenticationv1.TokenReview
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		if name, ok := j.users[review.Spec.Token]; ok {
			review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
				Username: name, UID: "7", Groups: []string{"scrapers"}, Extra: map[string]authenticationv1.ExtraValue{"pod": {"a"}},
			}}
		}
		answer = review
	case r.Method == http.MethodPost && r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		j.rights++
		var review authorizationv1.SubjectAccessReview
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		asks := review.Spec
		j.groups = append(asks.Groups, asks.UID, strings.Join(asks.Extra["pod"], ","))
		path := asks.NonResourceAttributes
		review.Status.Allowed = slices.Contains(j.may, asks.User+" "+path.Verb+" "+path.Path)
		answer = review
	default:
		return nil, fmt.Errorf("%s %s is not what a guard asks", r.Method, r.URL.Path)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: code, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(text))),
	}, nil
}

// CloseIdleConnections has nothing to close.
func (j *judge) CloseIdleConnections() {}

func (j *judge) change(how func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	how()
}

func (j *judge) asked() (tokens, rights int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tokens, j.rights
}

// guarded returns a guard that uses j, in front of a handler that answers "in". log has
// all log output.
func guarded(t *testing.T, j *judge) (talkative http.Handler, remembers func() int, log *lines) {
	t.Helper()
	log = &lines{}
	sink := funcr.New(log.write, funcr.Options{Verbosity: 10})
	guard, remembers, err := manager.NewGuard(&rest.Config{Host: "http://judge", Transport: j, QPS: -1}, sink,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				t.Error("the token went on to what is guarded")
			}
			fmt.Fprint(w, "in")
		}))
	must(t, err)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard.ServeHTTP(w, r.WithContext(logr.NewContext(r.Context(), sink)))
	}), remembers, log
}

func knock(guard http.Handler, method, path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	guard.ServeHTTP(w, r)
	return w
}

func TestGuard_AnswersOnlyWhoMayAsk_M6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{users: map[string]string{"tp": "prometheus", "tn": "nobody"}, may: []string{"prometheus get /metrics"}}
		guard, _, log := guarded(t, j)
		for _, c := range []struct {
			method, path, authorization string
			code                        int
			says                        string
		}{
			{"GET", "/metrics", "Bearer tp", 200, "in"},
			{"GET", "/metrics", "bearer  tp ", 200, "in"},
			{"GET", "/metrics", "", 401, "Unauthorized"},
			{"GET", "/metrics", "Bearer", 401, "Unauthorized"},
			{"GET", "/metrics", "Bearer a b", 401, "Unauthorized"},
			{"GET", "/metrics", "Basic tp", 401, "Unauthorized"},
			{"GET", "/metrics", "Bearer unknown", 401, "Unauthorized"},
			{"GET", "/metrics", "Bearer tn", 403, `User "nobody" cannot get path "/metrics"`},
			{"HEAD", "/metrics", "Bearer tp", 403, `User "prometheus" cannot head path "/metrics"`},
			{"POST", "/metrics", "Bearer tp", 403, `User "prometheus" cannot post path "/metrics"`},
			{"GET", "/metrics/", "Bearer tp", 403, `User "prometheus" cannot get path "/metrics/"`},
			{"GET", "/x/../metrics", "Bearer tp", 403, `User "prometheus" cannot get path "/x/../metrics"`},
			{"GET", "/debug/pprof/heap", "Bearer tp", 403, `User "prometheus" cannot get path "/debug/pprof/heap"`},
		} {
			w := knock(guard, c.method, c.path, c.authorization)
			says := w.Body.String()
			if c.code != http.StatusOK {
				var status metav1.Status
				must(t, json.Unmarshal(w.Body.Bytes(), &status))
				if says = status.Message; int(status.Code) != c.code || status.Kind != "Status" {
					t.Errorf("%s %s as %q: status %+v, want a Status of %d", c.method, c.path, c.authorization, status, c.code)
				}
			}
			if w.Code != c.code || !strings.Contains(says, c.says) {
				t.Errorf("%s %s as %q = %d %q, want %d %q", c.method, c.path, c.authorization, w.Code, says, c.code, c.says)
			}
			if (w.Header().Get("WWW-Authenticate") == "Bearer") != (c.code == http.StatusUnauthorized) {
				t.Errorf("%s %s as %q: header %v", c.method, c.path, c.authorization, w.Header())
			}
		}
		if want := []string{"scrapers", "7", "a"}; !slices.Equal(j.groups, want) {
			t.Errorf("the review named %v, want %v: rights are given to groups too", j.groups, want)
		}
		if text := log.read(); strings.Contains(text, "tp") || strings.Contains(text, "unknown") {
			t.Errorf("a token is in the log:\n%s", text)
		}
	})
}

func TestGuard_ARightThatIsTakenAwayEnds_M6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{users: map[string]string{"tp": "prometheus"}}
		guard, _, _ := guarded(t, j)
		expect := func(code int, why string) {
			t.Helper()
			if w := knock(guard, "GET", "/metrics", "Bearer tp"); w.Code != code {
				t.Errorf("%d %s, want %d: %s", w.Code, w.Body, code, why)
			}
		}
		expect(403, "nobody has granted it")
		j.change(func() { j.may = []string{"prometheus get /metrics"} })
		time.Sleep(29 * time.Second)
		expect(403, "a no is good for 30 seconds")
		time.Sleep(time.Second)
		expect(200, "and not longer")
		j.change(func() { j.may = nil })
		time.Sleep(5*time.Minute - time.Nanosecond)
		expect(200, "a yes is good for 5 minutes")
		time.Sleep(time.Nanosecond)
		expect(403, "and not longer")

		j.change(func() { j.may = []string{"prometheus get /metrics"} })
		time.Sleep(time.Minute)
		expect(200, "it was granted again")
		j.change(func() { j.users = nil })
		time.Sleep(time.Minute - time.Nanosecond)
		expect(200, "a token is good for a minute")
		time.Sleep(time.Nanosecond)
		expect(401, "and not longer")
	})
}

func TestGuard_NobodyIsLetInWhenTheServerCannotBeAsked_M6(t *testing.T) {
	for _, c := range []struct {
		name string
		ill  func(j *judge)
		log  []string
	}{
		{"it is gone", func(j *judge) { j.fails = errors.New("connection refused") }, []string{"create tokenreviews", "connection refused"}},
		{"it hangs", func(j *judge) { j.takes = time.Hour }, []string{"create tokenreviews", "context deadline exceeded"}},
		{"it refuses the first review", func(j *judge) { j.refuses = "tokenreviews" },
			[]string{"system:auth-delegator", "{apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}"}},
		{"it refuses the second review", func(j *judge) { j.refuses = "subjectaccessreviews" },
			[]string{"system:auth-delegator", "{apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &judge{users: map[string]string{"tp": "prometheus"}, may: []string{"prometheus get /metrics"}}
				c.ill(j)
				guard, _, log := guarded(t, j)
				began := time.Now()
				w := knock(guard, "GET", "/metrics", "Bearer tp")
				if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "in\n") {
					t.Errorf("%d %s, want 503", w.Code, w.Body)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("it took %v, want ten seconds at most", took)
				}
				for _, want := range c.log {
					if !strings.Contains(log.read(), want) {
						t.Errorf("the log lacks %q:\n%s", want, log.read())
					}
				}
				j.change(func() { j.fails, j.refuses, j.takes = nil, "", 0 })
				if w := knock(guard, "GET", "/metrics", "Bearer tp"); w.Code != http.StatusOK {
					t.Errorf("%d %s after it has healed, want 200: what could not be asked is not remembered", w.Code, w.Body)
				}
			})
		})
	}
}

func TestGuard_AStormIsOneReview(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{users: map[string]string{"tp": "prometheus"}, may: []string{"prometheus get /metrics"}, takes: time.Second}
		guard, _, _ := guarded(t, j)
		first, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			r := httptest.NewRequest("GET", "/metrics", nil).WithContext(first)
			r.Header.Set("Authorization", "Bearer tp")
			guard.ServeHTTP(httptest.NewRecorder(), r)
		})
		synctest.Wait()
		for range 200 {
			all.Go(func() {
				if w := knock(guard, "GET", "/metrics", "Bearer tp"); w.Code != http.StatusOK {
					t.Errorf("%d %s, want 200: that the first has gone is none of the others", w.Code, w.Body)
				}
			})
		}
		time.Sleep(time.Second / 2)
		leave()
		all.Wait()
		if tokens, rights := j.asked(); tokens != 1 || rights != 1 {
			t.Errorf("%d reviews of the token and %d of the right, want one each", tokens, rights)
		}
	})
}

func TestGuard_AFloodOfTokensIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &judge{users: map[string]string{"tp": "prometheus"}, may: []string{"prometheus get /metrics"}}
		guard, remembers, _ := guarded(t, j)
		if w := knock(guard, "GET", "/metrics", "Bearer tp"); w.Code != http.StatusOK {
			t.Fatalf("%d %s, want 200", w.Code, w.Body)
		}
		j.change(func() { j.takes = time.Second })
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() { knock(guard, "GET", "/metrics", fmt.Sprint("Bearer wrong", i)) })
		}
		time.Sleep(1500 * time.Millisecond)
		if tokens, _ := j.asked(); tokens != 9 {
			t.Errorf("%d tokens were reviewed in a second and a half, want 8 of the flood at a time", tokens)
		}
		all.Wait()
		j.change(func() { j.takes = 0 })
		for i := range 3000 {
			knock(guard, "GET", "/metrics", fmt.Sprint("Bearer bad", i))
		}
		if n := remembers(); n != 1024+1 {
			t.Errorf("%d answers are remembered, want 1024 of tokens and one of a right", n)
		}
		before, _ := j.asked()
		knock(guard, "GET", "/metrics", "Bearer tp")
		if after, _ := j.asked(); after != before {
			t.Error("the good token was forgotten for bad ones")
		}
	})
}
