// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// A CertificateSigningRequest has the user who asks, which the server sets, and a decision,
// which has a subresource of its own.

const signingRequests = "certificatesigningrequests.certificates.k8s.io"

// fillSigned keeps of an updated request only what the subresource can change: nothing
// without one, the conditions with approval, and with status all of the status except
// whether the request is approved or denied. Conditions get the times that they lack.
func fillSigned(subresource string, old, obj *object.Object) error {
	before, err := object.TypedOf[certificatesv1.CertificateSigningRequest](old)
	if err != nil {
		return err
	}
	request, err := object.TypedOf[certificatesv1.CertificateSigningRequest](obj)
	if err != nil {
		return err
	}
	conditions := request.Status.Conditions
	request.Spec = before.Spec
	switch subresource {
	case "status":
		for _, decided := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied} {
			keepConditions(conditions, before.Status.Conditions, decided)
		}
	case "approval":
		request.Status = before.Status
	default:
		request.Status = before.Status
		return object.Retype(obj, request)
	}
	dateConditions(conditions, before.Status.Conditions)
	request.Status.Conditions = conditions
	return object.Retype(obj, request)
}

// keepConditions restores the conditions of a type, unless their number has changed.
func keepConditions(conditions, before []certificatesv1.CertificateSigningRequestCondition, of certificatesv1.RequestConditionType) {
	at := func(list []certificatesv1.CertificateSigningRequestCondition) (out []int) {
		for i, c := range list {
			if c.Type == of {
				out = append(out, i)
			}
		}
		return out
	}
	is, was := at(conditions), at(before)
	if len(is) != len(was) {
		return
	}
	for i := range is {
		conditions[is[i]] = before[was[i]]
	}
}

// dateConditions sets the times of conditions that their writer has not set.
func dateConditions(conditions, before []certificatesv1.CertificateSigningRequestCondition) {
	for i := range conditions {
		c := &conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = object.Now()
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = object.Now()
		same := func(was certificatesv1.CertificateSigningRequestCondition) bool {
			return was.Type == c.Type && was.Status == c.Status && !was.LastTransitionTime.IsZero()
		}
		if n := slices.IndexFunc(before, same); n >= 0 {
			c.LastTransitionTime = before[n].LastTransitionTime
		}
	}
}
