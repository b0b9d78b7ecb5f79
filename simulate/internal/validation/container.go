// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// containerScope is what a container of a Pod may refer to.
type containerScope struct {
	volumes map[string]*corev1.VolumeSource // those without a fault
	grace   int64
	users   bool // the node's
	names   sets.Set[string]
}

func validateContainers(s *corev1.PodSpec, path *field.Path) (errs field.ErrorList) {
	scope := containerScope{volumes: map[string]*corev1.VolumeSource{}, names: sets.New[string](), users: s.HostUsers == nil || *s.HostUsers}
	if s.TerminationGracePeriodSeconds != nil {
		scope.grace = *s.TerminationGracePeriodSeconds
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		wrong := validateVolume(v, path.Child("volumes").Index(i))
		if scope.volumes[v.Name] != nil {
			wrong = append(wrong, field.Duplicate(path.Child("volumes").Index(i).Child("name"), v.Name))
		} else if len(wrong) == 0 {
			scope.volumes[v.Name] = &v.VolumeSource
		}
		errs = append(errs, wrong...)
	}
	if len(s.Containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	hostPorts := sets.New[string]()
	for i := range s.Containers {
		c, at := &s.Containers[i], path.Child("containers").Index(i)
		errs = append(errs, scope.container(c, at)...)
		errs = append(errs, scope.running(c, at)...)
		errs = append(errs, supportedIf(c.RestartPolicy, at.Child("restartPolicy"), corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
		errs = append(errs, validateHostPorts(c, hostPorts, at.Child("ports"))...)
	}
	for i := range s.InitContainers {
		errs = append(errs, scope.initContainer(&s.InitContainers[i], path.Child("initContainers").Index(i))...)
	}
	return errs
}

// initContainer is a container that runs before the others; one that restarts
// may have what runs beside them.
func (s *containerScope) initContainer(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	errs = s.container(c, path)
	errs = append(errs, validateHostPorts(c, sets.New[string](), path.Child("ports"))...)
	if c.RestartPolicy != nil {
		errs = append(errs, supported(*c.RestartPolicy, path.Child("restartPolicy"), corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever, corev1.ContainerRestartPolicyOnFailure)...)
		if *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return append(errs, s.running(c, path)...)
		}
	}
	for _, each := range []struct {
		name string
		set  bool
	}{{"lifecycle", c.Lifecycle != nil}, {"livenessProbe", c.LivenessProbe != nil}, {"readinessProbe", c.ReadinessProbe != nil}, {"startupProbe", c.StartupProbe != nil}} {
		if each.set {
			errs = append(errs, field.Forbidden(path.Child(each.name), "may not be set for init containers without restartPolicy=Always"))
		}
	}
	return errs
}

// container is what all containers have.
func (s *containerScope) container(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	errs = labelName(c.Name, path.Child("name"))
	if s.names.Has(c.Name) && c.Name != "" {
		errs = append(errs, field.Duplicate(path.Child("name"), c.Name))
	}
	s.names.Insert(c.Name)
	switch {
	case c.Image == "":
		errs = append(errs, field.Required(path.Child("image"), ""))
	case strings.TrimSpace(c.Image) != c.Image:
		errs = append(errs, field.Invalid(path.Child("image"), c.Image, "must not have leading or trailing whitespace"))
	}
	errs = append(errs, supported(c.TerminationMessagePolicy, path.Child("terminationMessagePolicy"), corev1.TerminationMessageReadFile, corev1.TerminationMessageFallbackToLogsOnError)...)
	errs = append(errs, supported(c.ImagePullPolicy, path.Child("imagePullPolicy"), corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)...)
	errs = append(errs, validatePorts(c.Ports, path.Child("ports"))...)
	errs = append(errs, validateEnv(c.Env, path.Child("env"))...)
	errs = append(errs, validateEnvFrom(c.EnvFrom, path.Child("envFrom"))...)
	errs = append(errs, s.mounts(c, path.Child("volumeMounts"))...)
	errs = append(errs, s.devices(c, path.Child("volumeDevices"))...)
	errs = append(errs, validateResources(&c.Resources, path.Child("resources"))...)
	return append(errs, validateContainerSecurity(c.SecurityContext, s.users, path.Child("securityContext"))...)
}

// running is what containers have that run for as long as the Pod.
func (s *containerScope) running(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	if c.Lifecycle != nil {
		for name, h := range map[string]*corev1.LifecycleHandler{"postStart": c.Lifecycle.PostStart, "preStop": c.Lifecycle.PreStop} {
			if h != nil {
				errs = append(errs, probeAction{h.Exec, h.HTTPGet, h.TCPSocket, nil, h.Sleep}.validate(s.grace, path.Child("lifecycle", name))...)
			}
		}
	}
	errs = append(errs, validateProbe(c.LivenessProbe, "must be 1", "", path.Child("livenessProbe"))...)
	errs = append(errs, validateProbe(c.ReadinessProbe, "", "must not be set for readinessProbes", path.Child("readinessProbe"))...)
	return append(errs, validateProbe(c.StartupProbe, "must be 1", "", path.Child("startupProbe"))...)
}

func validatePorts(ports []corev1.ContainerPort, path *field.Path) (errs field.ErrorList) {
	names := sets.New[string]()
	for i, p := range ports {
		at := path.Index(i)
		if p.Name != "" {
			problems := utilvalidation.IsValidPortName(p.Name)
			errs = append(errs, invalids(at.Child("name"), p.Name, problems)...)
			if len(problems) == 0 && names.Has(p.Name) {
				errs = append(errs, field.Duplicate(at.Child("name"), p.Name))
			}
			names.Insert(p.Name)
		}
		if p.ContainerPort == 0 {
			errs = append(errs, field.Required(at.Child("containerPort"), ""))
		} else {
			errs = append(errs, portNumber(p.ContainerPort, at.Child("containerPort"))...)
		}
		if p.HostPort != 0 {
			errs = append(errs, portNumber(p.HostPort, at.Child("hostPort"))...)
		}
		errs = append(errs, supported(p.Protocol, at.Child("protocol"), corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP)...)
	}
	return errs
}

func validateHostPorts(c *corev1.Container, taken sets.Set[string], path *field.Path) (errs field.ErrorList) {
	for i, p := range c.Ports {
		if p.HostPort == 0 {
			continue
		}
		port := fmt.Sprintf("%s/%s/%d", p.Protocol, p.HostIP, p.HostPort)
		if taken.Has(port) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("hostPort"), port))
		}
		taken.Insert(port)
	}
	return errs
}

func (s *containerScope) mounts(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	at := sets.New[string]()
	for i, m := range c.VolumeMounts {
		each := path.Index(i)
		errs = append(errs, required(each, "name", m.Name)...)
		if s.volumes[m.Name] == nil {
			errs = append(errs, field.NotFound(each.Child("name"), m.Name))
		}
		errs = append(errs, required(each, "mountPath", m.MountPath)...)
		if at.Has(m.MountPath) {
			errs = append(errs, field.Invalid(each.Child("mountPath"), m.MountPath, "must be unique"))
		}
		at.Insert(m.MountPath)
		if slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.Name == m.Name }) {
			errs = append(errs, field.Invalid(each.Child("name"), m.Name, "must not already exist in volumeDevices"))
		}
		if slices.ContainsFunc(c.VolumeDevices, func(d corev1.VolumeDevice) bool { return d.DevicePath == m.MountPath }) {
			errs = append(errs, field.Invalid(each.Child("mountPath"), m.MountPath, "must not already exist as a path in volumeDevices"))
		}
		// The real server leaves the number out of these paths.
		errs = append(errs, insidePath(m.SubPath, path.Child("subPath"))...)
		if m.SubPathExpr != "" && m.SubPath != "" {
			errs = append(errs, field.Invalid(each.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, insidePath(m.SubPathExpr, path.Child("subPathExpr"))...)
		errs = append(errs, validatePropagation(c, m.MountPropagation, path.Child("mountPropagation"))...)
		if r := m.RecursiveReadOnly; r != nil {
			wrong := supported(*r, path.Child("recursiveReadOnly"), corev1.RecursiveReadOnlyDisabled, corev1.RecursiveReadOnlyIfPossible, corev1.RecursiveReadOnlyEnabled)
			if len(wrong) == 0 && *r != corev1.RecursiveReadOnlyDisabled && !m.ReadOnly {
				wrong = field.ErrorList{field.Forbidden(path.Child("recursiveReadOnly"), "may only be specified when readOnly is true")}
			}
			errs = append(errs, wrong...)
		}
	}
	return errs
}

func validatePropagation(c *corev1.Container, mode *corev1.MountPropagationMode, path *field.Path) field.ErrorList {
	if mode == nil {
		return nil
	}
	privileged := c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	if *mode == corev1.MountPropagationBidirectional && !privileged {
		return field.ErrorList{field.Forbidden(path, "Bidirectional mount propagation is available only to privileged containers")}
	}
	return supported(*mode, path, corev1.MountPropagationBidirectional, corev1.MountPropagationHostToContainer, corev1.MountPropagationNone)
}

func (s *containerScope) devices(c *corev1.Container, path *field.Path) (errs field.ErrorList) {
	names := sets.New[string]()
	for i, d := range c.VolumeDevices {
		at := path.Index(i)
		errs = append(errs, required(at, "name", d.Name)...)
		if names.Has(d.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must be unique"))
		}
		names.Insert(d.Name)
		switch source := s.volumes[d.Name]; {
		case source == nil:
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		case source.PersistentVolumeClaim == nil && source.Ephemeral == nil:
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		errs = append(errs, required(at, "devicePath", d.DevicePath)...)
		errs = append(errs, climbing(d.DevicePath, at.Child("devicePath"))...)
		if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == d.Name }) {
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "must not already exist in volumeMounts"))
		}
	}
	return errs
}
