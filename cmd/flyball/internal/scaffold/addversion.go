// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// AddVersion adds a version of a kind, with conversions and tests, and returns the files
// that it has changed or made. The stored version stays the hub, which the reconciler uses.
func (a Addition) AddVersion() ([]string, error) {
	return a.add(func(p plan, all files) error { return p.addVersion(all, a.Version) })
}

// apiVersion is the form of the versions of Kubernetes.
var apiVersion = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)

// versioning is a version to add.
type versioning struct {
	plan
	to       string // the new version
	hub      hubVersion
	source   *versionSource // the hub's package
	there    *versionSource // what the new version's package has
	register string         // the function that registers the kind
}

func (p plan) addVersion(all files, to string) error {
	v := versioning{plan: p, to: to}
	if err := v.choose(all); err != nil {
		return err
	}
	dir := "api/" + to + "/"
	for name, make := range map[string]func() ([]byte, error){
		dir + p.resource + ".go":            v.typesFile,
		dir + p.resource + "_conversion.go": v.conversionFile,
		p.resource + "_" + to + "_test.go":  func() ([]byte, error) { return v.part("version/version_test.go") },
	} {
		if all[name] != nil {
			return fmt.Errorf("%s is there already; move it", name)
		}
		text, err := make()
		if err != nil {
			return err
		}
		all[name] = text
	}
	for _, step := range []func(files) error{v.markStored, v.convert, v.callVersion, v.addDefinition} {
		if err := step(all); err != nil {
			return err
		}
	}
	return nil
}

// choose checks the new version, and finds the hub: the stored version.
func (v *versioning) choose(all files) error {
	switch {
	case v.to == "":
		return errors.New("no version is given; give one, such as --version v2")
	case !apiVersion.MatchString(v.to):
		return fmt.Errorf("version %q is not one of Kubernetes, such as v1, v2beta1 or v3alpha2; give --version v2", v.to)
	case !slices.Contains(v.present, v.kind):
		return fmt.Errorf("api has no kind %s; give --kind %s, or add it with flyball add kind", v.kind, strings.Join(v.present, " or --kind "))
	}
	packages, stored := map[string]files{}, []string{}
	for name, text := range all {
		if dir, file := path.Split(name); strings.HasPrefix(dir, "api/") {
			version := path.Base(dir)
			if packages[version] == nil {
				packages[version] = files{}
			}
			packages[version][file] = text
		}
	}
	sources := map[string]*versionSource{}
	for _, version := range slices.Sorted(maps.Keys(packages)) {
		source, err := parseVersion(packages[version])
		if err != nil {
			return err
		}
		if source.Declares(v.kind) {
			sources[version] = source
			if source.HasMarker(v.kind, storageMarker) {
				stored = append(stored, version)
			}
		} else if version == v.to {
			v.there = source
		}
	}
	versions := slices.Sorted(maps.Keys(sources))
	if len(versions) == 1 {
		stored = versions
	}
	switch {
	case sources[v.to] != nil:
		return fmt.Errorf("%s has the version %s already: change it in api/%[2]s", v.kind, v.to)
	case len(stored) != 1:
		return fmt.Errorf("%s has the versions %s, and +%s is on %d of them; put it on the one that is stored", v.kind, inWords(versions), storageMarker, len(stored))
	}
	v.hub = hubVersion{Version: stored[0], Package: "api" + stored[0]}
	v.source = sources[stored[0]]
	v.register = "AddToScheme"
	if v.has("AddToScheme") {
		v.register = "Add" + v.kind + "ToScheme"
	}
	return generatesAll(packages[stored[0]], v.hub.Version)
}

// has reports whether the package of the new version declares a name.
func (v versioning) has(name string) bool { return v.there != nil && v.there.Declares(name) }

// generatesAll returns an error if go generate makes definitions of one version alone.
func generatesAll(of files, version string) error {
	for name, text := range of {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "//go:generate ") && strings.Contains(line, "flyball crds") && strings.HasSuffix(line, " .") {
				return fmt.Errorf("go generate would write the definition without the new version; end the line in api/%s/%s with ../... instead of the dot:\n%s", version, name, line)
			}
		}
	}
	return nil
}

// typesFile returns the copy of the kind's types.
func (v versioning) typesFile() ([]byte, error) {
	operator := v.operator + "-operator"
	text := "package " + v.to + "\n"
	if v.there == nil {
		text = fmt.Sprintf("// Package %s is a version of the API. Conversions lead to %s, which is stored.\npackage %[1]s\n", v.to, v.hub.Version)
	}
	if !v.has("GroupVersion") {
		text += fmt.Sprintf("\n// GroupVersion of the kinds.\nvar GroupVersion = schema.GroupVersion{Group: %q, Version: %q}\n", v.Group, v.to)
	}
	text += "\n" + v.source.Types(v.kind, ":namespace="+operator+",service="+operator, v.has)
	text += fmt.Sprintf(`// %[1]sList is a list of %[2]s.
type %[1]sList = resource.List[%[1]s]

var %[3]s = resource.Define[%[1]s](GroupVersion)

// %[4]s registers the kind and its list.
func %[4]s(scheme *runtime.Scheme) error { return %[3]s.AddToScheme(scheme) }

// DeepCopyObject implements runtime.Object.
func (obj *%[1]s) DeepCopyObject() runtime.Object { return %[3]s.DeepCopy(obj) }
`, v.kind, v.kinds, v.several, v.register)
	return v.withImports("api/"+v.to+"/"+v.resource+".go", text, v.source.Imports())
}

// conversionFile returns the conversions to and from the hub.
func (v versioning) conversionFile() ([]byte, error) {
	text := "package " + v.to + "\n\n" + v.source.Conversions(v.kind, v.variable, v.hub, v.has)
	known := v.source.Imports()
	known[v.hub.Package] = v.Module + "/api/" + v.hub.Version
	known["json"] = "encoding/json"
	return v.withImports("api/"+v.to+"/"+v.resource+"_conversion.go", text, known)
}

// withImports writes the imports that a file uses.
func (v versioning) withImports(name, text string, more gotree.Imports) ([]byte, error) {
	known, err := knownImports()
	if err != nil {
		return nil, err
	}
	maps.Copy(known, more)
	return gotree.Edit(name, []byte(text), func(f *gotree.File) error {
		f.WriteImports(known, flyballModule, v.Module)
		return nil
	})
}

// part returns a part with the names of the kind and its versions.
func (v versioning) part(name string) ([]byte, error) {
	f, err := part(name)
	if err != nil {
		return nil, err
	}
	text, err := f.Source()
	if err != nil {
		return nil, err
	}
	for _, step := range []func(*gotree.File) error{v.rename, v.place, func(f *gotree.File) error {
		f.Rename(gotree.Names{Idents: map[string]string{"V2": versionSuffix(v.to), "apiv2": "api" + v.to, "apiv1": v.hub.Package}, Strings: map[string]string{"apiv2": v.to}})
		return nil
	}} {
		if text, err = gotree.Edit(name, text, step); err != nil {
			return nil, err
		}
	}
	known := gotree.Imports{"api" + v.to: v.Module + "/api/" + v.to, v.hub.Package: v.Module + "/api/" + v.hub.Version}
	head, body, _ := strings.Cut(string(text), "\nimport (")
	_, body, _ = strings.Cut(body, "\n)\n") // with the paths of the template's versions
	return v.withImports(name, head+body, known)
}

// markStored marks the stored version, which a definition with several versions needs.
func (v versioning) markStored(all files) error {
	if v.source.HasMarker(v.kind, storageMarker) {
		return nil
	}
	for name, text := range all {
		if path.Dir(name) != "api/"+v.hub.Version || strings.HasSuffix(name, "_test.go") {
			continue
		}
		changed, err := gotree.Edit(name, text, func(f *gotree.File) error {
			gen, ok := f.DeclarationOf(v.kind).(*ast.GenDecl)
			if !ok {
				return nil
			}
			at, doc := gen.Pos(), gen.Doc
			for _, spec := range gen.Specs {
				if t, ok := spec.(*ast.TypeSpec); ok && t.Name.Name == v.kind && gen.Lparen.IsValid() {
					at, doc = t.Pos(), t.Doc
				}
			}
			if doc != nil {
				f.Insert(doc.End(), "\n// +"+storageMarker)
			} else {
				f.Insert(at, "// +"+storageMarker+"\n")
			}
			return nil
		})
		if err != nil {
			return err
		}
		all[name] = changed
	}
	return nil
}

// convert calls the conversion: in conversion.go, or in a new file that is called where
// webhooks are.
func (v versioning) convert(all files) error {
	if text := all["conversion.go"]; text != nil {
		changed, err := gotree.Edit("conversion.go", text, v.alsoConvert)
		all["conversion.go"] = changed
		return err
	}
	text, err := v.part("version/conversion.go")
	if err != nil {
		return err
	}
	all["conversion.go"] = text
	if all["webhook.go"] != nil {
		return v.convertBeside(all)
	}
	if all["webhook.go"], err = v.part("version/webhook.go"); err != nil {
		return err
	}
	if all["webhook_test.go"] != nil {
		return errors.New("webhook_test.go is there already, without webhook.go; move it")
	}
	if all["webhook_test.go"], err = v.part("version/webhook_test.go"); err != nil {
		return err
	}
	if err := v.callWebhook(all, "convert"); err != nil {
		return err
	}
	all["config/operator.yaml"], err = v.servingManifests(all["config/operator.yaml"])
	return err
}

// alsoConvert adds a conversion to conversion.go.
func (v versioning) alsoConvert(f *gotree.File) error {
	name := "api" + v.to + "." + v.kind + "Conversion"
	spoke := "webhook.Spoke(" + name + ".ToHub, " + name + ".FromHub),\n"
	fn, crds := f.Func("addConversions"), f.DeclarationOf("convertedCRDs")
	if fn == nil || crds == nil || len(f.Literals(crds, "string")) != 1 {
		return fmt.Errorf("conversion.go has no function addConversions and no list convertedCRDs; add there %s", spoke)
	}
	f.AddImports([]string{"api" + v.to + ` "` + v.Module + "/api/" + v.to + `"`}, v.Module)
	if list := f.Literals(crds, "string")[0].(*ast.CompositeLit); !strings.Contains(f.Text(list), `"`+v.definition()+`"`) {
		f.Insert(list.Rbrace, `"`+v.definition()+"\",\n")
	}
	for _, call := range f.Calls(fn, "Convert") {
		if strings.Contains(f.Text(call), "."+v.kind+"Conversion.") {
			f.Insert(call.Rparen, spoke)
			return nil
		}
	}
	f.Insert(fn.Body.Rbrace, "webhook.Convert(s,\n"+spoke+")\n")
	return nil
}

func (v versioning) definition() string { return v.plural + "." + v.Group }

// convertBeside calls the conversions beside webhooks that are there.
func (v versioning) convertBeside(all files) error {
	var err error
	all["webhook.go"], err = gotree.Edit("webhook.go", all["webhook.go"], func(f *gotree.File) error {
		options, add := f.Func("webhookOptions"), f.Func("addWebhooks")
		if options == nil || add == nil || len(options.Body.List) == 0 || len(add.Type.Params.List) == 0 || len(add.Type.Params.List[0].Names) == 0 {
			return errors.New("there are no functions webhookOptions and addWebhooks; write them as flyball add webhook does, with Managed.CRDs: convertedCRDs, and a call of addConversions")
		}
		last, ok := options.Body.List[len(options.Body.List)-1].(*ast.ReturnStmt)
		if !ok || len(last.Results) != 1 {
			return errors.New("webhookOptions does not end in a return of the options; set Managed.CRDs to convertedCRDs there, and end it in a return")
		}
		given := f.Text(last.Results[0])
		f.Insert(last.Pos(), "if "+given+".Managed != nil {\n"+given+".Managed.CRDs = convertedCRDs\n}\n")
		f.Insert(add.Body.Rbrace, "addConversions("+add.Type.Params.List[0].Names[0].Name+".Webhooks())\n")
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/") {
			continue
		}
		f, err := gotree.Parse(name, all[name])
		if err != nil {
			return err
		}
		fn := f.Func("callWebhooks")
		if fn == nil || len(fn.Body.List) == 0 {
			continue
		}
		f.Insert(fn.Body.List[len(fn.Body.List)-1].Pos(), "must(t, env.InstallCRDs(t.Context(), \"config/crd.yaml\")) // the Service cannot be reached\n")
		all[name], err = f.Source()
		return err
	}
	return errors.New("the tests have no function callWebhooks, which makes a real API server call this process; write one as flyball add webhook does")
}

// callVersion registers the version, tests it on a real server, and serves its conversion on
// the simulated cluster.
func (v versioning) callVersion(all files) error {
	name := "api" + v.to
	spec := name + ` "` + v.Module + "/api/" + v.to + `"`
	changes := map[string]func(*gotree.File) error{
		"main.go": func(f *gotree.File) error {
			hub := ""
			for alias, to := range f.Imports() {
				if to == v.Module+"/api/"+v.hub.Version {
					hub = alias
				}
			}
			if f.Imports()[name] == "" {
				f.AddImports([]string{spec}, v.Module)
			}
			return alsoCall(f, hub+".AddToScheme(scheme)", name+"."+v.register+"(scheme)")
		},
		"operator_test.go": func(f *gotree.File) error {
			return insert(f, []insertion{{"TestControlPlane", "stop()", "", "\ncheck" + v.kind + versionSuffix(v.to) + "(t, admin)"}})
		},
	}
	if f, err := gotree.Parse("simulated.go", all["simulated.go"]); all["simulated.go"] != nil && err == nil && len(f.Calls(f.Tree, "addConversions")) == 0 {
		changes["simulated.go"] = func(f *gotree.File) error {
			f.AddImports([]string{`"` + flyballModule + `/webhook"`}, flyballModule)
			return insert(f, []insertion{{"onSimulatedCluster", "embedded.Run",
				"converter := webhook.New(nil, opts.Scheme, webhook.Options{})\naddConversions(converter)\ncluster.Webhooks = converter\n", ""}})
		}
	}
	for name, change := range changes {
		var err error
		if all[name], err = gotree.Edit(name, all[name], change); err != nil {
			return err
		}
	}
	return nil
}

// addDefinition adds the version to the definition, and the right to write its caBundle.
func (v versioning) addDefinition(all files) error {
	operator := v.operator + "-operator"
	text, err := addDefinitionVersion(all["config/crd.yaml"], v.definition(), v.hub.Version, v.to, operator, operator)
	if err != nil {
		return fmt.Errorf("config/crd.yaml: %w", err)
	}
	all["config/crd.yaml"] = text
	right := namedRule("apiextensions.k8s.io", "customresourcedefinitions", v.definition(), "get, patch", "keep: the webhook's certificate")
	if strings.Contains(string(all["config/operator.yaml"]), right) {
		return nil
	}
	all["config/operator.yaml"], err = inserted(all["config/operator.yaml"], []place{{"kind: ClusterRole\n", "rules:\n", right}})
	return err
}
