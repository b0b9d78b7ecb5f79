// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package crdinstall

import (
	"slices"
)

// Narrowings returns what the clients and the stored objects of a CustomResourceDefinition
// lose if to replaces from, in the order of the paths. Both are objects as decoded from JSON.
func Narrowings(from, to map[string]any) []Narrowing {
	var c comparison
	f, t := object(from["spec"]), object(to["spec"])
	c.names(f, t)
	if is(f, "preserveUnknownFields") && !is(t, "preserveUnknownFields") {
		c.add("spec.preserveUnknownFields", "it changes to false: the server drops fields without a schema")
	}
	c.versions(f, t, names(object(from["status"])["storedVersions"]))
	if strategy(t) != "Webhook" && !is(t, "preserveUnknownFields") {
		c.storage(f, t)
	}
	if strategy(f) == "Webhook" && strategy(t) != "Webhook" && len(versions(t)) > 1 {
		c.add("spec.conversion", "the webhook is removed: the server no longer converts fields between versions")
	}
	slices.SortStableFunc(c.found, compareNames)
	return c.found
}

// names compares what the server looks up in requests.
func (c *comparison) names(from, to node) {
	for _, field := range []string{"group", "scope"} {
		if f, t := text(from[field]), text(to[field]); f != t {
			c.add("spec."+field, "it changes from %q to %q", f, t)
		}
	}
	f, t := object(from["names"]), object(to["names"])
	for _, field := range []string{"plural", "kind", "listKind"} {
		if before, after := text(f[field]), text(t[field]); before != after && after != "" {
			c.add("spec.names."+field, "it changes from %q to %q", before, after)
		}
	}
	if gone := without(list(f["shortNames"]), list(t["shortNames"])); len(gone) > 0 {
		c.add("spec.names.shortNames", "they lose %s", show(gone))
	}
}

// version compares one version.
func (c *comparison) version(name string, from, to node) {
	f, t := object(from["subresources"]), object(to["subresources"])
	if _, had := f["status"]; had {
		if _, has := t["status"]; !has {
			c.add(name, "the subresource status is removed")
		}
	}
	if before := object(f["scale"]); before != nil {
		after := object(t["scale"])
		if after == nil {
			c.add(name, "the subresource scale is removed")
		}
		for _, field := range []string{"specReplicasPath", "statusReplicasPath", "labelSelectorPath"} {
			if b, a := text(before[field]), text(after[field]); after != nil && b != "" && a != b {
				c.add(name, "%s of the subresource scale changes from %q to %s", field, b, orNone(a))
			}
		}
	}
	after := map[string]bool{}
	each(to["selectableFields"], func(field node) { after[text(field["jsonPath"])] = true })
	each(from["selectableFields"], func(field node) {
		if path := text(field["jsonPath"]); !after[path] {
			c.add(name+": "+path, "it can no longer be selected by")
		}
	})
	c.schema(name+": ", schemaOf(from), schemaOf(to), true)
}

// storage compares what is kept if the objects of one version are stored in another without
// a conversion: the server drops what has no schema there.
func (c *comparison) storage(from, to node) {
	before, after := stored(from), stored(to)
	if before == nil || after == nil || text(before["name"]) == text(after["name"]) {
		return
	}
	lost := comparison{dropped: true}
	lost.schema(text(after["name"])+", stored instead of "+text(before["name"])+": ", schemaOf(before), schemaOf(after), true)
	c.found = append(c.found, lost.found...)
}

// stored returns the version in which objects are stored.
func stored(spec node) (out node) {
	each(spec["versions"], func(v node) {
		if is(v, "storage") {
			out = v
		}
	})
	return out
}

func schemaOf(version node) node { return object(object(version["schema"])["openAPIV3Schema"]) }

func strategy(spec node) string { return text(object(spec["conversion"])["strategy"]) }

func versions(spec node) map[string]node {
	out := map[string]node{}
	for _, v := range inOrder(spec) {
		out[text(v["name"])] = v
	}
	return out
}

func inOrder(spec node) (out []node) {
	each(spec["versions"], func(v node) { out = append(out, v) })
	return out
}

func list(v any) []any { l, _ := v.([]any); return l }

// versions compares the versions. stored has those of stored objects, as the status says.
func (c *comparison) versions(from, to node, stored map[string]bool) {
	after := versions(to)
	for _, v := range inOrder(from) {
		name := text(v["name"])
		if is(v, "storage") {
			stored[name] = true
		}
		now, kept := after[name]
		switch {
		case !kept && stored[name]:
			c.add(name, "the version is removed, and status.storedVersions has it: objects may be stored in it")
		case !kept && is(v, "served"):
			c.add(name, "the version is removed, and is served")
		case !kept:
		case is(v, "served") && !is(now, "served"):
			c.add(name, "the version is no longer served")
		case is(v, "served") || stored[name]:
			c.version(name, v, now)
		}
		delete(stored, name)
	}
	for name := range stored {
		if after[name] == nil {
			c.add(name, "the version is missing, and status.storedVersions has it: objects may be stored in it")
		}
	}
}
