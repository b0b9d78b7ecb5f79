// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"encoding/json"
	"fmt"
)

// A crdState holds the fields that the environment reads of a CustomResourceDefinition.
type crdState struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// accepted reports whether the API server has accepted the CRD: waiting is why not yet, err why it rejects it.
func (s crdState) accepted() (waiting, err error) {
	waiting = fmt.Errorf("it is not established yet")
	for _, c := range s.Status.Conditions {
		switch {
		case c.Type == "Established" && c.Status == "True":
			waiting = nil
		case c.Type == "NamesAccepted" && c.Status == "False":
			return nil, fmt.Errorf("its names are refused: %s: %s", c.Reason, c.Message)
		}
	}
	return waiting, nil
}

// discovered reports whether an answer of /apis lists a resource. Servers before Kubernetes 1.30 list only groups and
// versions.
func discovered(groups []byte, group, version, resource string) bool {
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Versions []struct {
				Version   string `json:"version"`
				Resources []struct {
					Resource string `json:"resource"`
				} `json:"resources"`
			} `json:"versions"`
		} `json:"items"`
		Groups []struct {
			Name     string `json:"name"`
			Versions []struct {
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"groups"`
	}
	if json.Unmarshal(groups, &list) != nil {
		return false
	}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				if g.Metadata.Name == group && v.Version == version && r.Resource == resource {
					return true
				}
			}
		}
	}
	for _, g := range list.Groups {
		for _, v := range g.Versions {
			if g.Name == group && v.Version == version {
				return true
			}
		}
	}
	return false
}
