// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/ownership"
	"github.com/flyball-dev/flyball/simulate/internal/store"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// ownService is the Service by which Pods reach the API server. The server creates it at
// each start if it is missing.
var ownService = types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// installService creates it if it is missing. It is part of the present revision, so
// watches do not receive it.
func installService(tx *store.Tx) {
	services := schema.GroupResource{Resource: "services"}
	if tx.Get(services, ownService) == nil {
		tx.Install(services, serviceOfServer())
	}
}

func serviceOfServer() *object.Object {
	address := write.ServerAddress()
	return &object.Object{Fields: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{
			"namespace": ownService.Namespace, "name": ownService.Name,
			"uid": firstUID(ownService.String()), "creationTimestamp": ownership.EntryTime(time.Now()),
			"labels": map[string]any{"component": "apiserver", "provider": "kubernetes"},
		},
		"spec": map[string]any{
			"type": string(corev1.ServiceTypeClusterIP), "clusterIP": address, "clusterIPs": []any{address},
			"ipFamilies": []any{string(corev1.IPv4Protocol)}, "ipFamilyPolicy": string(corev1.IPFamilyPolicySingleStack),
			"internalTrafficPolicy": string(corev1.ServiceInternalTrafficPolicyCluster), "sessionAffinity": string(corev1.ServiceAffinityNone),
			"ports": []any{map[string]any{"name": "https", "protocol": string(corev1.ProtocolTCP), "port": int64(443), "targetPort": int64(6443)}},
		},
		"status": map[string]any{"loadBalancer": map[string]any{}},
	}}
}

// installRoles stores the default roles.
func installRoles(tx *store.Tx, served *kinds.Registry, writes *write.Path) {
	for _, obj := range access.DefaultRoles() {
		_, err := writes.Direct(tx).Create(served.Kind(obj.Meta().GroupVersionKind()), obj.Copy())
		utilruntime.Must(err)
	}
}
