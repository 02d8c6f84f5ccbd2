package kafkatools

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// quotaNames are the quotas of users and clients, and those of addresses.
func quotaNames(kind string) []string {
	if kind == ipEntity {
		return []string{"connection_creation_rate"}
	}
	return []string{"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
}

// quotaType is the protocol's name of a type of entity.
func quotaType(kind string) string {
	return map[string]string{userEntity: "user", clientEntity: "client-id", ipEntity: "ip"}[kind]
}

const (
	scram256 = "SCRAM-SHA-256"
	scram512 = "SCRAM-SHA-512"
)

func isSCRAM(name string) bool { return name == scram256 || name == scram512 }

// alterClients changes quotas, or the passwords of a user.
func (c *call) alterClients(ctx context.Context, k *cluster, entities []entity, add map[string]string, remove []string) error {
	kind := entities[0].kind
	names := slices.Concat(slices.Collect(maps.Keys(add)), remove)
	scram, quotas := 0, 0
	for _, name := range sorted(names) {
		switch {
		case slices.Contains(quotaNames(kind), name):
			quotas++
		case isSCRAM(name) && kind == userEntity && len(entities) == 1:
			scram++
		case kind == ipEntity:
			return misused("Only connection quota configs can be added for 'ips' using --bootstrap-server. Unexpected config names: %s", name)
		case kind == userEntity && len(entities) == 1:
			return misused("Only quota and SCRAM credential configs can be added for 'users' using --bootstrap-server. Unexpected config names: %s", name)
		default:
			return misused("Only quota configs can be added for 'clients' using --bootstrap-server. Unexpected config names: %s", name)
		}
	}
	switch {
	case scram == 0:
		return alterQuotas(ctx, k, entities, add, remove)
	case quotas > 0:
		return misused("Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server.")
	case entities[0].name == "":
		return misused("The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using --bootstrap-server.")
	}
	return alterPasswords(ctx, k, entities[0].name, add, remove)
}

func alterQuotas(ctx context.Context, k *cluster, entities []entity, add map[string]string, remove []string) error {
	before, err := k.quotas(ctx, entities)
	if err != nil {
		return err
	}
	has := func(name string) bool {
		return len(before) > 0 && slices.ContainsFunc(before[0].Values, func(v kadm.ClientQuotaValue) bool { return v.Key == name })
	}
	if unknown := slices.DeleteFunc(slices.Clone(remove), has); len(unknown) > 0 {
		return fmt.Errorf("Invalid config(s): %s", strings.Join(unknown, ",")) //nolint:staticcheck // Kafka's words
	}
	var entry kadm.AlterClientQuotaEntry
	for _, e := range entities {
		one := kadm.ClientQuotaEntityComponent{Type: quotaType(e.kind)}
		if e.name != "" {
			one.Name = &e.name
		}
		entry.Entity = append(entry.Entity, one)
	}
	for _, name := range slices.Sorted(maps.Keys(add)) {
		value, err := strconv.ParseFloat(add[name], 64)
		if err != nil {
			return misused("Cannot parse quota configuration value for %s: %s", name, add[name])
		}
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: name, Value: value})
	}
	for _, name := range remove {
		entry.Ops = append(entry.Ops, kadm.AlterClientQuotaOp{Key: name, Remove: true})
	}
	altered, err := k.admin.AlterClientQuotas(ctx, []kadm.AlterClientQuotaEntry{entry})
	if err != nil {
		return err
	}
	for _, a := range altered {
		if a.Err != nil {
			return said(a.Err, a.ErrMessage)
		}
	}
	return nil
}

// alterPasswords sets and removes what a user logs in with (KIP-554): MECHANISM=[iterations=N,password=TEXT], where the
// brackets are gone already.
func alterPasswords(ctx context.Context, k *cluster, user string, add map[string]string, remove []string) error {
	const iterations = 4096 // the default, and the fewest that a broker takes
	mechanism := func(name string) kadm.ScramMechanism {
		if name == scram256 {
			return kadm.ScramSha256
		}
		return kadm.ScramSha512
	}
	var deletions []kadm.DeleteSCRAM
	for _, name := range remove {
		deletions = append(deletions, kadm.DeleteSCRAM{User: user, Mechanism: mechanism(name)})
	}
	var upserts []kadm.UpsertSCRAM
	format := regexp.MustCompile(`^(?:iterations=(-?[0-9]*),)?password=(.*)$`)
	for name, text := range add {
		found := format.FindStringSubmatch(text)
		if found == nil {
			return misused("Invalid credential property %s: want %s=[iterations=N,password=TEXT]", name, name)
		}
		n := int64(iterations)
		if found[1] != "" && found[1] != "-1" {
			var err error
			if n, err = strconv.ParseInt(found[1], 10, 32); err != nil || n < iterations {
				return misused("Iterations %s is less than the minimum %d required for %s", found[1], iterations, name)
			}
		}
		upserts = append(upserts, kadm.UpsertSCRAM{User: user, Mechanism: mechanism(name), Iterations: int32(n), Password: found[2]})
	}
	altered, err := k.admin.AlterUserSCRAMs(ctx, deletions, upserts)
	if err != nil {
		return err
	}
	for _, a := range altered.Sorted() {
		if a.Err != nil {
			return said(a.Err, a.ErrMessage)
		}
	}
	return nil
}

// quotas asks for the quotas of entities: of exactly these, and of all where there is no name.
func (k *cluster) quotas(ctx context.Context, entities []entity) (kadm.DescribedClientQuotas, error) {
	var components []kadm.DescribeClientQuotaComponent
	for _, e := range entities {
		one := kadm.DescribeClientQuotaComponent{Type: quotaType(e.kind), MatchType: kmsg.QuotasMatchTypeAny}
		switch {
		case e.named && e.name == "":
			one.MatchType = kmsg.QuotasMatchTypeDefault
		case e.named:
			one.MatchType, one.MatchName = kmsg.QuotasMatchTypeExact, &e.name
		}
		components = append(components, one)
	}
	found, err := k.admin.DescribeClientQuotas(ctx, true, components)
	return found, said(err, "")
}

func (c *call) describeQuotas(ctx context.Context, k *cluster, entities []entity) error {
	found, err := k.quotas(ctx, entities)
	if err != nil {
		return err
	}
	var lines []string
	for _, q := range found {
		var who, what []string
		for _, kind := range []string{"user", "client-id", "ip"} {
			for _, e := range q.Entity {
				if e.Type != kind {
					continue
				}
				title := map[string]string{"user": "user-principal", "client-id": "client-id", "ip": "ip"}[kind]
				if e.Name == nil || *e.Name == "" {
					who = append(who, "the default "+title)
				} else {
					who = append(who, title+" '"+*e.Name+"'")
				}
			}
		}
		for _, v := range q.Values {
			what = append(what, v.Key+"="+javaDouble(v.Value))
		}
		lines = append(lines, fmt.Sprintf("Quota configs for %s are %s", strings.Join(who, ", "), strings.Join(what, ", ")))
	}
	for _, line := range sorted(lines) {
		fmt.Fprintln(c.Out, line)
	}
	return nil
}

// describeClients shows quotas, and of users how they may log in.
func (c *call) describeClients(ctx context.Context, k *cluster, entities []entity) error {
	if err := c.describeQuotas(ctx, k, entities); err != nil {
		return err
	}
	var users []string
	for _, e := range entities {
		if e.kind == clientEntity || e.named && e.name == "" {
			return nil
		}
		if e.named {
			users = append(users, e.name)
		}
	}
	described, err := k.admin.DescribeUserSCRAMs(ctx, users...)
	if err != nil {
		return err
	}
	for _, d := range described.Sorted() {
		if d.Err != nil {
			continue // nobody of that name
		}
		var ways []string
		for _, info := range d.CredInfos {
			ways = append(ways, fmt.Sprintf("%s=iterations=%d", info.Mechanism, info.Iterations))
		}
		fmt.Fprintf(c.Out, "SCRAM credential configs for user-principal '%s' are %s\n", d.User, strings.Join(ways, ", "))
	}
	return nil
}

// javaDouble writes a number as Java does: with a digit behind the point, and from ten millions on with an exponent.
func javaDouble(v float64) string {
	if a := max(v, -v); a != 0 && (a < 1e-3 || a >= 1e7) {
		text := strings.ToUpper(strconv.FormatFloat(v, 'e', -1, 64))
		mantissa, exponent, _ := strings.Cut(text, "E")
		if !strings.Contains(mantissa, ".") {
			mantissa += ".0"
		}
		n, _ := strconv.Atoi(exponent)
		return fmt.Sprintf("%sE%d", mantissa, n)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
