package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// source is what the Go source of package protocol says and reflection can not
// tell: comments, and the values of named constants.
type source struct {
	types  map[string]*typeDoc
	consts map[string][]constant // by the name of their type
}

// typeDoc holds the comments of one type.
type typeDoc struct {
	doc string
	// fields holds the comment of each field by its Go name. A comment that begins
	// with several names ("Before and After are ...") is the comment of each.
	fields map[string]string
}

// constant is a named value of a string type.
type constant struct {
	name, value, doc string
}

// parse reads the package in dir, without its tests.
func parse(dir string) (*source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading package protocol: %w", err)
	}
	src := &source{types: map[string]*typeDoc{}, consts: map[string][]constant{}}
	fset := token.NewFileSet()
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("reading package protocol: %w", err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			if err := src.add(decl); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name(), err)
			}
		}
	}
	return src, nil
}

// add takes the types and constants of one declaration.
func (s *source) add(decl *ast.GenDecl) error {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			t := &typeDoc{doc: doc.Text()}
			if st, ok := spec.Type.(*ast.StructType); ok {
				t.fields = fieldDocs(st)
			}
			s.types[spec.Name.Name] = t
		case *ast.ValueSpec:
			typ, ok := spec.Type.(*ast.Ident)
			if decl.Tok != token.CONST || !ok || len(spec.Values) != 1 {
				continue
			}
			lit, ok := spec.Values[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				continue
			}
			value, err := strconv.Unquote(lit.Value)
			if err != nil {
				return fmt.Errorf("constant %s: %w", spec.Names[0].Name, err)
			}
			doc := spec.Doc.Text()
			if doc == "" {
				doc = spec.Comment.Text()
			}
			s.consts[typ.Name] = append(s.consts[typ.Name], constant{name: spec.Names[0].Name, value: value, doc: strings.TrimSpace(doc)})
		}
	}
	return nil
}

// fieldDocs returns the comments of a struct's fields.
func fieldDocs(st *ast.StructType) map[string]string {
	docs := map[string]string{}
	shared := ""
	for _, f := range st.Fields.List {
		for _, name := range f.Names {
			text := f.Doc.Text()
			if text == "" {
				text = f.Comment.Text()
			}
			if text != "" {
				shared = text
			} else if slices.Contains(subjects(shared), name.Name) {
				text = shared
			}
			docs[name.Name] = strings.TrimSpace(text)
		}
	}
	return docs
}

// subjects returns the names that a comment begins with: of "A, B and C are" A,
// B and C.
func subjects(text string) []string {
	var names []string
	for word := range strings.FieldsSeq(text) {
		if word == "and" {
			continue
		}
		name := strings.TrimSuffix(word, ",")
		if !token.IsExported(name) {
			break
		}
		names = append(names, name)
	}
	return names
}
