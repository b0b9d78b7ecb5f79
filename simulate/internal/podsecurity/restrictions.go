// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package podsecurity

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func procMount(s *corev1.PodSpec) (reason, detail string) {
	found := sets.New[string]()
	names := which(s, func(c *corev1.Container) bool {
		if m := c.SecurityContext.ProcMount; m != nil && *m != corev1.DefaultProcMount {
			found.Insert(string(*m))
			return true
		}
		return false
	})
	if len(names) == 0 || ownUsers(s) {
		return "", ""
	}
	return "procMount", named("container", names) + " must not set securityContext.procMount to " + inQuotes(sets.List(found))
}

var seLinuxTypes = []string{"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}

func seLinux(s *corev1.PodSpec) (reason, detail string) {
	types, user, role := sets.New[string](), false, false
	wrong := func(o *corev1.SELinuxOptions) bool {
		if o == nil {
			return false
		}
		bad := !slices.Contains(seLinuxTypes, o.Type)
		if bad {
			types.Insert(o.Type)
		}
		user, role = user || o.User != "", role || o.Role != ""
		return bad || o.User != "" || o.Role != ""
	}
	pod := wrong(securityOf(s).SELinuxOptions)
	containers := which(s, func(c *corev1.Container) bool { return wrong(c.SecurityContext.SELinuxOptions) })
	if !pod && len(containers) == 0 {
		return "", ""
	}
	var data []string
	if len(types) > 0 {
		data = append(data, named("type", sets.List(types)))
	}
	if user {
		data = append(data, "user may not be set")
	}
	if role {
		data = append(data, "role may not be set")
	}
	return "seLinuxOptions", setters(pod, containers) + " set forbidden securityContext.seLinuxOptions: " + strings.Join(data, "; ")
}

// allowedSeccomp reports whether a profile restricts system calls.
func allowedSeccomp(p *corev1.SeccompProfile) bool {
	return p.Type == corev1.SeccompProfileTypeRuntimeDefault || p.Type == corev1.SeccompProfileTypeLocalhost
}

// explicitSeccomp forbids profiles that are set and restrict nothing.
func explicitSeccomp(s *corev1.PodSpec) (reason, detail string) {
	found := sets.New[string]()
	wrong := func(p *corev1.SeccompProfile) bool {
		if p == nil || allowedSeccomp(p) {
			return false
		}
		found.Insert(string(p.Type))
		return true
	}
	pod := wrong(securityOf(s).SeccompProfile)
	containers := which(s, func(c *corev1.Container) bool { return wrong(c.SecurityContext.SeccompProfile) })
	if !pod && len(containers) == 0 {
		return "", ""
	}
	return "seccompProfile", setters(pod, containers) + " must not set securityContext.seccompProfile.type to " + inQuotes(sets.List(found))
}

func baselineSeccomp(s *corev1.PodSpec) (reason, detail string) { return explicitSeccomp(s) }

func restrictedSeccomp(s *corev1.PodSpec) (reason, detail string) {
	if windows(s) {
		return "", ""
	}
	if reason, detail = explicitSeccomp(s); reason != "" || securityOf(s).SeccompProfile != nil {
		return reason, detail
	}
	if names := which(s, func(c *corev1.Container) bool { return c.SecurityContext.SeccompProfile == nil }); len(names) > 0 {
		return "seccompProfile", "pod or " + named("container", names) + ` must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`
	}
	return "", ""
}

// sysctls are those that affect only the Pod that sets them.
var sysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start",
	"net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
	"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat",
}

func safeSysctls(s *corev1.PodSpec) (reason, detail string) {
	var names []string
	for _, each := range securityOf(s).Sysctls {
		if !slices.Contains(sysctls, each.Name) {
			names = append(names, each.Name)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	return "forbidden sysctls", strings.Join(names, ", ")
}

func hostProcess(s *corev1.PodSpec) (reason, detail string) {
	set := func(w *corev1.WindowsSecurityContextOptions) bool { return w != nil && isTrue(w.HostProcess) }
	pod := set(securityOf(s).WindowsOptions)
	containers := which(s, func(c *corev1.Container) bool { return set(c.SecurityContext.WindowsOptions) })
	if !pod && len(containers) == 0 {
		return "", ""
	}
	return "hostProcess", setters(pod, containers) + " must not set securityContext.windowsOptions.hostProcess=true"
}

func noEscalation(s *corev1.PodSpec) (reason, detail string) {
	names := which(s, func(c *corev1.Container) bool {
		return c.SecurityContext.AllowPrivilegeEscalation == nil || *c.SecurityContext.AllowPrivilegeEscalation
	})
	if len(names) == 0 || windows(s) {
		return "", ""
	}
	return "allowPrivilegeEscalation != false", named("container", names) + " must set securityContext.allowPrivilegeEscalation=false"
}

var restrictedSources = []string{"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"}

func restrictedVolumes(s *corev1.PodSpec) (reason, detail string) {
	var names []string
	found := sets.New[string]()
	for i := range s.Volumes {
		source := reflect.ValueOf(&s.Volumes[i].VolumeSource).Elem()
		for j := range source.NumField() {
			kind, _, _ := strings.Cut(source.Type().Field(j).Tag.Get("json"), ",")
			if !source.Field(j).IsNil() && !slices.Contains(restrictedSources, kind) {
				names = append(names, s.Volumes[i].Name)
				found.Insert(kind)
			}
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	return "restricted volume types", uses("volume", names, "restricted volume type", len(found)) + " " + inQuotes(sets.List(found))
}

// ownUsers reports whether the Pod has a user namespace, in which root has no rights on
// the node.
func ownUsers(s *corev1.PodSpec) bool { return s.HostUsers != nil && !*s.HostUsers }

func runAsNonRoot(s *corev1.PodSpec) (reason, detail string) {
	if ownUsers(s) {
		return "", ""
	}
	of := securityOf(s).RunAsNonRoot
	pod := of != nil && !*of
	containers := which(s, func(c *corev1.Container) bool {
		return c.SecurityContext.RunAsNonRoot != nil && !*c.SecurityContext.RunAsNonRoot
	})
	if pod || len(containers) > 0 {
		return "runAsNonRoot != true", setters(pod, containers) + " must not set securityContext.runAsNonRoot=false"
	}
	if names := which(s, func(c *corev1.Container) bool { return c.SecurityContext.RunAsNonRoot == nil }); of == nil && len(names) > 0 {
		return "runAsNonRoot != true", "pod or " + named("container", names) + " must set securityContext.runAsNonRoot=true"
	}
	return "", ""
}

func runAsRoot(s *corev1.PodSpec) (reason, detail string) {
	root := func(user *int64) bool { return user != nil && *user == 0 }
	pod := root(securityOf(s).RunAsUser)
	containers := which(s, func(c *corev1.Container) bool { return root(c.SecurityContext.RunAsUser) })
	if ownUsers(s) || !pod && len(containers) == 0 {
		return "", ""
	}
	return "runAsUser=0", setters(pod, containers) + " must not set runAsUser=0"
}
