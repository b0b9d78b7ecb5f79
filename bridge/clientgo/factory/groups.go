// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory

import (
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/lifecycle"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
)

// The API groups. Their informers are those of flyball's factory.

func (f *sharedInformers) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(generated{f}, "", nil)
}
func (f *sharedInformers) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(generated{f}, "", nil)
}
func (f *sharedInformers) Apps() apps.Interface { return apps.New(generated{f}, "", nil) }
func (f *sharedInformers) Autoscaling() autoscaling.Interface {
	return autoscaling.New(generated{f}, "", nil)
}
func (f *sharedInformers) Batch() batch.Interface { return batch.New(generated{f}, "", nil) }
func (f *sharedInformers) Certificates() certificates.Interface {
	return certificates.New(generated{f}, "", nil)
}
func (f *sharedInformers) Coordination() coordination.Interface {
	return coordination.New(generated{f}, "", nil)
}
func (f *sharedInformers) Core() core.Interface { return core.New(generated{f}, "", nil) }
func (f *sharedInformers) Discovery() discovery.Interface {
	return discovery.New(generated{f}, "", nil)
}
func (f *sharedInformers) Events() events.Interface { return events.New(generated{f}, "", nil) }
func (f *sharedInformers) Extensions() extensions.Interface {
	return extensions.New(generated{f}, "", nil)
}
func (f *sharedInformers) Flowcontrol() flowcontrol.Interface {
	return flowcontrol.New(generated{f}, "", nil)
}
func (f *sharedInformers) Lifecycle() lifecycle.Interface {
	return lifecycle.New(generated{f}, "", nil)
}
func (f *sharedInformers) Networking() networking.Interface {
	return networking.New(generated{f}, "", nil)
}
func (f *sharedInformers) Node() node.Interface         { return node.New(generated{f}, "", nil) }
func (f *sharedInformers) Policy() policy.Interface     { return policy.New(generated{f}, "", nil) }
func (f *sharedInformers) Rbac() rbac.Interface         { return rbac.New(generated{f}, "", nil) }
func (f *sharedInformers) Resource() resource.Interface { return resource.New(generated{f}, "", nil) }
func (f *sharedInformers) Scheduling() scheduling.Interface {
	return scheduling.New(generated{f}, "", nil)
}
func (f *sharedInformers) Storage() storage.Interface { return storage.New(generated{f}, "", nil) }
func (f *sharedInformers) Storagemigration() storagemigration.Interface {
	return storagemigration.New(generated{f}, "", nil)
}
