// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
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
		asked, err := s.actors(ctx, args[0], query.Get("key"), action)
		if err != nil {
			return view{}, err
		}
		raw, err := firstOf(asked, func(o *operator) (json.RawMessage, error) {
			return o.ask(ctx, http.MethodPost, "controllers/"+url.PathEscape(args[0])+"/"+action, query)
		})
		var did done
		if err == nil {
			err = decode(raw, &did)
		}
		return view{raw, func(clock, seen) string { return textlog.Visible(did.Text) + "\n" }}, err
	}
}

// actors returns whom to ask for an action, the likeliest first. Any replica pauses and resumes for all.
func (s *session) actors(ctx context.Context, controller, key, action string) ([]*operator, error) {
	all, err := s.connect(ctx)
	if err != nil || len(all) == 1 || action != "run" {
		return all, err
	}
	answers, err := s.overviews(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range inEffect(answers).Controllers {
		if c.Name == controller {
			return s.ordered(ctx, answers, c, key), nil
		}
	}
	return all, nil
}

// firstOf asks one operator after the other until one neither lacks what was asked for nor refuses it
// because another one has it. It returns the first error if all do.
func firstOf[T any](all []*operator, ask func(*operator) (T, error)) (out T, err error) {
	for i, o := range all {
		got, refused := ask(o)
		if !isElsewhere(refused) {
			return got, refused
		}
		if i == 0 {
			err = refused
		}
	}
	return out, err
}
