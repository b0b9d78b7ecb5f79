// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// configMaps is a server of ConfigMaps that refuses requests until it is told to allow
// them.
type configMaps struct {
	mu      sync.Mutex
	allowed bool
	refusal error // nil: forbidden
	items   []*corev1.ConfigMap
	expired int // next watches that begin too far back
}

func (s *configMaps) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = true
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "7"}}
}

func (s *configMaps) List(context.Context, listwatch.ListOptions) (listwatch.Page[*corev1.ConfigMap], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.allowed && s.refusal != nil {
		return listwatch.Page[*corev1.ConfigMap]{}, s.refusal
	}
	if !s.allowed {
		return listwatch.Page[*corev1.ConfigMap]{}, apierrors.NewForbidden(
			schema.GroupResource{Resource: "configmaps"}, "", errors.New(`User "robot" cannot list configmaps at the cluster scope`))
	}
	page := listwatch.Page[*corev1.ConfigMap]{ResourceVersion: "7"}
	for _, obj := range s.items {
		page.Items = append(page.Items, listwatch.Item[*corev1.ConfigMap]{
			Key: kube.KeyOf(obj), UID: obj.UID, ResourceVersion: obj.ResourceVersion, Object: obj,
		})
	}
	return page, nil
}

func (s *configMaps) Watch(ctx context.Context, _ listwatch.WatchOptions) (listwatch.Stream[*corev1.ConfigMap], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expired > 0 {
		s.expired--
		return nil, apierrors.NewResourceExpired("too old resource version: 7 (9)")
	}
	ctx, end := context.WithCancel(ctx)
	return silence{ctx: ctx, end: end}, nil
}

type silence struct {
	ctx context.Context
	end context.CancelFunc
}

func (s silence) Next() (listwatch.Frame[*corev1.ConfigMap], error) {
	<-s.ctx.Done()
	return listwatch.Frame[*corev1.ConfigMap]{}, s.ctx.Err()
}

func (s silence) Close() error {
	s.end()
	return nil
}
