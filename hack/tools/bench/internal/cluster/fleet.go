// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FleetVersion is the group and version of custom resources in three sizes: a Certificate of about
// 1.5 kB of JSON, a Database of 8 kB and a Workflow of 60 kB.
var FleetVersion = schema.GroupVersion{Group: "fleet.example.com", Version: "v1"}

// AddFleetToScheme registers the kinds.
func AddFleetToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(FleetVersion, &Certificate{}, &CertificateList{}, &Database{}, &DatabaseList{}, &Workflow{}, &WorkflowList{})
	metav1.AddToGroupVersion(s, FleetVersion)
	return nil
}

// Certificate is the small kind.
type Certificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CertificateSpec   `json:"spec"`
	Status            CertificateStatus `json:"status,omitempty"`
}

type CertificateSpec struct {
	SecretName  string          `json:"secretName"`
	IssuerRef   IssuerReference `json:"issuerRef"`
	CommonName  string          `json:"commonName,omitempty"`
	DNSNames    []string        `json:"dnsNames,omitempty"`
	Duration    metav1.Duration `json:"duration,omitempty"`
	RenewBefore metav1.Duration `json:"renewBefore,omitempty"`
	PrivateKey  *PrivateKey     `json:"privateKey,omitempty"`
	Usages      []string        `json:"usages,omitempty"`
}

type IssuerReference struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Name  string `json:"name"`
}

type PrivateKey struct {
	Algorithm      string `json:"algorithm,omitempty"`
	Size           int    `json:"size,omitempty"`
	RotationPolicy string `json:"rotationPolicy,omitempty"`
}

type CertificateStatus struct {
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
	NotBefore   *metav1.Time       `json:"notBefore,omitempty"`
	NotAfter    *metav1.Time       `json:"notAfter,omitempty"`
	RenewalTime *metav1.Time       `json:"renewalTime,omitempty"`
	Revision    int                `json:"revision,omitempty"`
}

// Database is the medium kind.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              DatabaseSpec   `json:"spec"`
	Status            DatabaseStatus `json:"status,omitempty"`
}

type DatabaseSpec struct {
	Instances   int32                       `json:"instances"`
	Image       string                      `json:"image"`
	Storage     DatabaseStorage             `json:"storage"`
	Resources   corev1.ResourceRequirements `json:"resources,omitempty"`
	Parameters  map[string]string           `json:"parameters,omitempty"`
	Roles       []DatabaseRole              `json:"roles,omitempty"`
	Backup      *DatabaseBackup             `json:"backup,omitempty"`
	Monitoring  DatabaseMonitoring          `json:"monitoring,omitempty"`
	Tolerations []corev1.Toleration         `json:"tolerations,omitempty"`
}

type DatabaseStorage struct {
	ClassName string            `json:"className,omitempty"`
	Size      resource.Quantity `json:"size"`
	WALSize   resource.Quantity `json:"walSize,omitempty"`
}

type DatabaseRole struct {
	Name            string                       `json:"name"`
	Comment         string                       `json:"comment,omitempty"`
	Login           bool                         `json:"login,omitempty"`
	ConnectionLimit int32                        `json:"connectionLimit,omitempty"`
	InRoles         []string                     `json:"inRoles,omitempty"`
	PasswordSecret  *corev1.LocalObjectReference `json:"passwordSecret,omitempty"`
}

type DatabaseBackup struct {
	Schedule        string                    `json:"schedule"`
	RetentionPolicy string                    `json:"retentionPolicy,omitempty"`
	DestinationPath string                    `json:"destinationPath"`
	AccessKey       *corev1.SecretKeySelector `json:"accessKey,omitempty"`
	SecretKey       *corev1.SecretKeySelector `json:"secretKey,omitempty"`
}

type DatabaseMonitoring struct {
	Enabled bool            `json:"enabled,omitempty"`
	Queries []DatabaseQuery `json:"queries,omitempty"`
}

type DatabaseQuery struct {
	Name    string            `json:"name"`
	Query   string            `json:"query"`
	Metrics map[string]string `json:"metrics,omitempty"`
}

type DatabaseStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	CurrentPrimary     string             `json:"currentPrimary,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	Instances          []DatabaseInstance `json:"instances,omitempty"`
	CertificateExpiry  map[string]string  `json:"certificateExpiry,omitempty"`
	LastBackup         *metav1.Time       `json:"lastBackup,omitempty"`
}

type DatabaseInstance struct {
	Name           string      `json:"name"`
	UID            string      `json:"uid"`
	Node           string      `json:"node"`
	Address        string      `json:"address"`
	Role           string      `json:"role"`
	Timeline       int32       `json:"timeline"`
	LSN            string      `json:"lsn"`
	LagBytes       int64       `json:"lagBytes,omitempty"`
	Ready          bool        `json:"ready"`
	LastTransition metav1.Time `json:"lastTransition,omitempty"`
}

// Workflow is the large kind, with long texts.
type Workflow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WorkflowSpec   `json:"spec"`
	Status            WorkflowStatus `json:"status,omitempty"`
}

type WorkflowSpec struct {
	Entrypoint string             `json:"entrypoint"`
	Arguments  []Parameter        `json:"arguments,omitempty"`
	Templates  []WorkflowTemplate `json:"templates"`
}

type Parameter struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
}

type WorkflowTemplate struct {
	Name      string                      `json:"name"`
	Inputs    []Parameter                 `json:"inputs,omitempty"`
	Image     string                      `json:"image"`
	Command   []string                    `json:"command,omitempty"`
	Source    string                      `json:"source"`
	Env       []corev1.EnvVar             `json:"env,omitempty"`
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	Retries   *int32                      `json:"retries,omitempty"`
}

type WorkflowStatus struct {
	Phase      string                  `json:"phase,omitempty"`
	StartedAt  *metav1.Time            `json:"startedAt,omitempty"`
	FinishedAt *metav1.Time            `json:"finishedAt,omitempty"`
	Conditions []metav1.Condition      `json:"conditions,omitempty"`
	Nodes      map[string]WorkflowNode `json:"nodes,omitempty"`
}

type WorkflowNode struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	DisplayName string           `json:"displayName"`
	Type        string           `json:"type"`
	Template    string           `json:"template,omitempty"`
	Phase       string           `json:"phase"`
	Message     string           `json:"message,omitempty"`
	StartedAt   metav1.Time      `json:"startedAt,omitempty"`
	FinishedAt  metav1.Time      `json:"finishedAt,omitempty"`
	Host        string           `json:"host,omitempty"`
	Inputs      []Parameter      `json:"inputs,omitempty"`
	Outputs     []Parameter      `json:"outputs,omitempty"`
	Children    []string         `json:"children,omitempty"`
	Resources   map[string]int64 `json:"resources,omitempty"`
}

// CertificateList is a list of Certificates.
type CertificateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Certificate `json:"items"`
}

// DatabaseList is a list of Databases.
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}

// WorkflowList is a list of Workflows.
type WorkflowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workflow `json:"items"`
}
