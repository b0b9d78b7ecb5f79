// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import "fmt"

// programKind is a kind that programs write.
type programKind struct {
	path string
	// body returns a whole object, with more in its metadata.
	body func(g generator, name, metadata string) string
	// patch returns a merge patch of the fields that the kind alone has.
	patch func(g generator) string
}

var kinds = []programKind{
	{"$cms", configMapBody, func(g generator) string {
		return g.pick(`{"data":{"k":"7"}}`, `{"data":{"k":null,"x":"y"}}`, `{"data":null}`, `{"data":{"k":5}}`)
	}},
	{"$deployments", deploymentBody, func(g generator) string {
		return g.pick(`{"spec":{"replicas":4}}`, `{"spec":{"replicas":-1}}`, `{"spec":{"paused":true}}`, `{"spec":{"template":{"metadata":{"annotations":{"t":"u"}}}}}`)
	}},
	{"$widgets", widgetBody, func(g generator) string {
		return g.pick(`{"spec":{"size":5}}`, `{"spec":{"size":500}}`, `{"spec":{"color":null}}`, `{"spec":{"tags":["t","u"]}}`, `{"spec":{"replicas":2,"fixed":"x"}}`)
	}},
}

func configMapBody(g generator, name, metadata string) string {
	data := ""
	for _, key := range []string{"k", "x", "y"} {
		data += g.maybe(2, fmt.Sprintf(`,"%s":"%d"`, key, g.IntN(3)))
	}
	if data != "" {
		data = `,"data":{` + data[1:] + `}`
	}
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"%s}%s}`, name, metadata, data)
}

func deploymentBody(g generator, name, metadata string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%s"%s},"spec":{%s"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"%s"}},"spec":{"containers":[{"name":"%s","image":"%s"%s}]}}}}`,
		name, metadata, g.maybe(2, fmt.Sprintf(`"replicas":%d,`, g.IntN(4))), g.pick("x", "x", "x", "x", "x", "y"), g.pick("c", "c", "d"), g.pick("one", "two"),
		g.maybe(3, `,"env":[{"name":"A","value":"`+g.pick("1", "2")+`"}]`))
}

func widgetBody(g generator, name, metadata string) string {
	spec := g.maybe(2, `,"color":"`+g.pick("red", "blue", "pink")+`"`) + g.maybe(2, fmt.Sprintf(`,"size":%d`, g.IntN(3))) +
		g.maybe(3, `,"tags":["`+g.pick("t", "u")+`"]`) + g.maybe(3, fmt.Sprintf(`,"ports":[{"name":"%s","port":%d}]`, g.pick("p", "q"), g.IntN(3))) +
		g.maybe(5, `,"fixed":"`+g.pick("x", "y")+`"`) + g.maybe(5, `,"unknown":1`)
	if spec != "" {
		spec = spec[1:]
	}
	return fmt.Sprintf(`{"apiVersion":"$group/v1","kind":"Widget","metadata":{"name":"%s"%s},"spec":{%s}}`, name, metadata, spec)
}
