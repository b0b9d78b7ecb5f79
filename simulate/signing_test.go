// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import "testing"

func TestServer_ApprovalDecidesAboutARequest_S10(t *testing.T) {
	const approved = `{"type":"Approved","status":"True","reason":"r","message":"m"}`
	converse(t,
		request{"POST csr", `{"metadata":{"name":"r"},"spec":{"request":"` + pemRequest + `","signerName":"x.example.com/y","usages":["client auth"],"username":"forged","groups":["forged"],"uid":"forged"},"status":{"conditions":[` + approved + `]}}`, 201,
			`"username":"simulated" system:masters !forged !Approved`},
		request{"PATCH csr/r merge", `{"spec":{"username":"forged"},"status":{"conditions":[` + approved + `]}}`, 200, `!forged !Approved`},
		request{"PATCH csr/r/status merge", `{"spec":{"username":"forged"},"status":{"certificate":"` + pemCertificate + `","conditions":[{"type":"Failed","status":"True"}]}}`, 200, `"type":"Failed" "certificate": !forged`},
		request{"PATCH csr/r/approval merge", `{"spec":{"username":"forged"},"status":{"certificate":"","conditions":[{"type":"Failed","status":"True"},` + approved + `]}}`, 200,
			`"type":"Approved" "lastTransitionTime":"2000-01-01T00: "lastUpdateTime":"2000-01-01T00: "certificate": !forged !null`},
		request{"PATCH csr/r/status merge", `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"another"}]}}`, 200, `"type":"Approved" "reason":"r" !another`},
	)
}

// A request and a certificate in PEM, in base64.
const (
	pemRequest     = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXhNQmNqQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCTnNHRkk5MkN4eWVvRGZVV25aMERuNnViRXhNcU9rRUxZZ2o5QXVIRFVXK24yeWdIVzZWTGdJUEJOQ3B4RUxECllUMlQzaGpSSERSc29Mc3g1aVMwQ2FxZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpQnl1QWVSVVF2K3phSHUKS05QY1ZwSEFvb3BGYUVpcU5UOHNtM0RJMDZJaHhnSWhBTnEzMW9hK2tXbU1xODVuaWV2UllwYXlxOEQzdTkzZwppUVUvSHNwT3pDSEMKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="
	pemCertificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUJCakNCcmFBREFnRUNBZ0VCTUFvR0NDcUdTTTQ5QkFNQ01Bd3hDakFJQmdOVkJBTVRBWEl3SUJjTk1EQXcKTVRBeE1EQXdNREF3V2hnUE1qRXdNREF4TURFd01EQXdNREJhTUF3eENqQUlCZ05WQkFNVEFYSXdXVEFUQmdjcQpoa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVRiQmhTUGRnc2NucUEzMUZwMmRBNStybXhNVEtqcEJDMklJL1FMCmh3MUZ2cDlzb0IxdWxTNENEd1RRcWNSQ3cyRTlrOTRZMFJ3MGJLQzdNZVlrdEFtcU1Bb0dDQ3FHU000OUJBTUMKQTBnQU1FVUNJQXlVOWNCVVZnRGQxS096RWJheW5MZkNhQWxQRmNOalhYcVg1d1RZbWlQa0FpRUF0UzNtbTFibQpvWUltOUNSRUZDKy9lTmVRS1daK05NVTRZenRRZFhrTmNmbz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo="
)
