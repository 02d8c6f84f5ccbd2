package kafkatools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The types of entities that have configurations.
const (
	topicEntity   = "topics"
	brokerEntity  = "brokers"
	loggerEntity  = "broker-loggers"
	metricsEntity = "client-metrics"
	groupEntity   = "groups"
	userEntity    = "users"
	clientEntity  = "clients"
	ipEntity      = "ips"
)

func entityTypes() []string {
	return []string{loggerEntity, topicEntity, clientEntity, userEntity, brokerEntity, ipEntity, metricsEntity, groupEntity}
}

// entityFlag is an option that gives type and name of an entity at once.
type entityFlag struct {
	name, kind string
	isDefault  bool // it has no argument, and means the default of all
}

func entityFlags() []entityFlag {
	return []entityFlag{
		{"topic", topicEntity, false}, {"client", clientEntity, false}, {"user", userEntity, false}, {"broker", brokerEntity, false},
		{"broker-logger", loggerEntity, false}, {"ip", ipEntity, false}, {"client-metrics", metricsEntity, false}, {"group", groupEntity, false},
		{"client-defaults", clientEntity, true}, {"user-defaults", userEntity, true}, {"broker-defaults", brokerEntity, true}, {"ip-defaults", ipEntity, true},
	}
}

// entity is what has a configuration. Without a name it is all of its type when describing; the default of all has an empty one.
type entity struct {
	kind  string
	name  string
	named bool
}

func configsTool() Tool {
	t := Tool{
		Name:  "kafka-configs",
		About: "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or group",
		options: []option{
			bootstrapOption(), commandConfigOption(),
			{name: "bootstrap-controller", arg: "controller to connect to", about: "Not supported: ask a broker with --bootstrap-server."},
			{name: "alter", about: "Alter the configuration for the entity."},
			{name: "describe", about: "List configs for the given entity."},
			{name: "all", about: "List all configs for the given topic, broker, or broker-logger entity, not only those that were set dynamically."},
			{name: "entity-type", arg: "type", many: true, about: "Type of entity: " + strings.Join(entityTypes(), ", ") + "."},
			{name: "entity-name", arg: "name", many: true, about: "Name of entity: topic name, client id, user principal, broker id, ip, client metrics, group id."},
			{name: "entity-default", about: "The default of the type: clients, users, brokers, ips."},
			{name: "add-config", arg: "k1=v1,k2=[v1,v2]", about: "Configs to add. Square brackets group values which contain commas."},
			{name: "add-config-file", arg: "file", about: "Properties file with configs to add."},
			{name: "delete-config", arg: "k1,k2", many: true, about: "Config keys to remove."},
			{name: "force", about: "Nothing is asked anyhow."},
		},
		run: func(ctx context.Context, c *call) error {
			entities, err := c.checkConfigs()
			if err != nil {
				return err
			}
			return c.administer(ctx, func(ctx context.Context, k *cluster) error {
				if c.has("alter") {
					return c.alterConfigs(ctx, k, entities)
				}
				return c.describeConfigs(ctx, k, entities)
			})
		},
	}
	for _, f := range entityFlags() {
		o := option{name: f.name, about: "The same as --entity-type " + f.kind}
		if f.isDefault {
			o.about += " --entity-default."
		} else {
			o.arg, o.about = "name", o.about+" --entity-name."
		}
		t.options = append(t.options, o)
	}
	return t
}

// checkConfigs finds what is wrong with the options, and gives the entities that are meant: one, or a user and a client.
func (c *call) checkConfigs() ([]entity, error) {
	if _, err := c.exactlyOne("describe", "alter"); err != nil {
		return nil, err
	}
	if c.has("bootstrap-controller") {
		return nil, misused("--bootstrap-controller isn't supported: ask a broker with --bootstrap-server")
	}
	entities, err := c.entities()
	if err != nil {
		return nil, err
	}
	if c.has("describe") {
		err = errors.Join(c.apart("describe", "add-config", "add-config-file", "delete-config"), nil)
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entities {
		switch {
		case e.named && e.name != "" && (e.kind == brokerEntity || e.kind == loggerEntity):
			if _, err := strconv.ParseInt(e.name, 10, 32); err != nil {
				return nil, misused("The entity name for %s must be a valid integer broker id, but it is: %s", e.kind, e.name)
			}
		case !e.named && (c.has("alter") || e.kind == loggerEntity):
			return nil, misused("an entity name must be specified with %s of %s", c.action(), e.kind)
		case e.named && e.name == "" && c.has("alter") && slices.Contains([]string{topicEntity, loggerEntity, metricsEntity, groupEntity}, e.kind):
			return nil, misused("an entity-name must be specified with --alter of %s", e.kind)
		}
	}
	if c.has("alter") && c.count("add-config", "add-config-file", "delete-config") == 0 {
		return nil, misused("At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter")
	}
	return entities, c.apart("add-config", "add-config-file")
}

func (c *call) action() string {
	if c.has("alter") {
		return "--alter"
	}
	return "--describe"
}

// entities puts types and names together. Names go to the types in their order.
func (c *call) entities() ([]entity, error) {
	var all []entity
	for _, kind := range c.values["entity-type"] {
		all = append(all, entity{kind: kind})
	}
	var names []string
	given := slices.Clone(c.values["entity-name"])
	for _, name := range c.order {
		switch name {
		case "entity-name":
			names, given = append(names, given[0]), given[1:]
		case "entity-default":
			names = append(names, "")
		}
	}
	if len(names) > len(all) {
		return nil, misused("More entity names specified than entity types")
	}
	for i, name := range names {
		all[i].name, all[i].named = name, true
	}
	for _, f := range entityFlags() {
		if !c.has(f.name) {
			continue
		}
		if c.count("entity-type", "entity-name", "entity-default") > 0 {
			return nil, misused("--entity-{type,name,default} should not be used in conjunction with specific entity flags")
		}
		all = append(all, entity{f.kind, c.text(f.name), true})
	}
	switch {
	case len(all) == 0:
		return nil, misused("At least one entity type must be specified")
	case len(all) > 2 || len(all) == 2 && !(all[0].kind == userEntity && all[1].kind == clientEntity || all[0].kind == clientEntity && all[1].kind == userEntity):
		return nil, misused("Only 'users' and 'clients' entity types may be specified together, each once")
	}
	for _, e := range all {
		if !slices.Contains(entityTypes(), e.kind) {
			return nil, misused("Invalid entity type %s, the entity type must be one of %s with the --bootstrap-server argument", e.kind, strings.Join(entityTypes(), ", "))
		}
	}
	return all, nil
}

// added reads --add-config and --add-config-file.
func (c *call) added() (map[string]string, error) {
	all := map[string]string{}
	if c.has("add-config-file") {
		p, err := loadProperties(c.text("add-config-file"))
		if err != nil {
			return nil, err
		}
		all = p.values
	}
	if c.has("add-config") {
		for _, pair := range splitConfigs(c.text("add-config")) {
			name, value, ok := strings.Cut(pair, "=")
			if !ok {
				return nil, misused("Invalid entity config: all configs to be added must be in the format \"key=val\" or \"key=[val1,val2]\" to group values which contain commas.")
			}
			all[strings.TrimSpace(name)] = strings.TrimSpace(strings.NewReplacer("[", "", "]", "").Replace(value))
		}
	}
	valid := regexp.MustCompile(`^[$a-zA-Z0-9._-]*$`)
	for name := range all {
		if !valid.MatchString(name) {
			return nil, misused("Invalid character found for config key: %s", name)
		}
	}
	return all, nil
}

// splitConfigs splits at the commas that aren't between square brackets.
func splitConfigs(text string) (pairs []string) {
	begin, inside := 0, false
	for i, r := range text {
		switch {
		case r == '[':
			inside = true
		case r == ']':
			inside = false
		case r == ',' && !inside:
			pairs, begin = append(pairs, text[begin:i]), i+1
		}
	}
	return append(pairs, text[begin:])
}

// deleted reads --delete-config.
func (c *call) deleted() (names []string) {
	for _, list := range c.values["delete-config"] {
		for _, name := range strings.Split(list, ",") {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

func (c *call) alterConfigs(ctx context.Context, k *cluster, entities []entity) error {
	add, err := c.added()
	if err != nil {
		return err
	}
	e := entities[0]
	switch e.kind {
	case userEntity, clientEntity, ipEntity:
		err = c.alterClients(ctx, k, entities, add, c.deleted())
	default:
		err = c.alterResource(ctx, k, e, add, c.deleted())
	}
	if err != nil {
		return err
	}
	if e.name != "" {
		fmt.Fprintf(c.Out, "Completed updating config for %s %s.\n", e.kind[:len(e.kind)-1], e.name)
	} else {
		fmt.Fprintf(c.Out, "Completed updating default config for %s in the cluster.\n", e.kind)
	}
	return nil
}

// resourceTypes are the types of the protocol, and the source that a configuration which was set dynamically has.
func resourceType(kind string) (kmsg.ConfigResourceType, string) {
	switch kind {
	case topicEntity:
		return kmsg.ConfigResourceTypeTopic, "DYNAMIC_TOPIC_CONFIG"
	case brokerEntity:
		return kmsg.ConfigResourceTypeBroker, "DYNAMIC_BROKER_CONFIG"
	case loggerEntity:
		return kmsg.ConfigResourceTypeBrokerLogger, ""
	case metricsEntity:
		return kmsg.ConfigResourceTypeClientMetrics, "CLIENT_METRICS_CONFIG"
	}
	return kmsg.ConfigResourceTypeGroupConfig, "GROUP_CONFIG"
}

// resourceConfigs asks for the configuration of one resource, by name: all of it, or what was set dynamically.
func (k *cluster) resourceConfigs(ctx context.Context, e entity, all bool) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	kind, source := resourceType(e.kind)
	if e.kind == brokerEntity && e.name == "" {
		source = "DYNAMIC_DEFAULT_BROKER_CONFIG"
	}
	request := kmsg.NewPtrDescribeConfigsRequest()
	request.IncludeSynonyms = true
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kind, e.name
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, k.Client)
	if err != nil {
		return nil, err
	}
	var found []kmsg.DescribeConfigsResponseResourceConfig
	for _, r := range response.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return nil, said(err, unnil(r.ErrorMessage))
		}
		for _, config := range r.Configs {
			if all || source == "" || config.Source.String() == source {
				found = append(found, config)
			}
		}
	}
	slices.SortFunc(found, func(x, y kmsg.DescribeConfigsResponseResourceConfig) int { return strings.Compare(x.Name, y.Name) })
	return found, nil
}

func (c *call) alterResource(ctx context.Context, k *cluster, e entity, add map[string]string, remove []string) error {
	if e.kind == loggerEntity {
		known, err := k.resourceConfigs(ctx, e, true)
		if err != nil {
			return err
		}
		var unknown []string
		for _, name := range slices.Concat(remove, slices.Collect(maps.Keys(add))) {
			if !slices.ContainsFunc(known, func(c kmsg.DescribeConfigsResponseResourceConfig) bool { return c.Name == name }) {
				unknown = append(unknown, name)
			}
		}
		if len(unknown) > 0 {
			return fmt.Errorf("Invalid broker logger(s): %s", strings.Join(sorted(unknown), ",")) //nolint:staticcheck // Kafka's words
		}
	}
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceName = e.name
	resource.ResourceType, _ = resourceType(e.kind)
	change := func(name string, op kmsg.IncrementalAlterConfigOp, value *string) {
		config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		config.Name, config.Op, config.Value = name, op, value
		resource.Configs = append(resource.Configs, config)
	}
	for _, name := range remove {
		change(name, kmsg.IncrementalAlterConfigOpDelete, nil)
	}
	for name, value := range add {
		change(name, kmsg.IncrementalAlterConfigOpSet, &value)
	}
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, k.Client)
	if err != nil {
		return err
	}
	for _, r := range response.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			return said(err, unnil(r.ErrorMessage))
		}
	}
	return nil
}

func (c *call) describeConfigs(ctx context.Context, k *cluster, entities []entity) error {
	e := entities[0]
	switch e.kind {
	case ipEntity:
		return c.describeQuotas(ctx, k, entities)
	case userEntity, clientEntity:
		return c.describeClients(ctx, k, entities)
	}
	known, err := k.entitiesOf(ctx, e.kind)
	if err != nil {
		return err
	}
	if e.named {
		if !c.has("all") && !slices.Contains(known, e.name) {
			fmt.Fprintf(c.Out, "The %s '%s' doesn't exist and doesn't have dynamic config.\n", e.kind[:len(e.kind)-1], e.name)
			return nil
		}
		known = []string{e.name}
	}
	for _, name := range known {
		one := entity{e.kind, name, true}
		configs, err := k.resourceConfigs(ctx, one, c.has("all"))
		if err != nil {
			return err
		}
		c.printConfigs(one, configs)
	}
	return nil
}

// entitiesOf lists what there is of a type, and the default of all, "", where there is such.
func (k *cluster) entitiesOf(ctx context.Context, kind string) ([]string, error) {
	switch kind {
	case topicEntity:
		topics, err := k.admin.ListTopicsWithInternal(ctx)
		return topics.Names(), err
	case brokerEntity, loggerEntity:
		brokers, err := k.admin.ListBrokers(ctx)
		var names []string
		for _, id := range brokers.NodeIDs() {
			names = append(names, strconv.Itoa(int(id)))
		}
		if kind == brokerEntity {
			names = append(names, "")
		}
		return names, err
	}
	var names []string
	if kind == groupEntity {
		groups, err := k.admin.ListGroups(ctx)
		if err != nil {
			return nil, err
		}
		names = groups.Groups()
	}
	request := kmsg.NewPtrListConfigResourcesRequest()
	resource, _ := resourceType(kind)
	if kind == groupEntity {
		request.ResourceTypes = []int8{int8(resource)} // older brokers know only client metrics, and don't want to be told
	}
	response, err := request.RequestWith(ctx, k.Client)
	if err == nil {
		err = said(kerr.ErrorForCode(response.ErrorCode), "")
	}
	if err != nil {
		if kind == groupEntity { // such a cluster keeps no configurations of groups that aren't there
			return names, nil
		}
		return nil, err
	}
	for _, r := range response.ConfigResources {
		if !slices.Contains(names, r.Name) {
			names = append(names, r.Name)
		}
	}
	return sorted(names), nil
}

func (c *call) printConfigs(e entity, configs []kmsg.DescribeConfigsResponseResourceConfig) {
	scope := "Dynamic"
	if c.has("all") {
		scope = "All"
	}
	if e.name == "" {
		fmt.Fprintf(c.Out, "Default configs for %s in the cluster are:\n", e.kind)
	} else {
		fmt.Fprintf(c.Out, "%s configs for %s %s are:\n", scope, e.kind[:len(e.kind)-1], e.name)
	}
	for _, config := range configs {
		var synonyms []string
		for _, s := range config.ConfigSynonyms {
			synonyms = append(synonyms, javaSource(s.Source)+":"+s.Name+"="+javaText(s.Value))
		}
		fmt.Fprintf(c.Out, "  %s=%s sensitive=%t synonyms={%s}\n", config.Name, javaText(config.Value), config.IsSensitive, strings.Join(synonyms, ", "))
	}
}

// javaSource is the name that Kafka's client has for where a configuration comes from.
func javaSource(s kmsg.ConfigSource) string {
	switch s.String() {
	case "CLIENT_METRICS_CONFIG":
		return "DYNAMIC_CLIENT_METRICS_CONFIG"
	case "GROUP_CONFIG":
		return "DYNAMIC_GROUP_CONFIG"
	}
	return s.String()
}
