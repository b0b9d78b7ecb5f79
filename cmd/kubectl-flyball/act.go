// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/flyball-dev/flyball/internal/commandline"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// done is what an action has done.
type done struct {
	Text string `json:"text"`
}

// act returns the command of an action: POST controllers/CONTROLLER/ACTION.
func act(action string) func(*session, context.Context, []string) (view, error) {
	return func(s *session, ctx context.Context, args []string) (view, error) {
		query := url.Values{}
		if len(args) > 1 {
			key := args[1]
			if s.namespace != "" && !strings.Contains(key, "/") {
				key = s.namespace + "/" + key
			}
			query.Set("key", key)
		}
		if s.all {
			return view{}, commandline.Misusef("-A is not for actions; give one key as NAMESPACE/NAME")
		}
		o, err := s.connect(ctx)
		if err != nil {
			return view{}, err
		}
		raw, err := o.ask(ctx, http.MethodPost, "controllers/"+url.PathEscape(args[0])+"/"+action, query)
		var did done
		if err == nil {
			err = decode(raw, &did)
		}
		return view{raw, func(clock, seen) string { return textlog.Visible(did.Text) + "\n" }}, err
	}
}
