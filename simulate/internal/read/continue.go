// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// tokenVersion is the only version of continue tokens.
const tokenVersion = "meta.k8s.io/v1"

// continueToken is the content of the token that leads to the next page.
type continueToken struct {
	Version string `json:"v"`
	// Revision of the list; negative: the newest.
	Revision int64 `json:"rv"`
	// Start is where the next page begins, as a path below that of the list.
	Start string `json:"start"`
}

func (t continueToken) encode() string {
	text, _ := json.Marshal(t) // cannot fail for strings and a number
	return base64.RawURLEncoding.EncodeToString(text)
}

// ContinueAfter returns a token that continues a list after a key. The list is of one
// namespace, or of all if it is empty.
func ContinueAfter(namespace string, key types.NamespacedName, revision int64) string {
	return continueFrom(namespace, types.NamespacedName{Namespace: key.Namespace, Name: key.Name + "\x00"}, revision)
}

func continueFrom(namespace string, key types.NamespacedName, revision int64) string {
	start := revisions.PathOf(key)
	if namespace != "" {
		start = strings.TrimPrefix(start, namespace+"/")
	}
	return continueToken{tokenVersion, revision, "/" + start}.encode()
}

var errBadToken = errors.New("continue key is not valid")

// parseContinue reads a token. start has no leading slash.
func parseContinue(token string) (revision int64, start string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return 0, "", fmt.Errorf("%w: %w", errBadToken, err)
	}
	var t continueToken
	if err := json.Unmarshal(text, &t); err != nil {
		return 0, "", fmt.Errorf("%w: %w", errBadToken, err)
	}
	switch {
	case t.Version != tokenVersion:
		return 0, "", fmt.Errorf("%w: server does not recognize this encoded version %s", errBadToken, t.Version)
	case t.Revision == 0:
		return 0, "", fmt.Errorf("%w: incorrect encoded start resourceVersion (version %s)", errBadToken, tokenVersion)
	case t.Start == "":
		return 0, "", fmt.Errorf("%w: encoded start key empty (version %s)", errBadToken, tokenVersion)
	}
	key := "/" + strings.TrimPrefix(t.Start, "/")
	if path.Clean(key) != key { // it leads out of the list
		return 0, "", fmt.Errorf("%w: %s", errBadToken, t.Start)
	}
	return t.Revision, key[1:], nil
}

// ContinueTooOld refuses a page whose revision is compacted. It includes a token that
// continues with the present objects.
func ContinueTooOld(namespace string, from types.NamespacedName) *apierrors.StatusError {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	err.ErrStatus.ListMeta.Continue = continueFrom(namespace, from, -1)
	return err
}
