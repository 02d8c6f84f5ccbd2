package gateway

import (
	"context"
	"net/http"
	"strings"
)

// What all resources of version 3 have in common.

const pathCluster = "/v3/clusters/{cluster_id}"

// metadataV3 says where a resource, or a list of them, is found.
type metadataV3 struct {
	Self         string  `json:"self" doc:"the address of this resource"`
	Next         *string `json:"next,omitempty" doc:"of lists: always absent or null, for they come whole"`
	ResourceName *string `json:"resource_name,omitempty"`
}

// relatedV3 is a link to another resource.
type relatedV3 struct {
	Related string `json:"related"`
}

// listV3 is a list of resources.
type listV3[T any] struct {
	Kind     string     `json:"kind"`
	Metadata metadataV3 `json:"metadata"`
	Data     []T        `json:"data" nullable:"false"`
}

func list[T any](kind, self string, data []T) listV3[T] {
	if data == nil {
		data = []T{}
	}
	return listV3[T]{Kind: kind, Metadata: metadataV3{Self: self}, Data: data}
}

// place is where a resource of the cluster is.
type place struct {
	base    string // http://host/v3/clusters/id
	cluster string
}

// cluster sees that the path names this cluster.
func (c *call) cluster(ctx context.Context) (place, error) {
	id, err := c.g.clusterID(ctx)
	if err != nil {
		return place{}, err
	}
	if asked := c.param("cluster_id"); asked != id {
		return place{}, fail(http.StatusNotFound, "Cluster %.100s cannot be found.", asked)
	}
	return place{base: link(c.base()+"/v3/clusters", id), cluster: id}, nil
}

func (p place) link(parts ...string) string { return link(p.base, parts...) }

func (p place) related(parts ...string) relatedV3 { return relatedV3{Related: p.link(parts...)} }

// metadata gives a resource's: parts are its path below the cluster, alternately a kind in plural and a name.
func (p place) metadata(parts ...string) metadataV3 {
	name := "crn:///kafka=" + p.cluster
	for n, part := range parts {
		if n%2 == 0 {
			name += "/" + strings.TrimSuffix(part, "s") + "="
		} else {
			name += part
		}
	}
	return metadataV3{Self: p.link(parts...), ResourceName: &name}
}
