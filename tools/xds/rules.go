package xds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	ratelimit "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// root is one file of rules.
type root struct {
	Domain      string       `yaml:"domain"`
	Descriptors []descriptor `yaml:"descriptors,omitempty"`
}

type descriptor struct {
	Key            string         `yaml:"key"`
	Value          string         `yaml:"value,omitempty"`
	RateLimit      *policy        `yaml:"rate_limit,omitempty"`
	Descriptors    []descriptor   `yaml:"descriptors,omitempty"`
	ShadowMode     bool           `yaml:"shadow_mode,omitempty"`
	DetailedMetric bool           `yaml:"detailed_metric,omitempty"`
	QuotaMode      bool           `yaml:"quota_mode,omitempty"`
	Metadata       map[string]any `yaml:"metadata,omitempty"`
}

type policy struct {
	RequestsPerUnit uint32    `yaml:"requests_per_unit"`
	Unit            string    `yaml:"unit,omitempty"`
	Unlimited       bool      `yaml:"unlimited,omitempty"`
	Name            string    `yaml:"name,omitempty"`
	Replaces        []replace `yaml:"replaces,omitempty"`
}

type replace struct {
	Name string `yaml:"name"`
}

// Files returns the files of rules that resources, RateLimitConfigs, stand for, by their names. A name depends only on the
// domain and the name of the resource. It is one element of a path, ends in .yaml and does not begin with a dot. The error
// says that a resource is of another type, has fields that are not known here, or is there twice.
func Files(resources []*anypb.Any) (map[string][]byte, error) {
	files := make(map[string][]byte, len(resources))
	for _, resource := range resources {
		c := new(ratelimit.RateLimitConfig)
		if err := resource.UnmarshalTo(c); err != nil {
			return nil, fmt.Errorf("resource: %w", err)
		}
		if hasUnknown(c.ProtoReflect()) {
			return nil, fmt.Errorf("resource %q has fields that are not known here", c.GetName())
		}
		text, err := yaml.Marshal(root{c.GetDomain(), descriptors(c.GetDescriptors())})
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", c.GetName(), err)
		}
		name := fileName(c)
		if files[name] != nil {
			return nil, fmt.Errorf("resource %q is there twice", c.GetName())
		}
		files[name] = text
	}
	return files, nil
}

// readable is the maximum number of letters of the domain in the name of a file.
const readable = 40

// fileName returns the name of the file of c: readable letters of its domain, and a hash of domain and name.
func fileName(c *ratelimit.RateLimitConfig) string {
	domain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, c.GetDomain())
	hash := sha256.Sum256([]byte(c.GetDomain() + "\x00" + c.GetName()))
	return "rules-" + domain[:min(len(domain), readable)] + "-" + hex.EncodeToString(hash[:8]) + ".yaml"
}

// hasUnknown reports whether m, or a message in it, has a field that its type does not have. Such a field may change what
// a limit means.
func hasUnknown(m protoreflect.Message) (unknown bool) {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil || f.IsMap():
		case f.IsList():
			for i := range v.List().Len() {
				unknown = unknown || hasUnknown(v.List().Get(i).Message())
			}
		default:
			unknown = hasUnknown(v.Message())
		}
		return !unknown
	})
	return unknown
}

func descriptors(all []*ratelimit.RateLimitDescriptor) []descriptor {
	list := make([]descriptor, len(all))
	for i, d := range all {
		list[i] = descriptor{
			Key: d.GetKey(), Value: d.GetValue(), RateLimit: limit(d.GetRateLimit()), Descriptors: descriptors(d.GetDescriptors()),
			ShadowMode: d.GetShadowMode(), DetailedMetric: d.GetDetailedMetric(), QuotaMode: d.GetQuotaMode(), Metadata: d.GetMetadata().AsMap(),
		}
	}
	return list
}

// limit returns the rate_limit of a descriptor, or nil if it has none.
func limit(p *ratelimit.RateLimitPolicy) *policy {
	if p == nil {
		return nil
	}
	l := &policy{RequestsPerUnit: p.GetRequestsPerUnit(), Unlimited: p.GetUnlimited(), Name: p.GetName()}
	if p.GetUnit() != ratelimit.RateLimitUnit_UNKNOWN {
		l.Unit = strings.ToLower(p.GetUnit().String())
	}
	for _, r := range p.GetReplaces() {
		l.Replaces = append(l.Replaces, replace{r.GetName()})
	}
	return l
}
