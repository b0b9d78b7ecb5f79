// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

// Options say how an informer packs its objects. Zero: it does not.
type Options struct {
	// Codec compresses; nil: objects are not packed.
	Codec Codec
	// HotObjects is how many decoded objects are kept for the next read. 0:
	// 256.
	HotObjects int
	// HotBytes bounds them by the size of their encoded form. In memory they
	// take two to five times as much. 0: 1 MiB.
	HotBytes int64
	// DictionaryBytes is the size of the dictionary. 0: 112 KiB.
	DictionaryBytes int
	// WhenFull: objects are packed only when the memory budget is full.
	WhenFull bool
}

const (
	defaultHotObjects = 256
	defaultHotBytes   = 1 << 20
	defaultDictionary = 112 << 10
)

func (o Options) completed() Options {
	if o.HotObjects <= 0 {
		o.HotObjects = defaultHotObjects
	}
	if o.HotBytes <= 0 {
		o.HotBytes = defaultHotBytes
	}
	if o.DictionaryBytes <= 0 {
		o.DictionaryBytes = defaultDictionary
	}
	return o
}

// Codec compresses bytes with a dictionary: content that they have in common;
// empty: none. Its values can be compared.
type Codec interface {
	Compressor(dictionary []byte) (Compressor, error)
	Expander(dictionary []byte) (Expander, error)
}

// Compressor compresses. Safe for concurrent use.
type Compressor interface {
	// Compress appends the compressed form of object to dst.
	Compress(dst, object []byte) []byte
}

// Expander reverses a Compressor with the same dictionary. Safe for concurrent
// use.
type Expander interface {
	// Expand appends the original bytes to dst. It does not modify packed.
	Expand(dst, packed []byte) ([]byte, error)
}
