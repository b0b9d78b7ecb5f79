// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/kube"
)

// Kind is what a Packer needs to know of its objects.
type Kind struct {
	// Object is the type of the objects, a pointer to a struct. Others are not
	// packed.
	Object reflect.Type
	// Name returns the kind.
	Name func() schema.GroupVersionKind
	// Decode returns the object of a server's bytes, or of bytes of that form.
	// The object does not share memory with them. Nil: the informer has no
	// decoder.
	Decode func(raw []byte) (kube.Object, error)
	// Whole reports whether an object is all that its bytes have, save
	// managedFields. Nil: it is not.
	Whole func() bool
	// ManagedFields reports whether they are kept. Nil: they are.
	ManagedFields func() bool
	// Shown is called when an object is about to be given to the first reader,
	// Hidden when it is no longer kept for others. Nil: nothing is called.
	Shown, Hidden func(kube.Object)
}

// Packer packs the objects of one kind. Make one with NewPacker.
type Packer struct {
	kind    Kind
	opts    Options
	form    form
	press   atomic.Pointer[press]
	plain   *generation // of what does not get smaller
	sample  sample
	shared  sharedBlocks
	space   atomic.Pointer[string] // the last namespace
	hot     hot
	buffers sync.Pool
	decoded atomic.Uint64
}

// generation is the entries with one dictionary. It lives as long as they do.
type generation struct {
	packer   *Packer
	expander Expander // nil: the entries are not compressed
}

// press is what compresses now.
type press struct {
	generation *generation
	compressor Compressor
}

// NewPacker returns a Packer. It starts nothing. The error is the Codec's.
func NewPacker(kind Kind, opts Options) (*Packer, error) {
	opts = opts.completed()
	p := &Packer{kind: kind, opts: opts, form: formOf(kind)}
	p.plain = &generation{packer: p}
	p.sample.limit = opts.DictionaryBytes
	p.shared.seed = maphash.MakeSeed()
	p.hot.objects, p.hot.bytes, p.hot.hidden = opts.HotObjects, opts.HotBytes, kind.Hidden
	p.buffers.New = func() any { return new([]byte) }
	if err := p.renew(nil); err != nil {
		return nil, fmt.Errorf("compress objects of %s: %w", kind.Object, err)
	}
	return p, nil
}

// renew makes later entries use a dictionary.
func (p *Packer) renew(dictionary []byte) error {
	c, err := p.opts.Codec.Compressor(dictionary)
	if err != nil {
		return err
	}
	e, err := p.opts.Codec.Expander(dictionary)
	if err != nil {
		return err
	}
	p.press.Store(&press{&generation{packer: p, expander: e}, c})
	return nil
}

// Pack returns an Entry for obj, which stays open for a while. raw are the bytes
// that it was decoded from; nil: unknown. If known is an Entry of the same
// version and bytes, as in a list, Pack returns that. An object that cannot be
// packed so that the same one comes out is returned itself, and so are nil and
// an Entry.
func (p *Packer) Pack(obj kube.Object, raw []byte, known kube.Object) kube.Object {
	if obj == nil || reflect.TypeOf(obj) != p.kind.Object {
		return obj
	}
	if len(raw) == 0 || p.kind.Whole == nil || !p.kind.Whole() {
		var ok bool
		if raw, ok = p.encoded(obj); !ok {
			return obj
		}
	} else if p.form.plainMeta && p.kind.ManagedFields != nil && !p.kind.ManagedFields() {
		raw = withoutManagedFields(raw)
	}
	if same, ok := known.(*Entry); ok && p.same(same, obj, raw) {
		return same
	}
	e := p.entry(raw, obj)
	p.learn(raw)
	o := &opened{obj: obj, bytes: int64(len(raw))}
	e.opened.Store(o)
	p.hot.put(e, o)
	return e
}

// same reports whether e has the bytes raw of obj.
func (p *Packer) same(e *Entry, obj kube.Object, raw []byte) bool {
	if e.version == 0 || e.version != kube.ParseVersion(obj.GetResourceVersion()) {
		return false
	}
	equal := false
	_ = p.unpack(e, func(has []byte) error {
		equal = bytes.Equal(has, raw)
		return nil
	})
	return equal
}

// encoded returns the bytes from which obj is decoded again. ok: it is.
func (p *Packer) encoded(obj kube.Object) (raw []byte, ok bool) {
	err := encoding.Guard(func() (err error) {
		raw, err = p.form.encode(obj)
		return err
	})
	if err != nil || len(raw) == 0 {
		return nil, false
	}
	if p.form.exact {
		return raw, true
	}
	back, err := p.decode(raw)
	return raw, err == nil && Alike(back, obj)
}

func (p *Packer) entry(raw []byte, obj kube.Object) *Entry {
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	press := p.press.Load()
	b := press.compressor.Compress((*buf)[:0], raw)
	e := &Entry{of: press.generation}
	if v := kube.ParseVersion(obj.GetResourceVersion()); v.String() == obj.GetResourceVersion() {
		e.version = v // else it is read from the object
	}
	if len(b) >= len(raw) {
		e.of, b = p.plain, append(b[:0], raw...)
	}
	n := len(b)
	b = appendBlock(b, obj.GetLabels())
	if text, ok := p.shared.find(b[n:]); ok {
		e.packed, e.labels = string(b[:n]), text
	} else {
		whole := string(b)
		e.packed, e.labels = whole[:n], whole[n:]
	}
	*buf = kept(b)
	return e
}

// Own returns key and uid in memory of their own, so that what holds them does
// not hold the object that they are from.
func (p *Packer) Own(key kube.Key, uid types.UID) (kube.Key, types.UID) {
	if last := p.space.Load(); last != nil && *last == key.Namespace {
		key.Namespace = *last
	} else {
		namespace := string([]byte(key.Namespace))
		p.space.Store(&namespace)
		key.Namespace = namespace
	}
	both := key.Name + string(uid)
	if uid == "" {
		both = string([]byte(key.Name))
	}
	key.Name, uid = both[:len(key.Name)], types.UID(both[len(key.Name):])
	return key, uid
}

// Open returns the object. It is shared and read-only.
func (e *Entry) Open() (kube.Object, error) {
	if o := e.opened.Load(); o != nil && o.obj != nil {
		return e.of.packer.show(o), nil
	}
	return e.of.packer.open(e)
}

// open decodes the object of e, unless a reader still holds it.
func (p *Packer) open(e *Entry) (kube.Object, error) {
	var obj kube.Object
	var size int64
	for {
		was := e.opened.Load()
		if was != nil {
			if was.obj != nil {
				return p.show(was), nil
			}
			if held := p.held(was); held != nil {
				next := &opened{obj: held, bytes: was.bytes}
				next.shown.Store(true)
				if e.opened.CompareAndSwap(was, next) {
					p.hot.put(e, next)
					return held, nil
				}
				continue
			}
		}
		if obj == nil {
			var err error
			if obj, size, err = p.again(e); err != nil {
				return nil, err
			}
		}
		next := &opened{obj: obj, bytes: size}
		if e.opened.CompareAndSwap(was, next) {
			p.hot.put(e, next)
			p.first(next)
			return obj, nil
		}
	}
}

// unpack calls f with the encoded object of e, valid until f returns, which may
// modify it. A panic is an error.
func (p *Packer) unpack(e *Entry, f func(raw []byte) error) error {
	return encoding.Guard(func() error { return p.expand(e, f) })
}

func (p *Packer) expand(e *Entry, f func(raw []byte) error) error {
	buf := p.buffers.Get().(*[]byte)
	defer p.buffers.Put(buf)
	var raw []byte
	if e.of.expander == nil {
		raw = append((*buf)[:0], e.packed...)
	} else {
		var err error
		raw, err = e.of.expander.Expand((*buf)[:0], unsafe.Slice(unsafe.StringData(e.packed), len(e.packed)))
		if err != nil {
			return fmt.Errorf("expand the packed object: %w", err)
		}
	}
	*buf = kept(raw)
	return f(raw)
}

// again decodes the object of e.
func (p *Packer) again(e *Entry) (obj kube.Object, size int64, err error) {
	p.decoded.Add(1)
	err = p.unpack(e, func(raw []byte) (err error) {
		size = int64(len(raw))
		if obj, err = p.decode(raw); err != nil {
			return fmt.Errorf("decode the packed object: %w", err)
		}
		return nil
	})
	return obj, size, err
}

func (p *Packer) decode(raw []byte) (obj kube.Object, err error) {
	err = encoding.Guard(func() error {
		obj, err = p.form.decode(raw)
		return err
	})
	return obj, err
}

// largestKept is the capacity of a buffer that is kept for reuse.
const largestKept = 256 << 10

func kept(b []byte) []byte {
	if cap(b) > largestKept {
		return nil
	}
	return b[:0]
}

// Stats of a Packer.
type Stats struct {
	// Decoded counts how often an object was expanded and decoded.
	Decoded uint64
	// Hot is how many decoded objects are kept, HotBytes their encoded size.
	Hot      int
	HotBytes int64
}

// Stats returns the present state.
func (p *Packer) Stats() Stats {
	s := Stats{Decoded: p.decoded.Load()}
	s.Hot, s.HotBytes = p.hot.size()
	return s
}
