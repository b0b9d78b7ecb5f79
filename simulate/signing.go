// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// A CertificateSigningRequest says who asks, which the server knows, and what
// has been decided, which has a subresource of its own.

const signingRequests = "certificatesigningrequests.certificates.k8s.io"

// fillSigned leaves of a request that is written again what the subresource can
// change: nothing without one, the conditions with approval, and with status all
// of the status but whether the request is approved or denied. Conditions get
// the times that they lack.
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

// keepConditions takes back changes to the conditions of a type, unless there
// are more or fewer of them than before.
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

// dateConditions says when conditions were written, and since when they have
// held, where their writer has not.
func dateConditions(conditions, before []certificatesv1.CertificateSigningRequestCondition) {
	for i := range conditions {
		c := &conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = jsonvalue.Now()
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = jsonvalue.Now()
		same := func(was certificatesv1.CertificateSigningRequestCondition) bool {
			return was.Type == c.Type && was.Status == c.Status && !was.LastTransitionTime.IsZero()
		}
		if n := slices.IndexFunc(before, same); n >= 0 {
			c.LastTransitionTime = before[n].LastTransitionTime
		}
	}
}
