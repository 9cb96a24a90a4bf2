package settings

import (
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"macronode/adapters/config"
	"macronode/adapters/httpapi"
	"macronode/core/event"
	"macronode/core/flow"
	"macronode/core/types"
)

// namedSettings are reloadSettings in which names of the configuration stand for numbers.
type settingsByName struct {
	gate      event.Policy
	face      httpapi.ConfigSnapshot
	counted   countedNames
	memory    map[string]int64
	level     slog.Level
	access    bool
	admin     Admin
	ofPeer    peerLimit
	sinks     []Sink
	quotas    map[string]quotaSettings
	upstreams map[string]upstreamSettings
	routes    map[string]routeByName
	proxy     any
}

type quotaSettings struct {
	Core  event.Quota
	Route string
	API   httpapi.Policy
}

type upstreamSettings struct {
	Core      event.Upstream
	Endpoints []string // by the bits that the core has, as the proxy has them
	Proxy     any
}

type routeByName struct {
	Limits   event.RouteLimits
	API      Route
	Proxy    any
	Upstream string
	Parts    []string // upstreams
}

func namedSettings(t *testing.T, c *config.Config, n Numbers, s Reload) settingsByName {
	t.Helper()
	to := settingsByName{face: s.Face, counted: s.Counted, level: s.Level, access: s.Access, admin: s.Admin, ofPeer: s.ofPeer, sinks: s.Sinks, gate: s.Policy, memory: map[string]int64{},
		quotas: map[string]quotaSettings{}, upstreams: map[string]upstreamSettings{}, routes: map[string]routeByName{}}
	to.memory["percent"] = int64(s.Memory.GCPercent())
	for _, part := range s.Memory {
		to.memory[part.Name] = part.Bytes()
	}
	for i := range c.Quotas {
		q := quotaSettings{Core: s.Policy.Quotas[n.rule[i]], API: s.Face.Quotas[n.rule[i]]}
		for r := range c.Routes {
			if int(q.Core.Route) == httpapi.Endpoints()+n.route[r] {
				q.Route = fmt.Sprintf("routes[%d]", r)
			}
		}
		q.Core.Route = 0
		to.quotas[fmt.Sprint(i)] = q
	}
	name := func(number int) string { return n.Upstreams.Names[number] }
	for i := range c.Upstreams {
		core, p := s.Policy.Upstreams[n.upstream[i]], s.Proxy.Upstreams[n.upstream[i]]
		u := upstreamSettings{Core: core}
		for bit, at := range p.URLs {
			if core.Endpoints>>bit&1 == 1 {
				u.Endpoints = append(u.Endpoints, at.String())
			}
		}
		slices.Sort(u.Endpoints) // their numbers are not part of the settings
		u.Core.Endpoints, p.URLs = 0, nil
		u.Proxy = p
		to.upstreams[c.Upstreams[i].Name] = u
	}
	for i := range c.Routes {
		r := routeByName{Limits: s.Policy.Routes[httpapi.Endpoints()+n.route[i]], API: s.Routes[i], Upstream: name(s.Proxy.Routes[i].Upstream)}
		p := s.Proxy.Routes[i]
		p.Parts = slices.Clone(p.Parts)
		for j := range p.Parts {
			r.Parts = append(r.Parts, name(p.Parts[j].Upstream))
			p.Parts[j].Upstream = 0
		}
		if len(p.Parts) > 0 {
			r.Upstream = ""
		}
		p.Upstream, r.API.Number = 0, 0
		r.Proxy = p
		to.routes[fmt.Sprint(i)] = r
	}
	to.gate.Quotas, to.gate.Upstreams, to.gate.Routes, to.gate.ResetQuotas, to.face.Quotas, to.face.Proxy = nil, nil, nil, 0, nil, nil
	slices.Sort(to.counted.Quotas) // they are in the order of their numbers
	p := s.Proxy
	p.Upstreams, p.Routes = nil, nil
	to.proxy = p
	return to
}

// flatSettings returns every field of a value, by its path. Functions are left out.
func flatSettings(v any, path string) map[string]string {
	root := reflect.New(reflect.TypeOf(v)).Elem()
	root.Set(reflect.ValueOf(v))
	all := map[string]string{}
	flatten(root, path, all)
	return all
}

func flatten(v reflect.Value, path string, to map[string]string) {
	if !v.CanInterface() { // a field that is not exported
		v = reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
	}
	switch x := v.Interface().(type) {
	case *url.URL:
		to[path] = x.String()
		return
	case *flow.Terms:
		to[path] = x.String()
		return
	case fmt.Stringer:
		if v.Kind() != reflect.Pointer {
			to[path] = x.String()
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			flatten(v.Field(i), path+"."+v.Type().Field(i).Name, to)
		}
	case reflect.Array:
		for i := range v.Len() {
			flatten(v.Index(i), path+"."+elementName(path, i), to)
		}
	case reflect.Slice:
		if e := v.Type().Elem(); e.Kind() != reflect.Struct || e.Implements(reflect.TypeFor[fmt.Stringer]()) {
			to[path] = fmt.Sprintf("%v", v.Interface())
			return
		}
		for i := range v.Len() {
			flatten(v.Index(i), fmt.Sprintf("%s[%d]", path, i), to)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			in := reflect.New(v.Type().Elem()).Elem()
			in.Set(v.MapIndex(k))
			flatten(in, path+"."+fmt.Sprint(k.Interface()), to)
		}
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return
		}
		in := reflect.New(v.Elem().Type()).Elem()
		in.Set(v.Elem())
		flatten(in, path, to)
	case reflect.Func, reflect.Chan:
	default:
		to[path] = fmt.Sprintf("%v", v.Interface())
	}
}

// elementName returns what an index of an array means: a class or a facet.
func elementName(path string, i int) string {
	switch last := path[strings.LastIndexByte(path, '.')+1:]; last {
	case "Facets":
		return types.Facet(i).String()
	case "Weights", "Class", "Work", "Admission":
		return types.Class(i).String()
	}
	return fmt.Sprint(i)
}
