// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// tabled is a table in one line: its columns, and its rows after bars.
func tabled(t *testing.T, body []byte) string {
	t.Helper()
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var names []string
	for _, c := range table.ColumnDefinitions {
		if c.Priority == 0 {
			names = append(names, c.Name)
		}
	}
	out := strings.Join(names, ",")
	for _, row := range table.Rows {
		var cells []string
		for i, cell := range row.Cells {
			if i >= len(table.ColumnDefinitions) || table.ColumnDefinitions[i].Priority == 0 {
				cells = append(cells, fmt.Sprint(cell))
			}
		}
		out += " | " + strings.Join(cells, ",")
	}
	return out
}

func TestServer_TablesShowWhatPeopleLookFor_S16(t *testing.T) {
	gallery := kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Gallery"}, Resource: "galleries", Namespaced: true,
		Columns: []apiextensionsv1.CustomResourceColumnDefinition{
			{Name: "Size", Type: "integer", JSONPath: ".spec.size"}, {Name: "Town", Type: "string", JSONPath: ".spec.towns[0]"},
			{Name: "Open", Type: "boolean", JSONPath: ".spec.open"}, {Name: "Since", Type: "date", JSONPath: ".spec.since"},
		}}
	meta := func(name string) string { return `"metadata":{"namespace":"n","name":"` + name + `"}` }
	for _, c := range []struct{ path, object, want string }{
		{"/api/v1/pods", `{"apiVersion":"v1","kind":"Pod",` + meta("a") + `,"spec":{"containers":[{"name":"c"},{"name":"d"}]},"status":{"phase":"Running","containerStatuses":[{"name":"c","ready":true,"restartCount":2,"state":{"running":{}},"lastState":{"terminated":{"exitCode":1,"finishedAt":"1999-12-31T23:59:00Z"}}},{"name":"d","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`,
			"Name,Ready,Status,Restarts,Age | a,1/2,CrashLoopBackOff,2 (70s ago),10s"},
		{"/api/v1/pods", `{"apiVersion":"v1","kind":"Pod",` + meta("a") + `,"spec":{"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],"containers":[{"name":"c"}]},"status":{"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":2}}}]}}`,
			"Name,Ready,Status,Restarts,Age | a,0/2,Init:ExitCode:2,0,10s"},
		{"/api/v1/pods", `{"apiVersion":"v1","kind":"Pod",` + meta("a") + `,"spec":{"containers":[{"name":"c"}]},"status":{"phase":"Succeeded","containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0,"reason":"Completed"}}}]}}`,
			"Name,Ready,Status,Restarts,Age | a,0/1,Completed,0,10s"},
		{"/apis/apps/v1/deployments", `{"apiVersion":"apps/v1","kind":"Deployment",` + meta("a") + `,"spec":{"replicas":3},"status":{"readyReplicas":1,"updatedReplicas":2,"availableReplicas":1}}`,
			"Name,Ready,Up-to-date,Available,Age | a,1/3,2,1,10s"},
		{"/apis/apps/v1/statefulsets", `{"apiVersion":"apps/v1","kind":"StatefulSet",` + meta("a") + `,"spec":{"replicas":3},"status":{"readyReplicas":1}}`, "Name,Ready,Age | a,1/3,10s"},
		{"/apis/batch/v1/jobs", `{"apiVersion":"batch/v1","kind":"Job",` + meta("a") + `,"spec":{"completions":2},"status":{"succeeded":2,"startTime":"2000-01-01T00:00:00Z","completionTime":"2000-01-01T00:00:05Z","conditions":[{"type":"Complete","status":"True"}]}}`,
			"Name,Status,Completions,Duration,Age | a,Complete,2/2,5s,10s"},
		{"/api/v1/services", `{"apiVersion":"v1","kind":"Service",` + meta("a") + `,"spec":{"type":"LoadBalancer","clusterIPs":["10.0.0.1"],"ports":[{"port":80,"nodePort":30000,"protocol":"TCP"},{"port":81,"protocol":"UDP"}]}}`,
			"Name,Type,Cluster-IP,External-IP,Port(s),Age | kubernetes,ClusterIP,10.96.0.1,<none>,443/TCP,10s | a,LoadBalancer,10.0.0.1,<pending>,80:30000/TCP,81/UDP,10s"},
		{"/api/v1/configmaps", `{"apiVersion":"v1","kind":"ConfigMap",` + meta("a") + `,"data":{"a":"","b":""}}`, "Name,Data,Age | a,2,10s"},
		{"/api/v1/nodes", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"a","labels":{"node-role.kubernetes.io/worker":""}},"spec":{"unschedulable":true},"status":{"nodeInfo":{"kubeletVersion":"v1"},"conditions":[{"type":"Ready","status":"Unknown"}]}}`,
			"Name,Status,Roles,Age,Version | a,NotReady,SchedulingDisabled,worker,10s,v1"},
		{"/api/v1/events", `{"apiVersion":"v1","kind":"Event",` + meta("a") + `,"involvedObject":{"kind":"Pod","name":"p"},"reason":"R","message":" m\n","type":"Normal","lastTimestamp":"2000-01-01T00:00:05Z"}`,
			"Last Seen,Type,Reason,Object,Message | 5s,Normal,R,pod/p,m"},
		{"/apis/events.k8s.io/v1/events", `{"apiVersion":"events.k8s.io/v1","kind":"Event",` + meta("a") + `,"regarding":{"kind":"Pod","name":"p"},"reason":"R","note":"m","type":"Normal","eventTime":"2000-01-01T00:00:04.000000Z"}`,
			"Last Seen,Type,Reason,Object,Message | 6s,Normal,R,pod/p,m"},
		{"/apis/networking.k8s.io/v1/ingresses", `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress",` + meta("a") + `,"spec":{"rules":[{"host":"a"},{"host":"b"},{"host":"c"},{"host":"d"}]},"status":{"loadBalancer":{"ingress":[{"hostname":"h"},{"ip":"10.0.0.1"}]}}}`,
			"Name,Class,Hosts,Address,Ports,Age | a,<none>,a,b,c + 1 more...,10.0.0.1,h,80,10s"},
		{"/apis/autoscaling/v2/horizontalpodautoscalers", `{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler",` + meta("a") + `,"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"},"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}}]},"status":{"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":50}}}]}}`,
			"Name,Reference,Targets,MinPods,MaxPods,Replicas,Age | a,Deployment/d,cpu: 50%/80%,<unset>,3,0,10s"},
		{"/api/v1/limitranges", `{"apiVersion":"v1","kind":"LimitRange",` + meta("a") + `}`, "Name,Created At | a,2000-01-01T00:00:00Z"},
		{"/apis/test.example.com/v1/galleries", `{"apiVersion":"test.example.com/v1","kind":"Gallery",` + meta("a") + `,"spec":{"size":7,"towns":["x","y"],"open":true,"since":"2000-01-01T00:00:08Z"}}`,
			"Name,Size,Town,Open,Since | a,7,x,true,2s"},
		{"/apis/test.example.com/v1/paintings", `{"apiVersion":"test.example.com/v1","kind":"Painting",` + meta("a") + `}`, "Name,Age | a,10s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Namespaces: []string{"n"}})
			s.kinds.Install(kinds.FamilyOf(gallery.Completed()))
			s.kinds.Install(kinds.FamilyOf(painting.Completed()))
			stored(t, s, c.object)
			time.Sleep(10 * time.Second)
			answer := reply(s, c.path, encode.ContentJSON+";as=Table"+ofMeta)
			if got := tabled(t, answer.Body.Bytes()); got != c.want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.path, got, c.want)
			}
		})
	}
}

// The first event of a watch says what the columns are, later ones do not.
func TestServer_TablesAreWatchedWithColumnsOnce_S16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Namespaces: []string{"n"}})
		for _, name := range []string{"a", "b"} {
			stored(t, s, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"`+name+`"}}`)
		}
		for include, has := range map[string]string{"": "PartialObjectMetadata", "Metadata": "PartialObjectMetadata", "Object": "ConfigMap", "None": "<nil>"} {
			body := reply(s, "/api/v1/configmaps?watch=true&timeoutSeconds=1&includeObject="+include, encode.ContentJSON+";as=Table"+ofMeta).Body.String()
			var columns []int
			for line := range strings.Lines(body) {
				var event struct{ Object metav1.Table }
				if err := json.Unmarshal([]byte(line), &event); err != nil {
					t.Fatal(err)
				}
				columns = append(columns, len(event.Object.ColumnDefinitions))
				var object struct{ Kind any }
				if raw := event.Object.Rows[0].Object.Raw; raw != nil {
					if err := json.Unmarshal(raw, &object); err != nil {
						t.Fatal(err)
					}
				}
				if got := fmt.Sprint(object.Kind); got != has {
					t.Errorf("includeObject %q: a row has %s, want %s", include, got, has)
				}
			}
			if got := fmt.Sprint(columns); got != "[3 0]" {
				t.Errorf("includeObject %q: events have %s columns, want 3, then none", include, got)
			}
		}
		if answer := reply(s, "/api/v1/configmaps?includeObject=All", encode.ContentJSON+";as=Table"+ofMeta); answer.Code != http.StatusBadRequest {
			t.Errorf("includeObject=All: got %d, want 400", answer.Code)
		}
	})
}
