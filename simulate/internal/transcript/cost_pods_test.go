// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package transcript_test

import (
	"fmt"
	"strings"
)

// costPod is a Pod as a ReplicaSet controller creates it, with a node. The server fills in
// the rest.
func costPod(i int) []byte {
	var env strings.Builder
	for n := range 10 {
		fmt.Fprintf(&env, `{"name":"SETTING_%d","value":"https://service-%d.internal.example.com/%d"},`, n, i%1000, n)
	}
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p%06[1]d","namespace":"default",
"labels":{"app.kubernetes.io/name":"service-%[2]d","app.kubernetes.io/instance":"service-%[2]d-production","app.kubernetes.io/version":"1.24.3",
"app.kubernetes.io/managed-by":"Helm","pod-template-hash":"5d4f8c7b9","team":"payments","tier":"backend"},
"annotations":{"prometheus.io/scrape":"true","prometheus.io/port":"9090","prometheus.io/path":"/metrics","checksum/config":"%064[2]x"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"service-%[2]d-5d4f8c7b9","uid":"0b1c5e42-3a1c-4a4b-8a4b-%012[2]x","controller":true,"blockOwnerDeletion":true}]},
"spec":{"nodeName":"node-%03[3]d.example.com","serviceAccountName":"default","securityContext":{"runAsNonRoot":true,"fsGroup":2000},
"initContainers":[{"name":"setup","image":"registry.example.com/mesh/proxy:2.11.0","env":[{"name":"PROXY_MODE","value":"setup"}],
"resources":{"requests":{"cpu":"10m","memory":"64Mi"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}],
"containers":[{"name":"main","image":"registry.example.com/payments/service-%[2]d:1.24.3","args":["--config=/etc/service/config.yaml","--listen=:8080"],
"ports":[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}],"env":[%[4]s{"name":"POD_NAME","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
"resources":{"requests":{"cpu":"250m","memory":"256Mi"},"limits":{"memory":"512Mi"}},
"volumeMounts":[{"name":"config","mountPath":"/etc/service","readOnly":true},{"name":"scratch","mountPath":"/tmp"}],
"livenessProbe":{"httpGet":{"path":"/livez","port":"http"},"periodSeconds":10},"readinessProbe":{"httpGet":{"path":"/readyz","port":"http"},"periodSeconds":10},
"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}},
{"name":"proxy","image":"registry.example.com/mesh/proxy:2.11.0","env":[{"name":"PROXY_MODE","value":"sidecar"}],"resources":{"requests":{"cpu":"10m","memory":"64Mi"}}}],
"volumes":[{"name":"config","configMap":{"name":"service-%[2]d-config"}},{"name":"scratch","emptyDir":{}},
{"name":"access","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},
{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"fieldPath":"metadata.namespace"}}]}}]}}],
"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300},
{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}]}}`, i, i%1000, i%900, env.String())
}

// costStatus is the patch by which a kubelet reports that the Pod runs.
func costStatus(i int) []byte {
	const at = "2026-02-03T04:05:06Z"
	var conditions, containers []string
	for _, name := range []string{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		conditions = append(conditions, fmt.Sprintf(`{"type":%q,"status":"True","lastTransitionTime":%q}`, name, at))
	}
	for _, name := range []string{"main", "proxy"} {
		containers = append(containers, fmt.Sprintf(`{"name":%q,"image":"registry.example.com/%[1]s","imageID":"registry.example.com/%[1]s@sha256:%064[2]x",
"containerID":"containerd://%064[2]x","ready":true,"started":true,"restartCount":0,"state":{"running":{"startedAt":%[3]q}}}`, name, i, at))
	}
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	return fmt.Appendf(nil, `{"status":{"phase":"Running","startTime":%q,"podIP":%q,"podIPs":[{"ip":%[2]q}],"hostIP":"192.168.0.1","hostIPs":[{"ip":"192.168.0.1"}],
"conditions":[%s],"containerStatuses":[%s]}}`, at, ip, strings.Join(conditions, ","), strings.Join(containers, ","))
}
