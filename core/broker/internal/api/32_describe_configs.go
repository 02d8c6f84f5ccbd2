package api

import (
	"context"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/broker/internal/controller"
	"github.com/barnabas-mq/barnabas/core/config/kafka"
)

// DescribeConfigs (key 32): v0-4
//
// Behaviour:
//   - Lists the settings of a topic, of this broker (its id), or those that were changed for all brokers (""): all, or those
//     that are named. Unknown names are left out.
//   - Values say where they come from, with synonyms if asked: all places that have a say, the one that wins first. What is
//     secret has no value.
//   - Lists the levels of this broker's loggers (KIP-412), unless its level was fixed when it started: then there are none.
//
// Versions:
//
//	v1: source and synonyms instead of whether it is the default (KIP-226)
//	v2: answered before throttling (KIP-219)
//	v3: type and documentation (KIP-569)
//	v4: flexible
func (h *handlers) describeConfigs(_ context.Context, r *Request) Reply {
	req := r.Body.(*kmsg.DescribeConfigsRequest)
	resp := kmsg.NewPtrDescribeConfigsResponse()
	for i := range req.Resources {
		in := &req.Resources[i]
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = in.ResourceType, in.ResourceName
		entries, err := h.describe(in.ResourceType, in.ResourceName)
		out.ErrorCode, out.ErrorMessage = code(err), kmsg.StringPtr("")
		if err != nil && out.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			out.ErrorMessage = message(err)
		}
		for _, e := range entries {
			if len(in.ConfigNames) == 0 || slices.Contains(in.ConfigNames, e.Name) {
				out.Configs = append(out.Configs, describedEntry(req, &e))
			}
		}
		resp.Resources = append(resp.Resources, out)
	}
	return r.Answer(resp)
}

// describe lists all settings of a resource.
func (h *handlers) describe(kind kmsg.ConfigResourceType, name string) ([]kafka.Entry, error) {
	switch kind {
	case kmsg.ConfigResourceTypeTopic:
		if err := controller.CheckTopicName(name); err != nil {
			return nil, err
		}
		if _, ok := h.Cluster.Metadata.Snapshot().Topic(name); !ok {
			return nil, refuse(kerr.UnknownTopicOrPartition, "The topic '"+name+"' does not exist.")
		}
		return h.layers().DescribeTopic(h.Cluster.Configs.Topic(name)), nil
	case kmsg.ConfigResourceTypeBroker:
		if name == "" {
			return h.layers().DescribeDefault(), nil
		}
		if err := h.checkBrokerName(name); err != nil {
			return nil, err
		}
		return h.layers().DescribeBroker(), nil
	case kmsg.ConfigResourceTypeBrokerLogger:
		if name == "" {
			return nil, refuse(kerr.InvalidRequest, "Broker id must not be empty")
		}
		if err := h.checkBrokerName(name); err != nil {
			return nil, err
		}
		return h.describeLoggers(), nil
	}
	return nil, refuse(kerr.InvalidRequest, "Unsupported resource type: "+strconv.Itoa(int(kind)))
}

func describedEntry(req *kmsg.DescribeConfigsRequest, e *kafka.Entry) kmsg.DescribeConfigsResponseResourceConfig {
	out := kmsg.NewDescribeConfigsResponseResourceConfig()
	out.Name, out.Value, out.ReadOnly, out.IsSensitive = e.Name, e.Value, e.ReadOnly, e.Sensitive
	out.Source, out.ConfigType = kmsg.ConfigSource(e.Source), kmsg.ConfigType(e.Type)
	// IsDefault, which only version 0 has, stays false: Kafka never sets it.
	if req.IncludeSynonyms {
		for _, s := range e.Synonyms {
			out.ConfigSynonyms = append(out.ConfigSynonyms, kmsg.DescribeConfigsResponseResourceConfigConfigSynonym{
				Name: s.Name, Value: s.Value, Source: kmsg.ConfigSource(s.Source)})
		}
	}
	if req.IncludeDocumentation {
		out.Documentation = &e.Doc
	}
	return out
}
