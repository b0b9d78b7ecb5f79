// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"cmp"
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"github.com/munnerz/goautoneg"
	"google.golang.org/protobuf/proto"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
)

// rendered is an encoded document.
type rendered struct {
	hash     string
	json     []byte
	protobuf func() ([]byte, error)
}

// lastRendered caches the last documents. They are large and slow to make, and those of
// built-in kinds are the same for all servers.
var lastRendered library

// renderedAtMost bounds the cached documents: twice the number that built-in kinds have.
const renderedAtMost = 128

// library caches documents by path and drops all when there are too many. It is safe for
// concurrent use.
type library struct {
	mu struct {
		sync.Mutex
		docs map[string]*rendered
	}
}

// at returns the document of a path, or nil if it is not cached.
func (l *library) at(path string) *rendered {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.docs[path]
}

func (l *library) keep(path string, doc *rendered) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.docs == nil || l.mu.docs[path] == nil && len(l.mu.docs) >= renderedAtMost {
		l.mu.docs = map[string]*rendered{}
	}
	l.mu.docs[path] = doc
}

// renderedAt returns the document of a path with this hash.
func renderedAt(path, hash string, make func() ([]byte, error), protobuf func([]byte) ([]byte, error)) (*rendered, error) {
	if last := lastRendered.at(path); last != nil && last.hash == hash {
		return last, nil
	}
	text, err := make()
	if err != nil {
		return nil, err
	}
	doc := &rendered{hash, text, sync.OnceValues(func() ([]byte, error) { return protobuf(text) })}
	lastRendered.keep(path, doc)
	return doc, nil
}

// serveSchemas answers with schemas: in v2 all in one document, in v3 by group and version.
func (x *Index) serveSchemas(w http.ResponseWriter, r *http.Request, path string) {
	version, below, _ := strings.Cut(strings.TrimPrefix(path, "/openapi/"), "/")
	if err := x.Forbidden(path); err != nil {
		encode.Refuse(w, encode.Encoder{}, err)
		return
	}
	switch {
	case path == "/openapi/v2":
		x.serveSwagger(w, r)
	case path == "/openapi/v3":
		body, err := json.Marshal(x.schemas())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8") // a real server leaves the type to the client
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
	case version == "v3":
		x.serveDocument(w, r, "/"+below)
	default:
		absent(w)
	}
}

// serveDocument answers with the document of one group and version, whose path is that of
// its discovery. A request with an outdated hash is redirected to the current one.
func (x *Index) serveDocument(w http.ResponseWriter, r *http.Request, path string) {
	for _, g := range x.groups() {
		for _, v := range g.versions {
			if v.path() != path {
				continue
			}
			hash := v.hash()
			doc, err := renderedAt(path, hash, func() ([]byte, error) { return json.Marshal(documentOf(v).modern()) }, protobufV3)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			named := r.URL.Query().Get("hash")
			if named != "" && named != hash {
				w.Header().Set("Vary", "Accept")
				w.Header().Set("Etag", strconv.Quote(hash))
				w.Header().Set("Content-Type", encode.ContentJSON)
				http.Redirect(w, r, v.documentURL(), http.StatusMovedPermanently)
				return
			}
			doc.serve(w, r, "v3", named != "")
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

// serveSwagger answers with the document of all kinds.
func (x *Index) serveSwagger(w http.ResponseWriter, r *http.Request) {
	var all []servedVersion
	sum := sha512.New()
	for _, g := range x.groups() {
		for _, v := range g.versions {
			all = append(all, v)
			fmt.Fprintln(sum, v.hash())
		}
	}
	doc, err := renderedAt(r.URL.Path, fmt.Sprintf("%X", sum.Sum(nil)), func() ([]byte, error) { return json.Marshal(documentOf(all...).old()) }, protobufV2)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	doc.serve(w, r, "v2", false)
}

// serve answers in the form that r asks for. lasting means that the content of this path
// never changes.
func (d *rendered) serve(w http.ResponseWriter, r *http.Request, version string, lasting bool) {
	accept := cmp.Or(r.Header.Get("Accept"), "*/*")
	w.Header().Set("Vary", "Accept")
	protobuf := "com.github.proto-openapi.spec." + version + ".v1.0+protobuf"
	body, err, media := d.json, error(nil), ""
	for _, clause := range goautoneg.ParseAccept(accept) {
		if clause.Type != "application" && clause.Type != "*" {
			continue
		}
		switch clause.SubType {
		case "json", "*":
			media = encode.ContentJSON
		case protobuf, strings.Replace(protobuf, version+".", version+"@", 1):
			media = "application/" + protobuf
			body, err = d.protobuf()
		}
		if media != "" {
			break
		}
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case media == "":
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Etag", strconv.Quote(d.hash))
	if lasting {
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).Format(time.RFC1123))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func protobufV3(text []byte) ([]byte, error) {
	parsed, err := openapiv3.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(parsed)
}

func protobufV2(text []byte) ([]byte, error) {
	parsed, err := openapiv2.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(parsed)
}
