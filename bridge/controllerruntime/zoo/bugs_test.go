// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import "github.com/flyball-dev/flyball/simulate/doctor"

// bug is one published bug, or one of a published kind.
type bug struct {
	id      string         // operator and issue
	fields  string         // of the spec that the operator has, besides replicas
	pattern doctor.Pattern // as it was published
	plant   plant
	classes []doctor.Class // of which it may be found as one
}

var (
	lost      = []doctor.Class{doctor.LosesState, doctor.OtherEnd}
	again     = []doctor.Class{doctor.LosesState, doctor.MadeAnew, doctor.TooMany, doctor.OtherEnd}
	otherEnd  = []doctor.Class{doctor.OtherEnd, doctor.TooMany}
	declared  = []doctor.Class{doctor.NotUndone, doctor.PathDependent}
	panicking = []doctor.Class{doctor.Panicked}
	restless  = []doctor.Class{doctor.Restless, doctor.NotUndone, doctor.PathDependent, doctor.Violates}
)

func deletes(part string) plant         { return plant{how: unguarded, of: part} }
func only(second, first string) plant   { return plant{madeOnlyWith, second, first} }
func does(how string) plant             { return plant{how: how} }
func field(how string, of string) plant { return plant{how: how, of: of} }

// direct are bugs that Sieve has found.
var direct = []bug{
	{"cass-operator K8SSAND-559", "storage", doctor.Stale, does(claimsByLabel), lost},
	{"instaclustr/cassandra-operator 402", "storage", doctor.Stale, does(claimsByName), lost},
	{"casskop 316", "storage", doctor.Stale, does(claimsByList), lost},
	{"zookeeper-operator 312", "storage", doctor.Stale, does(claimsByList), lost},
	{"mongodb-operator K8SPSMDB-430", "storage", doctor.Stale, does(claimsByName), lost},
	{"xtradb-operator K8SPXC-716", "storage", doctor.Stale, does(claimsByLabel), lost},
	{"instaclustr/cassandra-operator 407", "storage", doctor.Stale, does(volumesByName), lost},
	{"zookeeper-operator 314", "storage", doctor.Stale, does(volumesByList), lost},
	{"casskop 321", "maxUnavailable", doctor.Stale, deletes("budget"), again},
	{"rabbitmq-operator 648", "", doctor.Stale, deletes("StatefulSet"), again},
	{"rabbitmq-operator 653", "storage", doctor.Stale, deletes("resize"), again},
	{"mongodb-operator K8SPSMDB-433", "cfg", doctor.Stale, deletes(cfgPart), again},
	{"mongodb-operator K8SPSMDB-438", "arbiter", doctor.Stale, deletes(arbiterPart), again},
	{"xtradb-operator K8SPXC-725", "proxy", doctor.Stale, deletes(proxyPart), again},
	{"xtradb-operator K8SPXC-763", "proxy", doctor.Stale, deletes(proxyPart + " volumes"), lost},
	{"yugabyte-operator 35", "tls", doctor.Stale, deletes(tlsPart), again},
	{"yugabyte-operator 36", "uiPort", doctor.Stale, deletes(uiPart), again},
	{"eck 5249", "", doctor.Stale, deletes("soft"), again},
	{"eck 5274", "", doctor.Stale, does(replicasPatched), again},

	{"cass-operator K8SSAND-1023", "", doctor.Intermediate, only("-config", "-ssl"), otherEnd},
	{"mongodb-operator K8SPSMDB-578", "", doctor.Intermediate, only("-ssl-internal", "-ssl"), otherEnd},
	{"mongodb-operator K8SPSMDB-579", "", doctor.Intermediate, only("-budget", ""), otherEnd},
	{"xtradb-operator K8SPXC-896", "", doctor.Intermediate, only("-ssl-internal", "-ssl"), otherEnd},
	{"xtradb-operator K8SPXC-897", "", doctor.Intermediate, only("-config", "-ssl-internal"), otherEnd},
	{"rabbitmq-operator 782", "storage", doctor.Intermediate, does(resizedWithTheSet), otherEnd},
	{"casskop 370", "storage", doctor.Intermediate, does(volumesAfterStatus), otherEnd},
	{"nifikop 49", "config", doctor.Intermediate, does(restartWithConfig), otherEnd},
	{"nifikop 79", "config", doctor.Intermediate, does(restartByMemory), otherEnd},
	{"cass-operator K8SSAND-1362", "", doctor.Intermediate, field(namedInStatus, "Secret"), otherEnd},
	{"xtradb-operator K8SPXC-979", "", doctor.Intermediate, field(namedInStatus, "ConfigMap"), otherEnd},

	{"instaclustr/cassandra-operator 398", "storage", doctor.Unobserved, does(volumesOfEndingPods), otherEnd},
	{"casskop 342", "storage", doctor.Unobserved, does(volumesOfEndingPods), otherEnd},
	{"mongodb-operator K8SPSMDB-585", "storage", doctor.Unobserved, does(volumesOfShrinking), otherEnd},
	{"xtradb-operator K8SPXC-918", "storage", doctor.Unobserved, does(volumesOfShrinking), otherEnd},
	{"yugabyte-operator 39", "storage", doctor.Unobserved, does(volumesBySeen), otherEnd},
	{"zookeeper-operator 453", "storage", doctor.Unobserved, does(volumesBySeen), otherEnd},
	{"rabbitmq-operator 758", "", doctor.Unobserved, does(neverSmaller), declared},
}

// declarative are bugs of the kind that Acto finds: those with an issue have its pattern.
var declarative = []bug{
	{"cass-operator 330", "uiPort labels", doctor.Declarative, field(merged, serviceLabels), declared},
	{"cockroach-operator 927", "annotations", doctor.Declarative, field(merged, notesField), declared},
	{"tidb-operator 4942", "labels", doctor.Declarative, field(merged, labelsField), declared},
	{"nodeSelector is never removed", "nodeSelector", doctor.Declarative, field(merged, selectorField), declared},
	{"tolerations are never removed", "tolerations", doctor.Declarative, field(merged, tolerateField), declared},
	{"env is never removed", "env", doctor.Declarative, field(merged, envField), declared},
	{"config keys are never removed", "config", doctor.Declarative, field(merged, configField), declared},
	{"the image is never changed", "image", doctor.Declarative, field(kept, imageField), declared},
	{"resources are never changed", "cpu", doctor.Declarative, field(kept, cpuField), declared},
	{"nodeSelector is never changed", "nodeSelector", doctor.Declarative, field(kept, selectorField), declared},
	{"the port is never changed", "uiPort", doctor.Declarative, field(kept, portField), declared},
	{"maxUnavailable is never changed", "maxUnavailable", doctor.Declarative, field(kept, budgetField), declared},
	{"storage is never changed", "storage", doctor.Declarative, field(kept, storageField), declared},
	{"OT-CONTAINER-KIT/redis-operator 381", "backup", doctor.Declarative, field(panics, backupField), panicking},
	{"a division by a field that is absent", "backup", doctor.Declarative, field(panics, backupHours), panicking},
	{"the first of an empty list", "tolerations", doctor.Declarative, field(panics, tolerateField), panicking},
	{"mongodb-kubernetes-operator 773", "arbiter", doctor.Declarative, field(neverRemoved, arbiterPart), declared},
	{"volumes of a feature stay", "proxy", doctor.Declarative, field(neverRemoved, proxyPart+" volumes"), declared},
	{"OT-CONTAINER-KIT/redis-operator 474", "uiPort", doctor.Declarative, field(neverRemoved, uiPart), declared},
	{"replicas are never reduced", "", doctor.Declarative, does(neverSmaller), declared},
	{"storage never gets smaller", "storage", doctor.Declarative, does(neverShrunk), declared},
	{"the default does not come back", "image", doctor.Declarative, does(defaultNotBack), declared},
	{"an old error stays in the status", "", doctor.Declarative, does(errorKept), declared},
	{"an immutable field is updated", "storage", doctor.Declarative, does(immutable), restless},
}
