package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"

	"macronode/adapters/fs"
)

// Sources are the layers other than the defaults.
type Sources struct {
	File      string   // a YAML file; empty for none
	Environ   []string // as returned by os.Environ
	Elsewhere []string // variables named MACRONODE_… that are not keys
	Flags     []Flag
	Sections  []Section // of planes, beside those of the tree
}

// A Flag sets a key on the command line.
type Flag struct {
	Name string // as written on the command line
	Key  string
	Text string
}

// Load fills the tree from its layers, each overriding the one before, and checks the result. It
// returns all errors joined, one sentence each, with the key, the layer and the allowed values.
func Load(s Sources) (*Config, error) {
	c := &Config{from: map[string]string{}}
	c.addSections(s.Sections)
	l := &layers{keys: keys(c), from: c.from}
	l.defaults()
	if s.File != "" {
		l.file(s.File)
	}
	l.environ(s.Environ, s.Elsewhere)
	for _, f := range s.Flags {
		l.set(f.Key, "flag "+f.Name, f.Text)
	}
	if len(l.wrong) > 0 {
		return nil, errors.Join(l.wrong...)
	}
	l.follow()
	c.complete()
	if wrong := c.Check(); len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	return c, nil
}

// FileLogFormat returns log.format from a file even if the rest is invalid, because the error
// about it may have to be logged. It returns "" if the file cannot be read, is not YAML, or does
// not have the key.
func FileLogFormat(path string) string {
	k := koanf.New(".")
	if path == "" || k.Load(regularFile(path), yaml.Parser()) != nil {
		return ""
	}
	return k.String("log.format")
}

// DataDir returns the data directory even if the rest of the configuration is invalid. It returns false if the file may
// name it and cannot be read or is not YAML.
func DataDir(s Sources) (dir string, ok bool) {
	for _, f := range s.Flags {
		if f.Key == "data" {
			dir = f.Text
		}
	}
	for _, v := range s.Environ {
		if text, is := strings.CutPrefix(v, prefix+"DATA="); is && dir == "" {
			dir = text
		}
	}
	if dir != "" {
		return dir, true
	}
	k := koanf.New(".")
	if s.File != "" && k.Load(regularFile(s.File), yaml.Parser()) != nil {
		return "", false
	}
	if k.Exists("data") {
		dir, ok = k.Get("data").(string)
		return dir, ok && dir != ""
	}
	c := new(Config)
	for _, data := range keys(c) {
		if data.path == "data" {
			data.reset()
		}
	}
	return c.Data, true
}

// regularFile is the path of a configuration file. A named pipe in its place is an error, not a wait.
type regularFile string

func (f regularFile) ReadBytes() ([]byte, error) { return fs.ReadRegular(string(f)) }

func (regularFile) Read() (map[string]any, error) { return nil, errors.ErrUnsupported }

// layers collects values, their layers, and errors.
type layers struct {
	keys  []key
	from  map[string]string
	wrong []error
}

func (l *layers) refuse(format string, args ...any) {
	l.wrong = append(l.wrong, fmt.Errorf(format, args...))
}

func (l *layers) find(path string) (key, bool) {
	i := slices.IndexFunc(l.keys, func(k key) bool { return k.path == path })
	if i < 0 {
		return key{}, false
	}
	return l.keys[i], true
}

func (l *layers) defaults() {
	for _, k := range l.keys {
		if _, ok := k.follows(); ok {
			continue
		}
		k.reset()
	}
}

// follow sets each unset key that follows another to the value of that key.
func (l *layers) follow() {
	for _, k := range l.keys {
		if path, ok := k.follows(); ok && l.from[k.path] == "" {
			leader, _ := l.find(path)
			k.value.Set(leader.value)
		}
	}
}

// set sets the key at path from a layer.
func (l *layers) set(path, layer string, value any) {
	k, ok := l.find(path)
	if !ok {
		l.refuse("%s (%s) is not a configuration key: %s", path, layer, l.near(path))
		return
	}
	text, ok := value.(string)
	written := strings.HasPrefix(layer, fileLayer)
	if isList(k.value.Type()) {
		var err error
		if !written {
			value, err = unjson(text)
		}
		if err != nil {
			l.refuse("%s (%s) is not JSON: %w", path, layer, err)
			return
		}
		l.list(k, layer, value)
		l.from[path] = layer
		return
	}
	if written {
		text, ok = k.scalar(value)
	}
	if !ok || !utf8.ValidString(text) || parse(k.value, text) != nil { // the value could not be written to a file
		l.refuse("%s (%s) is %s: must be %s", path, layer, shown(value), k.wants())
		return
	}
	l.from[path] = layer
}

// password is that of a URL.
var password = regexp.MustCompile(`(://[^/@]*?:).*@`)

// shown returns how an error shows a value: it may go to a log, so the password of a URL is left out.
func shown(value any) string {
	switch v := value.(type) {
	case nil:
		return "empty"
	case string:
		return fmt.Sprintf("%q", password.ReplaceAllString(v, "${1}***@"))
	case []any:
		return "a list"
	case map[string]any, map[any]any:
		return "a section"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// near lists the keys beside a key that does not exist.
func (l *layers) near(path string) string {
	for {
		at := strings.LastIndexByte(path, '.')
		path = path[:max(at, 0)]
		section, in := "", "valid sections: "
		if path != "" {
			section, in = path+".", "valid keys in "+path+": "
		}
		var names []string
		for _, k := range l.keys {
			if rest, ok := strings.CutPrefix(k.path, section); ok {
				name, _, _ := strings.Cut(rest, ".")
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			slices.Sort(names)
			return in + strings.Join(slices.Compact(names), ", ")
		}
	}
}

const fileLayer = "file "

// file reads a YAML file: one document, a mapping of sections.
func (l *layers) file(path string) {
	k := koanf.New(".")
	if err := k.Load(regularFile(path), oneDocument{yaml.Parser()}); err != nil {
		l.refuse("%s%s %w", fileLayer, path, unread(err))
		return
	}
	l.section("", fileLayer+path, k.Raw())
}

// section sets the keys of a section of the file. An empty section sets nothing.
func (l *layers) section(prefix, layer string, values map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		path, value := prefix+name, values[name]
		inside := path + "."
		if !slices.ContainsFunc(l.keys, func(k key) bool { return strings.HasPrefix(k.path, inside) }) {
			l.set(path, layer, value)
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			l.section(inside, layer, v)
		case nil:
		default:
			l.refuse("%s (%s) is %s: must be a section, %s", path, layer, shown(v), l.near(inside))
		}
	}
}

// environ sets keys from the environment. Names are in upper case, with two underscores between
// section and key.
func (l *layers) environ(environ, elsewhere []string) {
	variables := map[string]any{}
	k := koanf.New(".")
	err := k.Load(env.Provider("", env.Opt{Prefix: prefix, EnvironFunc: func() []string { return environ }}), nil)
	if err != nil {
		l.refuse("the environment cannot be read: %w", err)
		return
	}
	maps.Copy(variables, k.Raw())
	for _, known := range l.keys {
		if text, ok := variables[known.variable()]; ok {
			l.set(known.path, "environment "+known.variable(), text)
			delete(variables, known.variable())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		text, _ := variables[name].(string)
		if !slices.Contains(elsewhere, name) && !isServiceLink(name, text) {
			l.refuse("%s (environment) is not a configuration key: %s", name, l.nearVariable(name))
		}
	}
}

// serviceLink matches the variables that Kubernetes sets in each container for a Service whose
// name begins with macronode, as Docker does for links.
var serviceLink = regexp.MustCompile(`^` + prefix + `([A-Z0-9]+_)*(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9]+)*|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// serviceURL matches the one whose name could be a key: its value decides.
var serviceURL = regexp.MustCompile(`^` + prefix + `([A-Z0-9]+_)*PORT$`)

// isServiceLink reports whether a variable belongs to a Service, such as MACRONODE_SERVICE_HOST
// or MACRONODE_PORT=tcp://10.0.0.7:8080.
func isServiceLink(name, value string) bool {
	return serviceLink.MatchString(name) || serviceURL.MatchString(name) && strings.Contains(value, "://")
}

// nearVariable returns the key that an unknown variable probably means, or the keys beside it.
func (l *layers) nearVariable(name string) string {
	single := func(variable string) string { return strings.ReplaceAll(variable, "__", "_") }
	best := ""
	for _, k := range l.keys {
		switch variable := k.variable(); {
		case single(variable) == single(strings.ToUpper(name)):
			return "did you mean " + variable + "? Two underscores separate section and key"
		case best == "" || distance(name, variable) < distance(name, best):
			best = variable
		}
	}
	if distance(name, best) <= 2 {
		return best + " is one"
	}
	return l.near(strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, prefix), "__", ".")))
}

// oneDocument rejects a second document, which would be ignored, and a file without a byte: it is what a full disk leaves of an edit, and
// a reload of it would remove all routes.
type oneDocument struct{ koanf.Parser }

var (
	errDocuments = errors.New("has more than one document: one is allowed")
	errEmpty     = errors.New("is empty: a file with no keys, for the defaults, has {} or a comment")
)

func (p oneDocument) Unmarshal(b []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(b)) == 0 {
		return nil, errEmpty
	}
	begun := false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" || line[0] == '#' || line[0] == '%' {
			continue
		}
		if mark := line == "---" || strings.HasPrefix(line, "--- ") || line == "..."; mark && begun {
			return nil, errDocuments
		}
		begun = true
	}
	return p.Parser.Unmarshal(b)
}

var twice = regexp.MustCompile(`line (\d+): mapping key "(.*)" already defined at line (\d+)`)

// unread returns one sentence on why the file has no values.
func unread(err error) error {
	var path *os.PathError
	switch found := twice.FindStringSubmatch(err.Error()); {
	case errors.Is(err, errDocuments), errors.Is(err, errEmpty):
		return err
	case errors.As(err, &path):
		return fmt.Errorf("cannot be read: %w", path.Err)
	case found != nil:
		return fmt.Errorf("has the key %s twice, in lines %s and %s: once is allowed", found[2], found[3], found[1])
	case strings.Contains(err.Error(), "cannot unmarshal"):
		return errors.New("has no keys: must be one YAML mapping of sections")
	default:
		why := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
		return fmt.Errorf("is not YAML: %s", why)
	}
}
