package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/barnabas-mq/barnabas/core/config"
)

// The origins of values that a running broker has, and that no file says here.
const (
	originDynamic        = "dynamic, this broker"
	originDynamicDefault = "dynamic, all brokers"
	originElsewhere      = "static, at the broker"
)

// noBroker leaves the choice of the broker to the configuration.
const noBroker int32 = -1

// liveSettings asks a broker for its properties, and says where each value comes from, as far as the settings of a configuration know.
func (a *app) liveSettings(cmd *cobra.Command, at remote, id, configured int32, local []setting) ([]setting, error) {
	var all []setting
	err := at.administer(cmd, func(ctx context.Context, admin *kadm.Client) error {
		if id == noBroker {
			brokers, err := admin.ListBrokers(ctx)
			if err != nil {
				return fmt.Errorf("list the brokers: %w", err)
			}
			if id, err = whichBroker(brokers.NodeIDs(), configured); err != nil {
				return err
			}
		}
		described, err := admin.DescribeBrokerConfigs(ctx, id)
		if err != nil {
			return fmt.Errorf("ask broker %d for its configuration: %w", id, err)
		}
		for _, resource := range described {
			if resource.Err != nil {
				return fmt.Errorf("ask broker %d for its configuration: %w", id, detailed(resource.Err, resource.ErrMessage))
			}
			all = merge(local, resource.Configs)
		}
		return nil
	})
	return all, err
}

// whichBroker is the one that the configuration is for, or the only one.
func whichBroker(ids []int32, configured int32) (int32, error) {
	if slices.Contains(ids, configured) {
		return configured, nil
	}
	if len(ids) == 1 {
		return ids[0], nil
	}
	return 0, wrong(fmt.Errorf("--broker: which one? There are %s", numbers(ids)))
}

// merge puts what a broker has in place of what the configuration says. What has no effect and isn't set is left out.
func merge(local []setting, live []kadm.Config) []setting {
	known := map[string]setting{}
	for _, s := range local {
		known[s.Key] = s
	}
	var all []setting
	for _, one := range live {
		key := "broker." + one.Key
		here, there := known[key]
		if !there {
			here = setting{Key: key, From: originDefault, NoEffect: true}
			if one.Source == kmsg.ConfigSourceDefaultConfig {
				continue
			}
		}
		all = append(all, now(here, one))
	}
	slices.SortFunc(all, func(a, b setting) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// now is a setting as the broker has it.
func now(here setting, live kadm.Config) setting {
	s := setting{Key: here.Key, NoEffect: here.NoEffect}
	switch {
	case live.Value != nil:
		s.Value = *live.Value
	case live.Sensitive && live.Source != kmsg.ConfigSourceDefaultConfig:
		s.Value = config.Hidden
	}
	same := here.From != originDefault && (here.Value == s.Value || live.Sensitive)
	switch live.Source {
	case kmsg.ConfigSourceDynamicBrokerConfig:
		s.From = originDynamic
	case kmsg.ConfigSourceDynamicDefaultBrokerConfig:
		s.From = originDynamicDefault
	case kmsg.ConfigSourceStaticBrokerConfig:
		s.From = originElsewhere
		if same {
			s.From = here.From
		}
	default:
		s.From = originDefault
	}
	if here.From != originDefault && s.From != here.From {
		s.From += "; not " + here.From
	}
	return s
}

// errBrokerAlone refuses to choose a broker when none is asked.
var errBrokerAlone = errors.New("--broker: only with --bootstrap-server")
