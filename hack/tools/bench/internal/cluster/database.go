// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func newDatabase(d draw, meta metav1.ObjectMeta) *Database {
	db := &Database{ObjectMeta: meta}
	db.Spec = DatabaseSpec{
		Instances: 3, Image: "registry.example.com/database/postgres:" + version(d),
		Storage: DatabaseStorage{
			ClassName: "fast", Size: resource.MustParse(fmt.Sprintf("%dGi", d.between(1, 900))), WALSize: resource.MustParse(fmt.Sprintf("%dGi", d.between(1, 50))),
		},
		Resources:  resources(d),
		Parameters: map[string]string{},
		Backup: &DatabaseBackup{
			Schedule: fmt.Sprintf("0 %d %d * * *", d.IntN(60), d.IntN(24)), RetentionPolicy: "30d", DestinationPath: "s3://backups-" + meta.Namespace + "/" + meta.Name,
			AccessKey: secretKey(meta.Name+"-backup", "ACCESS_KEY_ID"), SecretKey: secretKey(meta.Name+"-backup", "SECRET_ACCESS_KEY"),
		},
		Tolerations: []corev1.Toleration{{Key: "node.example.com/pool", Operator: corev1.TolerationOpEqual, Value: "databases", Effect: corev1.TaintEffectNoSchedule}},
	}
	for _, n := range d.Perm(len(words))[:40] {
		db.Spec.Parameters[words[n]+"_"+pick(d, []string{"size", "timeout", "workers", "threshold"})] = fmt.Sprint(d.IntN(100_000))
	}
	for _, n := range d.Perm(len(words))[:7] {
		db.Spec.Roles = append(db.Spec.Roles, DatabaseRole{
			Name: words[n], Comment: sentence(d, 6), Login: true, ConnectionLimit: int32(d.between(5, 200)), InRoles: []string{"readers", d.word()},
			PasswordSecret: &corev1.LocalObjectReference{Name: meta.Name + "-role-" + words[n]},
		})
	}
	db.Spec.Monitoring.Enabled = true
	for _, n := range d.Perm(len(words))[:9] {
		db.Spec.Monitoring.Queries = append(db.Spec.Monitoring.Queries, DatabaseQuery{
			Name: words[n], Query: "SELECT " + d.word() + ", count(*) AS total, max(updated_at) AS newest FROM " + words[n] + " WHERE state = '" + d.word() + "' GROUP BY 1",
			Metrics: map[string]string{"total": "GAUGE " + sentence(d, 7), "newest": "COUNTER " + sentence(d, 7)},
		})
	}
	db.Status = databaseStatus(d, &meta)
	return db
}

func databaseStatus(d draw, meta *metav1.ObjectMeta) DatabaseStatus {
	s := DatabaseStatus{
		ObservedGeneration: meta.Generation, Phase: "Cluster in healthy state", CurrentPrimary: meta.Name + "-1",
		LastBackup: of(after(began, int64(d.IntN(30*24*3600)))), CertificateExpiry: map[string]string{},
		Conditions: []metav1.Condition{
			customCondition(d, "Ready", "ClusterIsReady", "Cluster is ready", meta),
			customCondition(d, "ContinuousArchiving", "ContinuousArchivingSuccess", "Continuous archiving is working", meta),
			customCondition(d, "LastBackupSucceeded", "LastBackupSucceeded", "Backup was successful", meta),
		},
	}
	for n := range 3 {
		ip := hostIP(d.IntN(3000))
		s.Instances = append(s.Instances, DatabaseInstance{
			Name: fmt.Sprintf("%s-%d", meta.Name, n+1), UID: string(d.uid()), Node: fmt.Sprintf("ip-172-%d-%d-%d.ec2.internal", ip[1], ip[2], ip[3]),
			Address: podIP(d.IntN(1 << 20)), Role: pick(d, []string{"primary", "replica"}), Timeline: int32(d.between(1, 9)),
			LSN: fmt.Sprintf("%X/%X", d.IntN(4096), d.Uint32()), LagBytes: int64(d.IntN(100_000)), Ready: true, LastTransition: after(began, int64(d.IntN(30*24*3600))),
		})
	}
	for _, of := range []string{"ca", "replication", "server"} {
		s.CertificateExpiry[meta.Name+"-"+of] = after(began, int64(d.IntN(90*24*3600))).UTC().Format(time.RFC3339)
	}
	return s
}

func secretKey(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}
