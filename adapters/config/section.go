package config

import (
	"fmt"
	"reflect"
)

// A Section is a part of the tree that a plane adds. Its keys have the tags of the tree.
type Section struct {
	Key string     // its name in the tree
	Doc string     // its meaning, in one sentence
	New func() any // returns a pointer to a struct with tagged fields. If it has a method Check() error, Load calls it
}

// sectionValue is a section with its values.
type sectionValue struct {
	Section
	keys any // as New returned them
}

// addSections adds sections to the tree.
func (c *Config) addSections(all []Section) {
	for _, s := range all {
		c.sections = append(c.sections, sectionValue{s, s.New()})
	}
}

// sectionKeys returns the keys of all sections.
func (c *Config) sectionKeys() (all []key) {
	for _, s := range c.sections {
		all = appendKeys(all, s.Key+".", "", reflect.ValueOf(s.keys).Elem())
	}
	return all
}

// checkSections returns why the values of sections are invalid together.
func (c *Config) checkSections() (wrong []error) {
	for _, s := range c.sections {
		if check, ok := s.keys.(interface{ Check() error }); ok {
			if err := check.Check(); err != nil {
				wrong = append(wrong, fmt.Errorf("%s.%w", s.Key, err))
			}
		}
	}
	return wrong
}

// Section returns what New of s returned, with the values of c. If c was loaded without s, the values are the defaults.
func (c *Config) Section(s *Section) any {
	for i := range c.sections {
		if c.sections[i].Key == s.Key {
			return c.sections[i].keys
		}
	}
	values := s.New()
	own := appendKeys(nil, s.Key+".", "", reflect.ValueOf(values).Elem())
	(&layers{keys: own}).defaults()
	all := &layers{keys: append(own, keys(c)...)}
	for _, k := range own {
		if path, ok := k.follows(); ok {
			leader, _ := all.find(path)
			k.value.Set(leader.value)
		}
	}
	return values
}
