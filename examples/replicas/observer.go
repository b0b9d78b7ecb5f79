// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/testing/sharehistory"
	"github.com/flyball-dev/flyball/kube"
)

// observer knows who holds which shard, and records each write. It sees what the server shows,
// and asks no process.
type observer struct {
	*informer.SharedInformerFactory
	configMaps *informer.SharedInformer[*corev1.ConfigMap]
	history    sharehistory.History

	mu struct {
		sync.Mutex
		holders map[int]string // by shard; empty: nobody
	}
}

func observe(cfg *rest.Config, scheme *runtime.Scheme) (*observer, error) {
	factory, err := informer.NewSharedInformerFactory(cfg, scheme, informer.Options{Namespaces: []string{namespace}})
	if err != nil {
		return nil, err
	}
	o := &observer{SharedInformerFactory: factory, configMaps: informer.For[*corev1.ConfigMap](factory)}
	o.history.ID, o.history.Count = operatorID, shardCount
	o.mu.holders = map[int]string{}
	leases := informer.For[*coordinationv1.Lease](factory)
	if _, err := leases.AddHandler(o.lease, informer.HandlerOptions{}); err != nil {
		return nil, err
	}
	_, err = o.configMaps.AddHandler(o.object, informer.HandlerOptions{})
	return o, err
}

// lease records the holder of a shard.
func (o *observer) lease(e kube.Event[*coordinationv1.Lease]) {
	if e.New == nil {
		return
	}
	identity := ""
	if holder := e.New.Spec.HolderIdentity; holder != nil {
		identity = *holder
	}
	o.history.Lease(e.New.Name, identity, kube.ParseVersion(e.New.ResourceVersion))
	shard, isShard := shardOf(e.New.Name)
	if !isShard {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.holders[shard] = replicaOf(identity)
}

// shardOf returns the shard of a Lease. Others are those of the plan and of the processes.
func shardOf(lease string) (shard int, ok bool) {
	n, err := fmt.Sscanf(strings.TrimPrefix(lease, operatorID+"-shard-")+"\n", "%d\n", &shard)
	return shard, n == 1 && err == nil
}

// replicaOf returns the name of the process with an identity, which has the operator's name
// before it and a random end.
func replicaOf(identity string) string {
	name := strings.TrimPrefix(identity, operatorID+"-")
	return name[:max(strings.LastIndex(name, "-"), 0)]
}

// object records a write of a process.
func (o *observer) object(e kube.Event[*corev1.ConfigMap]) {
	if e.Old == nil || e.New == nil || signed(e.Old) == signed(e.New) {
		return
	}
	o.history.Write(string(e.New.UID), e.New.Annotations[seenBy], e.New.Name, kube.ParseVersion(e.New.ResourceVersion))
}

func signed(configMap *corev1.ConfigMap) string {
	return configMap.Annotations[seenBy] + " " + configMap.Annotations[seenValue]
}

// holding is what a process holds.
type holding struct {
	shards  []int
	objects int
}

// holdings returns what each process holds, and how many objects wait to be seen by the process
// that holds them.
func (o *observer) holdings() (by map[string]holding, waiting int) {
	o.mu.Lock()
	holders := maps.Clone(o.mu.holders)
	o.mu.Unlock()
	by = map[string]holding{}
	for shard := range shardCount {
		name := holders[shard]
		h := by[name]
		h.shards = append(h.shards, shard)
		by[name] = h
	}
	for configMap := range o.configMaps.Lister().All() {
		value, isOurs := configMap.Data["value"]
		if !isOurs {
			continue
		}
		name := holders[shards.Of(string(configMap.UID), shardCount)]
		h := by[name]
		h.objects++
		by[name] = h
		if name == "" || configMap.Annotations[seenBy] != name || configMap.Annotations[seenValue] != value {
			waiting++
		}
	}
	return by, waiting
}

// moved returns the shards whose holder differs, by the process that has them now.
func moved(before, now map[string]holding) map[string][]int {
	out := map[string][]int{}
	for name, h := range now {
		for _, shard := range h.shards {
			if !slices.Contains(before[name].shards, shard) {
				out[name] = append(out[name], shard)
			}
		}
	}
	return out
}
