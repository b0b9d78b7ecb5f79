// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// The rules of the Pod Security Standards, in their newest version. See
// https://kubernetes.io/docs/concepts/security/pod-security-standards/.

// rule is one rule of a standard. It returns how a Pod violates it, briefly and in
// detail, and empty strings for a Pod that does not.
type rule func(s *corev1.PodSpec) (reason, detail string)

// baseline and restricted are the rules of the two standards. The second includes those
// of the first that it does not replace by stricter ones.
var (
	baseline   = []rule{appArmor, baselineCapabilities, hostNamespaces, hostPaths, hostPorts, probeHosts, privileged, procMount, seLinux, baselineSeccomp, safeSysctls, hostProcess}
	restricted = []rule{appArmor, hostNamespaces, hostPorts, probeHosts, privileged, procMount, seLinux, safeSysctls, hostProcess,
		noEscalation, restrictedCapabilities, restrictedVolumes, runAsNonRoot, runAsRoot, restrictedSeccomp}
)

// containersOf returns all containers of a Pod, in the order in which they are checked.
func containersOf(s *corev1.PodSpec) []corev1.Container {
	all := append(slices.Clone(s.InitContainers), s.Containers...)
	for _, c := range s.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	return all
}

// which returns the names of the containers that violate a rule. Their security context
// is not nil.
func which(s *corev1.PodSpec, wrong func(c *corev1.Container) bool) (names []string) {
	for _, c := range containersOf(s) {
		if c.SecurityContext == nil {
			c.SecurityContext = &corev1.SecurityContext{}
		}
		if wrong(&c) {
			names = append(names, c.Name)
		}
	}
	return names
}

func inQuotes(names []string) string {
	var out []string
	for _, name := range names {
		out = append(out, strconv.Quote(name))
	}
	return strings.Join(out, ", ")
}

// named returns a noun, in the plural if need be, and the quoted names.
func named(noun string, names []string) string {
	if len(names) != 1 {
		noun += "s"
	}
	return noun + " " + inQuotes(names)
}

func securityOf(s *corev1.PodSpec) *corev1.PodSecurityContext {
	if s.SecurityContext == nil {
		return &corev1.PodSecurityContext{}
	}
	return s.SecurityContext
}

func isTrue(b *bool) bool { return b != nil && *b }

// setters names the Pod and the containers that set a forbidden value.
func setters(pod bool, containers []string) string {
	var out []string
	if pod {
		out = append(out, "pod")
	}
	if len(containers) > 0 {
		out = append(out, named("container", containers))
	}
	return strings.Join(out, " and ")
}

func appArmor(s *corev1.PodSpec) (reason, detail string) {
	var values []string
	wrong := func(p *corev1.AppArmorProfile) bool {
		if p == nil || p.Type == corev1.AppArmorProfileTypeRuntimeDefault || p.Type == corev1.AppArmorProfileTypeLocalhost {
			return false
		}
		if !slices.Contains(values, string(p.Type)) {
			values = append(values, string(p.Type))
		}
		return true
	}
	pod := wrong(securityOf(s).AppArmorProfile)
	containers := which(s, func(c *corev1.Container) bool { return wrong(c.SecurityContext.AppArmorProfile) })
	if len(values) == 0 {
		return "", ""
	}
	return "forbidden AppArmor profile", setters(pod, containers) + " must not set AppArmor profile type to " + inQuotes(values)
}

var plainCapabilities = []corev1.Capability{"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"}

// adding returns the containers that add capabilities which are not allowed, and these
// capabilities.
func adding(s *corev1.PodSpec, allowed []corev1.Capability) (containers, capabilities []string) {
	found := sets.New[string]()
	containers = which(s, func(c *corev1.Container) bool {
		wrong := false
		if c.SecurityContext.Capabilities != nil {
			for _, each := range c.SecurityContext.Capabilities.Add {
				if !slices.Contains(allowed, each) {
					found.Insert(string(each))
					wrong = true
				}
			}
		}
		return wrong
	})
	return containers, sets.List(found)
}

func baselineCapabilities(s *corev1.PodSpec) (reason, detail string) {
	containers, capabilities := adding(s, plainCapabilities)
	if len(containers) == 0 {
		return "", ""
	}
	return "non-default capabilities", named("container", containers) + " must not include " + inQuotes(capabilities) + " in securityContext.capabilities.add"
}

func restrictedCapabilities(s *corev1.PodSpec) (reason, detail string) {
	if windows(s) {
		return "", ""
	}
	keeping := which(s, func(c *corev1.Container) bool {
		return c.SecurityContext.Capabilities == nil || !slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL")
	})
	containers, capabilities := adding(s, []corev1.Capability{"NET_BIND_SERVICE"})
	var details []string
	if len(keeping) > 0 {
		details = append(details, named("container", keeping)+` must set securityContext.capabilities.drop=["ALL"]`)
	}
	if len(containers) > 0 {
		details = append(details, named("container", containers)+" must not include "+inQuotes(capabilities)+" in securityContext.capabilities.add")
	}
	if len(details) == 0 {
		return "", ""
	}
	return "unrestricted capabilities", strings.Join(details, "; ")
}

func windows(s *corev1.PodSpec) bool { return s.OS != nil && s.OS.Name == corev1.Windows }

func hostNamespaces(s *corev1.PodSpec) (reason, detail string) {
	var set []string
	for _, each := range []struct {
		name string
		set  bool
	}{{"hostNetwork", s.HostNetwork}, {"hostPID", s.HostPID}, {"hostIPC", s.HostIPC}} {
		if each.set {
			set = append(set, each.name+"=true")
		}
	}
	if len(set) == 0 {
		return "", ""
	}
	return "host namespaces", strings.Join(set, ", ")
}

func hostPaths(s *corev1.PodSpec) (reason, detail string) {
	var names []string
	for _, v := range s.Volumes {
		if v.HostPath != nil {
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	return "hostPath volumes", named("volume", names)
}

func hostPorts(s *corev1.PodSpec) (reason, detail string) {
	found := sets.New[string]()
	containers := which(s, func(c *corev1.Container) bool {
		wrong := false
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				found.Insert(strconv.Itoa(int(p.HostPort)))
				wrong = true
			}
		}
		return wrong
	})
	if len(containers) == 0 {
		return "", ""
	}
	return "hostPort", uses("container", containers, "hostPort", len(found)) + " " + strings.Join(sets.List(found), ", ")
}

// uses returns a sentence about what containers or volumes use. The caller appends the
// values.
func uses(noun string, names []string, what string, count int) string {
	verb := "uses"
	if len(names) != 1 {
		verb = "use"
	}
	if count != 1 {
		what += "s"
	}
	return fmt.Sprintf("%s %s %s", named(noun, names), verb, what)
}

func probeHosts(s *corev1.PodSpec) (reason, detail string) {
	found := sets.New[string]()
	containers := which(s, func(c *corev1.Container) bool {
		wrong := false
		look := func(h *corev1.HTTPGetAction, t *corev1.TCPSocketAction) {
			for _, host := range []string{hostOf(h), hostOfSocket(t)} {
				if host != "" {
					found.Insert(host)
					wrong = true
				}
			}
		}
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if p != nil {
				look(p.HTTPGet, p.TCPSocket)
			}
		}
		if c.Lifecycle != nil {
			for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
				if h != nil {
					look(h.HTTPGet, h.TCPSocket)
				}
			}
		}
		return wrong
	})
	if len(containers) == 0 {
		return "", ""
	}
	return "probe or lifecycle host", uses("container", containers, "probe or lifecycle host", len(found)) + " " + inQuotes(sets.List(found))
}

// hostOf returns the host of a probe; empty if it is the Pod itself.
func hostOf(h *corev1.HTTPGetAction) string {
	if h == nil || h.Host == "127.0.0.1" || h.Host == "::1" {
		return ""
	}
	return h.Host
}

func hostOfSocket(t *corev1.TCPSocketAction) string {
	if t == nil {
		return ""
	}
	return hostOf(&corev1.HTTPGetAction{Host: t.Host})
}

func privileged(s *corev1.PodSpec) (reason, detail string) {
	if names := which(s, func(c *corev1.Container) bool { return isTrue(c.SecurityContext.Privileged) }); len(names) > 0 {
		return "privileged", named("container", names) + " must not set securityContext.privileged=true"
	}
	return "", ""
}
