package language

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// dialect are words of comments that make a component a person. The words of banned that are also
// plain English in comments, such as "whose", are not among them.
var dialect = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever|whom|who|ails|ailing|forgives?|twins?|strangers?|(?:is|are|was|were|be|been) told|lets? go of|vouch\w*)\b`)

// persons are words of messages that make a component a person.
var persons = regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever|whom|whose|who|ailing|twins?|strangers?|told|lets? go of|vouch\w*|he|his|him)\b`)

// oldNames are words of identifiers that the terms of the field have replaced.
var oldNames = regexp.MustCompile(`^(nobody|somebody|anybody|whoever|whom|who|twins?|slips?|dumb|told|said|says|story|stories|house|purse|ails|beyond|strangers?|vouch(ed|es)?)$`)

// part is a word in a name of mixed case.
var part = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// CheckSource returns what is wrong with the comments and the declared names of a Go file, one
// finding each. It returns an error if the file cannot be parsed.
func CheckSource(name string, text []byte) (found []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			for _, w := range dialect.FindAllString(comment.Text, -1) {
				found = append(found, fmt.Sprintf("%v: the word %q in %q", files.Position(comment.Pos()), w, comment.Text))
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		for _, id := range declared(n) {
			for _, w := range part.FindAllString(id.Name, -1) {
				if oldNames.MatchString(strings.ToLower(w)) {
					found = append(found, fmt.Sprintf("%v: the word %q in the name %s", files.Position(id.Pos()), w, id.Name))
				}
			}
		}
		return true
	})
	return found, nil
}

// CheckMessages returns what is wrong with the string literals of a Go file, one finding each. It returns
// an error if the file cannot be parsed.
func CheckMessages(name string, text []byte) (found []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			for _, w := range persons.FindAllString(text.Value, -1) {
				found = append(found, fmt.Sprintf("%v: the word %q in %s", files.Position(text.Pos()), w, text.Value))
			}
		}
		return true
	})
	return found, nil
}

// declared returns the names that a node declares.
func declared(n ast.Node) (names []*ast.Ident) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return []*ast.Ident{n.Name}
	case *ast.TypeSpec:
		return []*ast.Ident{n.Name}
	case *ast.ValueSpec:
		return n.Names
	case *ast.Field:
		return n.Names
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Lhs...)
		}
	case *ast.RangeStmt:
		if n.Tok == token.DEFINE {
			return identifiers(n.Key, n.Value)
		}
	}
	return nil
}

func identifiers(all ...ast.Expr) (names []*ast.Ident) {
	for _, e := range all {
		if id, ok := e.(*ast.Ident); ok {
			names = append(names, id)
		}
	}
	return names
}
